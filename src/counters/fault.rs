//! Why there is no reading: four reasons, which a caller answers in four ways.

use nix::errno::Errno;
use std::io;
use std::time::Duration;

/// Why a counter gave no value.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// What was read is no more: the process has ended, the interface was removed. It will not come back by this
    /// handle, whoever gets its number or name.
    #[error("{0} is gone")]
    Gone(String),
    /// It is there, and we may not read it.
    #[error("{what} may not be read: {cause}")]
    Denied {
        /// What was to be read.
        what: String,
        /// What the kernel answered, or what hides it.
        cause: String,
    },
    /// This kernel does not offer it.
    #[error("{0} is not offered by this kernel")]
    Unsupported(String),
    /// It was read and does not hold what it should.
    #[error("{what}: expected {expected}, found {found:?}")]
    Parse {
        /// What was read.
        what: String,
        /// What would have been right.
        expected: &'static str,
        /// The beginning of what was there.
        found: String,
    },
    /// Two readings too near to each other for a rate: any answer would be made up.
    #[error(
        "a window of {window:?} is no longer than the resolution of {resolution:?}: wait longer between the two"
    )]
    TooShort {
        /// From the first reading to the second.
        window: Duration,
        /// The steps in which the counter moves.
        resolution: Duration,
    },
}

impl Fault {
    /// What the kernel's answer means for whoever reads `what`.
    pub(super) fn of(what: impl Into<String>, error: &io::Error) -> Self {
        let what = what.into();
        let errno = error.raw_os_error().map(Errno::from_raw);
        match errno {
            Some(Errno::ENOENT | Errno::ESRCH | Errno::ENODEV | Errno::ENXIO) => Self::Gone(what),
            Some(Errno::ENOSYS | Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOTTY) => {
                Self::Unsupported(what)
            }
            _ => Self::Denied { what, cause: error.to_string() },
        }
    }

    /// What was read did not hold what it should.
    pub(super) fn parse(what: impl Into<String>, expected: &'static str, found: &[u8]) -> Self {
        let found = String::from_utf8_lossy(&found[..found.len().min(60)]).into_owned();
        Self::Parse { what: what.into(), expected, found }
    }
}

impl From<Fault> for crate::Error {
    fn from(fault: Fault) -> Self {
        Self::Missing(fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_answers_are_told_apart() {
        let of = |errno: Errno| Fault::of("it", &errno.into());
        assert!(matches!(of(Errno::ESRCH), Fault::Gone(_)));
        assert!(matches!(of(Errno::ENODEV), Fault::Gone(_)));
        assert!(matches!(of(Errno::EACCES), Fault::Denied { .. }));
        assert!(matches!(of(Errno::ENOSYS), Fault::Unsupported(_)));
    }
}
