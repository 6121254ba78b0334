//! Why a counter gave no value.

use nix::errno::Errno;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Why a file of the whole machine is not there.
const HIDDEN: &str = "it is hidden here: /proc is not mounted, or with subset=pid; mount it whole (`mount -t proc proc /proc`)";

/// Whether this path of a missing file means that `/proc` hides what is no process: `/proc/stat` is in each one that is whole.
fn is_hidden(path: &str, proc_is_whole: bool) -> bool {
    let of_machine =
        |rest: &str| !rest.starts_with(|first: char| first.is_ascii_digit()) && !rest.starts_with("self/");
    !proc_is_whole && path.strip_prefix("/proc/").is_some_and(of_machine)
}

/// Why a counter gave no value: a caller can react to each variant in another way.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The object no longer exists: the process has ended, the interface was removed. A handle stays in this state,
    /// also when the number or name is used again.
    #[error("{0} is gone")]
    Gone(String),
    /// It exists and may not be read.
    #[error("{what} may not be read: {cause}")]
    Denied {
        /// What should have been read.
        what: String,
        /// The answer of the kernel, or what hides the object.
        cause: String,
    },
    /// This kernel does not offer the counter.
    #[error("{0} is not offered by this kernel")]
    Unsupported(String),
    /// The file was read and has an unexpected content.
    #[error("{what}: expected {expected}, found {found:?}")]
    Parse {
        /// What was read.
        what: String,
        /// The expected content.
        expected: &'static str,
        /// The beginning of the content.
        found: String,
    },
    /// Two readings are too close to each other for a rate.
    #[error(
        "a window of {window:?} is no longer than the resolution of {resolution:?}: wait longer between the two"
    )]
    TooShort {
        /// From the first reading to the second.
        window: Duration,
        /// The resolution of the counter.
        resolution: Duration,
    },
}

impl Fault {
    /// The fault that an error of the kernel means for a reading of `what`.
    pub(super) fn from_error(what: impl Into<String>, error: &io::Error) -> Self {
        let what = what.into();
        let errno = error.raw_os_error().map(Errno::from_raw);
        match errno {
            Some(Errno::ENOENT) if is_hidden(&what, Path::new("/proc/stat").exists()) => {
                Self::Denied { what, cause: HIDDEN.into() }
            }
            Some(Errno::ENOENT | Errno::ESRCH | Errno::ENODEV | Errno::ENXIO) => Self::Gone(what),
            Some(Errno::ENOSYS | Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOTTY) => {
                Self::Unsupported(what)
            }
            _ => Self::Denied { what, cause: error.to_string() },
        }
    }

    /// A content that could not be parsed, cut to 60 bytes.
    pub(super) fn parse_error(what: impl Into<String>, expected: &'static str, found: &[u8]) -> Self {
        let found = String::from_utf8_lossy(&found[..found.len().min(60)]).into_owned();
        Self::Parse { what: what.into(), expected, found }
    }
}

impl From<Fault> for syscost_platform::error::Error {
    fn from(fault: Fault) -> Self {
        Self::Missing(fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_proc_hides_is_not_gone() {
        assert!(is_hidden("/proc/stat", false) && is_hidden("/proc/net/dev", false));
        assert!(!is_hidden("/proc/pressure/cpu", true), "this kernel has none");
        assert!(!is_hidden("/proc/12/stat", false) && !is_hidden("/sys/class/net/eth9", false));
    }

    #[test]
    fn the_kernels_answers_are_told_apart() {
        let fault_of = |errno: Errno| Fault::from_error("it", &errno.into());
        assert!(matches!(fault_of(Errno::ESRCH), Fault::Gone(_)));
        assert!(matches!(fault_of(Errno::ENODEV), Fault::Gone(_)));
        assert!(matches!(fault_of(Errno::EACCES), Fault::Denied { .. }));
        assert!(matches!(fault_of(Errno::ENOSYS), Fault::Unsupported(_)));
    }
}
