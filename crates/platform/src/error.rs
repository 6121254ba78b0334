//! The crate's error type. Each variant is a sentence: what failed, where, and what to do about it.
//!
//! [`Error::unmet_need`] recognises errors that mean that the environment does not offer what a case needs, because of a sandbox, a
//! limit, a file system, or a kernel file that is not mounted. They disprove nothing, so the case is skipped with a sentence.

use nix::errno::Errno::{self, *};
use std::path::PathBuf;

/// What can go wrong in a call of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {doing} failed: {cause}{}", remedy(cause))]
    File {
        /// The file.
        path: PathBuf,
        /// The attempted action, such as "reading".
        doing: &'static str,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// A file was read, and its content is not what it should be.
    #[error("{path}: {field}: expected {expected}, found {found}; {remedy}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The field or line.
        field: String,
        /// What would have been right.
        expected: String,
        /// What was there.
        found: String,
        /// How to mend it.
        remedy: String,
    },
    /// The kernel refused a system call.
    #[error("{call}: {cause}{}", remedy(cause))]
    Kernel {
        /// The call and its purpose.
        call: String,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// The process that ran an operation under ptrace(2) died.
    #[error("the operation did not survive being watched: {0}")]
    Died(String),
    /// A child process of an operation failed, hung or was left behind.
    #[error("a child did not end as it should: {0}")]
    Child(String),
    /// The machine lacks something that is needed.
    #[error("{0}")]
    Missing(String),
    /// A system call of the operation is filtered out by a sandbox, or unknown to this kernel.
    #[error(
        "{call}: {cause}; it is forbidden here, or this kernel does not have it: allow it in the sandbox's filter of \
         system calls"
    )]
    Forbidden {
        /// The call.
        call: String,
        /// The kernel's error: EPERM or ENOSYS.
        cause: std::io::Error,
    },
    /// A `syscost peer` on another machine is absent, silent, or answers nonsense.
    #[error("peer {peer}: {what}")]
    Peer {
        /// The peer's address as the user gave it.
        peer: String,
        /// What happened, and what to do.
        what: String,
    },
    /// A proof failed: a wrong answer, a wrong count, a partner that died.
    #[error("{0}")]
    Disproved(String),
    /// Two observations of a batch contradict each other. Another task, the kernel or a change of speed can cause this in a
    /// sound case, so that only its repetition disproves anything.
    #[error("{0}")]
    Contradicted(String),
    /// The machine interfered: a partner got no CPU, or another operation happened than the requested one. A
    /// further attempt may succeed.
    #[error("{0}")]
    Disturbed(String),
    /// The command line, an environment variable or an argument of a library call is wrong.
    #[error("{0}")]
    Usage(String),
    /// The two sides of a comparison were built so differently that their numbers say nothing about each other.
    #[error("{0}")]
    Incomparable(String),
}

/// The cause of an [`Error`], in five kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A proof failed: the operation did not do what it claims.
    Disproved,
    /// The machine interfered.
    Disturbed,
    /// The machine lacks something, or the kernel refuses it.
    Missing,
    /// The command line, an environment variable or an argument is wrong.
    Usage,
    /// A file's content is wrong.
    File,
}

/// Remedies for error numbers with one clear cause: a file system, or its device, that breaks or is removed during use, and two
/// limits.
const REMEDIES: [(&[Errno], &str); 5] = [
    (
        &[EROFS],
        "; it is mounted read-only, perhaps by the kernel after an error of its device (`dmesg` tells): remount it, or name \
         another directory",
    ),
    (&[EIO], "; its device is broken or gone (`dmesg` tells): name a directory on another"),
    (&[ENODEV], "; its device is gone (`dmesg` tells): name a directory on another"),
    (&[EMFILE], "; this process may open no more files: raise `ulimit -n`"),
    (&[ENFILE], "; the whole machine may open no more files: raise /proc/sys/fs/file-max"),
];

/// The `errno` of an error. An error that another crate has wrapped holds it only in its text.
pub fn errno_of(cause: &std::io::Error) -> Option<Errno> {
    let wrapped = || cause.to_string().split_once("(os error ")?.1.split_once(')')?.0.parse().ok();
    cause.raw_os_error().or_else(wrapped).map(Errno::from_raw)
}

fn remedy(cause: &std::io::Error) -> &'static str {
    errno_of(cause).and_then(|errno| remedy_for_errno(&REMEDIES, errno)).unwrap_or_default()
}

