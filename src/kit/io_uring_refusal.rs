//! Why `io_uring_setup(2)` is refused, as far as it can be seen.

use crate::platform::kernel_files::KernelFiles;
use std::io;

const SWITCH: &str = "proc/sys/kernel/io_uring_disabled";

/// The kernel's answer, and what to change.
pub fn io_uring_refusal(cause: &io::Error) -> String {
    format!(
        "io_uring_setup: {cause}; {}",
        refusal_remedy(cause.raw_os_error(), KernelFiles::live().read_number(SWITCH))
    )
}

/// `switch` is there since Linux 6.6, and only where the kernel has io_uring.
fn refusal_remedy(errno: Option<i32>, switch: Option<u8>) -> String {
    match (errno, switch) {
        (Some(libc::EPERM), Some(level)) if level > 0 => format!("/{SWITCH} is {level}: set it to 0"),
        (Some(libc::EPERM), _) => "a sandbox's filter of system calls denies it: allow it there".into(),
        (Some(libc::ENOSYS), Some(_)) => {
            "this kernel has it, and a sandbox's filter of system calls hides it: allow it there".into()
        }
        (Some(libc::ENOSYS), None) => {
            "this kernel was built without it (CONFIG_IO_URING), or a sandbox's filter of system calls hides it".into()
        }
        (Some(libc::ENOMEM), _) => "it may lock too little memory: raise `ulimit -l`".into(),
        _ => "cases by threads do without it".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_switch_is_blamed_only_where_it_is_set() {
        for (errno, switch, words) in [
            (libc::EPERM, Some(2), "is 2: set it to 0"),
            (libc::EPERM, Some(0), "filter of system calls denies it"),
            (libc::EPERM, None, "filter of system calls denies it"),
            (libc::ENOSYS, Some(0), "this kernel has it"),
            (libc::ENOSYS, None, "CONFIG_IO_URING"),
        ] {
            let sentence = refusal_remedy(Some(errno), switch);
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
