//! One error type: every variant is a sentence that says what failed, where, and what to do about it.

use std::path::PathBuf;

/// What can go wrong outside a measurement. A claim that fails is not an error: it is an outcome, and
/// lives in [`crate::trial`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {doing} failed: {cause}")]
    File {
        /// The file that was meant.
        path: PathBuf,
        /// What was being done to it.
        doing: &'static str,
        /// What the kernel answered.
        cause: std::io::Error,
    },
    /// A file was there but did not hold what it should.
    #[error("{path}: {field}: expected {expected}, found {found}; {remedy}")]
    Content {
        /// The file that was read.
        path: PathBuf,
        /// The field or line in question.
        field: String,
        /// What would have been right.
        expected: String,
        /// What was there.
        found: String,
        /// What to do.
        remedy: String,
    },
    /// The kernel refused a call.
    #[error("{call}: {cause}")]
    Kernel {
        /// The call and its purpose.
        call: String,
        /// What the kernel answered.
        cause: std::io::Error,
    },
    /// A forked child that ran the operation ended as it should not.
    #[error("the operation did not survive being watched: {0}")]
    Died(String),
    /// A child of the operation ended as it should not, or not at all.
    #[error("a child did not end as it should: {0}")]
    Child(String),
    /// The machine lacks what a case needs, which its set-up has found out.
    #[error("{0}")]
    Missing(String),
    /// A call that a case is made of does not exist here or may not be made.
    #[error(
        "{call}: {cause}; it is forbidden here, or this kernel does not have it: allow it in the sandbox's filter of \
         system calls"
    )]
    Forbidden {
        /// The call.
        call: String,
        /// What the kernel answered.
        cause: std::io::Error,
    },
    /// The peer that was asked for is not there, does not answer, or answers what cannot be.
    #[error("peer {peer}: {what}")]
    Peer {
        /// Its address, as it was given.
        peer: String,
        /// What happened, and what to do.
        what: String,
    },
    /// The operation did not do what it should have done: a wrong answer, a wrong count, a partner that ended.
    #[error("{0}")]
    Disproved(String),
    /// What happened was another operation than the one that was asked for, as it may by chance: try again.
    #[error("{0}")]
    Disturbed(String),
    /// The command line asks for something that does not exist.
    #[error("{0}")]
    Usage(String),
}

/// What kind of thing went wrong. The exit code follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A proof failed: the operation did not do what it should have done.
    Disproved,
    /// The machine got in the way: a partner that had no CPU, an operation that turned out as another.
    Disturbed,
    /// The machine lacks something, or the kernel refuses it.
    Missing,
    /// The command line, an environment variable or an argument asks for what cannot be.
    Usage,
    /// A file does not hold what it should.
    File,
}

impl Kind {
    /// What a process exits with that ends for this reason.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Disproved | Self::Disturbed | Self::Missing => 1,
            Self::Usage | Self::File => 2,
        }
    }
}

impl Error {
    /// What kind of thing went wrong.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Disproved(_) | Self::Died(_) | Self::Child(_) => Kind::Disproved,
            Self::Disturbed(_) | Self::Peer { .. } => Kind::Disturbed,
            Self::Missing(_) | Self::Forbidden { .. } | Self::Kernel { .. } => Kind::Missing,
            Self::File { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => Kind::Usage,
            Self::File { .. } => Kind::Missing,
            Self::Usage(_) => Kind::Usage,
            Self::Content { .. } => Kind::File,
        }
    }

    /// The last error of the C library, for the call just made.
    pub fn last_os(call: impl Into<String>) -> Self {
        Self::Kernel { call: call.into(), cause: std::io::Error::last_os_error() }
    }

    /// A call refused with this `errno`.
    pub fn refused(call: impl Into<String>, errno: nix::errno::Errno) -> Self {
        Self::Kernel { call: call.into(), cause: errno.into() }
    }

    /// The same of a call that a case is made of: a sandbox that forbids it is told from everything else.
    pub fn refused_to_case(call: impl Into<String>, errno: nix::errno::Errno) -> Self {
        use nix::errno::Errno;
        match errno {
            Errno::EPERM | Errno::ENOSYS => Self::Forbidden { call: call.into(), cause: errno.into() },
            _ => Self::refused(call, errno),
        }
    }

    /// The error number in an answer below zero, as a system call gives it before a C library has touched it. One
    /// that is no error number is an input/output error: nothing else can be said of it.
    pub fn errno(answer: i64) -> nix::errno::Errno {
        nix::errno::Errno::from_raw(i32::try_from(-answer).unwrap_or(libc::EIO))
    }

    /// Whether it tells of the machine: the case is skipped, and nothing has failed.
    pub fn is_of_the_machine(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Forbidden { .. })
    }

    /// What a peer did.
    pub fn peer(peer: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Peer { peer: peer.into(), what: what.into() }
    }

    /// A file that could not be read or written.
    pub fn file(path: impl Into<PathBuf>, doing: &'static str, cause: std::io::Error) -> Self {
        Self::File { path: path.into(), doing, cause }
    }
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;