/// Returns an error unless a condition holds.
///
/// # Errors
/// The result of `otherwise`.
#[inline]
pub fn ensure<E>(holds: bool, otherwise: impl FnOnce() -> E) -> std::result::Result<(), E> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl Error {
    /// The cause, which decides the exit code. A file that does not exist is a usage error: the user gave its name.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Disproved(_) | Self::Died(_) | Self::Child(_) => Kind::Disproved,
            Self::Contradicted(_) | Self::Disturbed(_) | Self::Peer { .. } => Kind::Disturbed,
            Self::Missing(_) | Self::Forbidden { .. } | Self::Kernel { .. } => Kind::Missing,
            Self::File { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => Kind::Usage,
            Self::File { .. } => Kind::Missing,
            Self::Usage(_) | Self::Incomparable(_) => Kind::Usage,
            Self::Content { .. } => Kind::File,
        }
    }

    /// [`Error::Kernel`] with the `errno` of the C library call just made.
    pub fn from_last_errno(call: impl Into<String>) -> Self {
        Self::Kernel { call: call.into(), cause: std::io::Error::last_os_error() }
    }

    /// [`Error::Kernel`] for a system call that failed with this `errno`.
    pub fn from_errno(call: impl Into<String>, errno: Errno) -> Self {
        Self::Kernel { call: call.into(), cause: errno.into() }
    }

    /// The error for a system call of the measured operation that failed with this `errno`: [`Error::Forbidden`] for
    /// EPERM and ENOSYS, which a sandbox returns, else [`Error::Kernel`].
    pub fn from_case_errno(call: impl Into<String>, errno: Errno) -> Self {
        match errno {
            Errno::EPERM | Errno::ENOSYS => Self::Forbidden { call: call.into(), cause: errno.into() },
            _ => Self::from_errno(call, errno),
        }
    }

    /// The `errno` in the negative return value of a raw system call; EIO for a value outside its range.
    pub fn decode_errno(answer: i64) -> Errno {
        Errno::from_raw(i32::try_from(-answer).unwrap_or(libc::EIO))
    }

    /// Whether the machine lacks something, so that a case is skipped instead of failed.
    pub fn is_machine_limitation(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Forbidden { .. })
    }

    /// Whether a file system or its device failed, which does not disprove the operation.
    pub fn is_device_failure(&self) -> bool {
        matches!(self, Self::File { cause, .. } | Self::Kernel { cause, .. }
            if matches!(errno_of(cause), Some(EROFS | EIO | ENODEV)))
    }

    /// [`Error::Peer`] of this address.
    pub fn peer(peer: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Peer { peer: peer.into(), what: what.into() }
    }

    /// [`Error::Content`] of this path.
    pub fn invalid_content(
        path: impl Into<PathBuf>,
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let [field, expected, found, remedy] = [field.into(), expected.into(), found.into(), remedy.into()];
        Self::Content { path: path.into(), field, expected, found, remedy }
    }

    /// [`Error::File`] of this path.
    pub fn file(path: impl Into<PathBuf>, doing: &'static str, cause: std::io::Error) -> Self {
        Self::File { path: path.into(), doing, cause }
    }
}

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Errors that mean an unmet need at any time, with their remedies.
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
    // No permission removes these errors.
    (&[ENXIO, EBUSY], "the device or the facility is not there, or in use"),
];

/// Errors that mean an unmet need during set-up only; later they may be a mistake of the operation itself.
const OF_SET_UP: [(&[Errno], &str); 2] = [
    (
        &[EINVAL],
        "this kernel, or the file system of the scratch directory, does not offer it: name another (`--dir`)",
    ),
    (&[EAGAIN], "a limit is reached: raise `ulimit -u`, pids.max of the control group, or `ulimit -i`"),
];

/// Directories whose files come from the kernel, not from the user.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

fn remedy_for_errno(table: &[(&[Errno], &'static str)], errno: Errno) -> Option<&'static str> {
    table.iter().find(|(errnos, _)| errnos.contains(&errno)).map(|(_, remedy)| *remedy)
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
            Self::File { path, .. }
                if errno == ENOENT && OF_THE_KERNEL.iter().any(|place| path.starts_with(place)) =>
            {
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
    fn a_broken_file_system_is_reported_with_a_remedy_even_if_the_cause_is_wrapped() {
        let plain = Error::file("/x", "writing", Errno::EROFS.into());
        let cause = std::io::Error::from(Errno::EIO);
        let wrapped = Error::file("/x", "writing", std::io::Error::other(format!("{cause} at path /x")));
        for (error, words) in [(plain, "remount it"), (wrapped, "is broken or gone")] {
            assert!(error.is_device_failure() && error.to_string().contains(words), "{error}");
        }
        let limited = Error::from_errno("pipe", Errno::EMFILE).to_string();
        assert!(limited.contains("raise `ulimit -n`"), "{limited}");
        let other = Error::from_errno("pipe", Errno::EFAULT).to_string();
        assert!(!other.contains("ulimit"), "{other}");
        let full = Error::file("/x", "writing", Errno::ENOSPC.into());
        assert!(!full.is_device_failure() && full.to_string().ends_with("(os error 28)"), "{full}");
    }

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
    fn only_an_absent_kernel_file_is_an_unmet_need() {
        let absent = |path| Error::file(path, "opening", ENOENT.into()).unmet_need(true);
        assert!(absent("/sys/class/net/lo/statistics/tx_bytes").is_some_and(|said| said.contains("mount")));
        assert!(absent("/dev/null").is_some());
        assert_eq!(absent("/home/user/input"), None);
    }
}
