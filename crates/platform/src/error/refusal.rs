//! Which errors mean that the environment does not offer what a case needs: a sandbox, a limit, a file system, a file of the
//! kernel's that is not mounted. They disprove nothing, so that the case is skipped with a sentence.

use super::Error;
use nix::errno::Errno::{self, *};
use std::path::Path;

/// What the kernel answers, and what helps.
const REFUSALS: [(&[Errno], &str); 7] = [
    (
        &[EPERM, EACCES],
        "this process may not do it here: allow it in the sandbox's filter of system calls, or give it the right",
    ),
    (
        &[ENOSYS],
        "this kernel does not have the call, or a sandbox hides it: allow it in its filter of system calls",
    ),
    (
        &[EOPNOTSUPP, ENOTTY, EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT],
        "this kernel, or the file system of the scratch directory, does not offer it: name another (`--dir`)",
    ),
    (&[EMFILE, ENFILE], "no more files may be open: raise `ulimit -n`, or fs.file-max"),
    (
        &[ENOMEM, ENOBUFS, ENOLCK],
        "memory is short, or limited: raise `ulimit -v` or the control group's memory.max",
    ),
    (
        &[ENOSPC, EDQUOT, EFBIG],
        "there is no room (`df`), or no inode (`df -i`): remove files, raise `ulimit -f`, or name another directory (`--dir`)",
    ),
    // What needs more than a right that can be given.
    (&[ENXIO, EBUSY], "the device or the facility is not there, or in use"),
];

/// Errors that mean an unmet need during set-up only; during an operation they may be its own mistake.
const OF_SET_UP: [(&[Errno], &str); 2] = [
    (
        &[EINVAL],
        "this kernel, or the file system of the scratch directory, does not offer it: name another (`--dir`)",
    ),
    (&[EAGAIN], "a limit is reached: raise `ulimit -u`, pids.max of the control group, or `ulimit -i`"),
];

/// Where the kernel, and not the user, puts files.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

fn remedy_for_errno(table: &[(&[Errno], &'static str)], errno: Errno) -> Option<&'static str> {
    table.iter().find(|(errnos, _)| errnos.contains(&errno)).map(|(_, remedy)| *remedy)
}

fn is_kernel_path(path: &Path) -> bool {
    OF_THE_KERNEL.iter().any(|place| path.starts_with(place))
}

impl Error {
    /// Why the machine cannot meet a need, with a remedy; `None` for an error of another kind. While a case is set
    /// up, EINVAL and EAGAIN count as unmet needs too.
    pub fn unmet_need(&self, setting_up: bool) -> Option<String> {
        if self.is_machine_limitation() {
            return Some(self.to_string());
        }
        let (Self::Kernel { cause, .. } | Self::File { cause, .. }) = self else { return None };
        let errno = Errno::from_raw(cause.raw_os_error()?);
        let absent = || match self {
            Self::File { path, .. } if errno == ENOENT && is_kernel_path(path) => {
                Some("it is not mounted or hidden here: mount it, or use a container that has it")
            }
            _ => None,
        };
        let asked = || if setting_up { remedy_for_errno(&OF_SET_UP, errno) } else { None };
        let remedy = remedy_for_errno(&REFUSALS, errno).or_else(absent).or_else(asked)?;
        Some(format!("{self}; {remedy}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_an_unmet_need_and_a_mistake_is_none() {
        let need = |errno: Errno, setting_up| Error::from_errno("a call", errno).unmet_need(setting_up);
        for errno in [EPERM, EACCES, ENOSYS, EOPNOTSUPP, EMFILE, ENOMEM, ENOSPC] {
            let sentence = need(errno, false).expect("a need");
            assert!(sentence.starts_with("a call: ") && sentence.contains("; "), "{sentence}");
        }
        assert!(need(ENOSPC, false).is_some_and(|said| said.contains("no inode (`df -i`)")));
        assert!(need(EINVAL, true).is_some() && need(EAGAIN, true).is_some());
        for errno in [EINVAL, EAGAIN, EBADF, EFAULT, ESRCH, ECHILD, EPIPE] {
            assert_eq!(need(errno, false), None, "{errno}");
        }
        assert_eq!(Error::Disproved("no bytes came".into()).unmet_need(true), None);
    }

    #[test]
    fn only_a_file_of_the_kernels_may_be_absent() {
        let absent = |path| Error::file(path, "opening", ENOENT.into()).unmet_need(true);
        assert!(absent("/sys/class/net/lo/statistics/tx_bytes").is_some_and(|said| said.contains("mount")));
        assert!(absent("/dev/null").is_some());
        assert_eq!(absent("/home/user/input"), None);
    }
}
