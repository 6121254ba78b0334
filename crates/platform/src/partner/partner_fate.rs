//! How a partner ended by itself, and what that proves.

use crate::error::Error;
use nix::errno::Errno;
use nix::sys::signal::Signal;

/// How a partner ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    words: String,
    /// The error of the partner's refused call, which disproves nothing about the measured operation.
    refused: Option<Errno>,
    /// Whether a signal ended the partner, such as the kernel's when memory is short, or another user's.
    killed: bool,
}

impl Fate {
    pub(super) fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), refused: None, killed: false }
    }

    pub(super) fn from_signal(signal: Signal) -> Self {
        Self { killed: true, ..Self::new(format!("the partner was killed by {signal}")) }
    }

    pub(super) fn from_refusal(errno: Errno) -> Self {
        let words = format!("the partner's call was refused: {}", errno.desc());
        Self { refused: Some(errno), ..Self::new(words) }
    }

    /// The error for a measurement whose partner ended; `whose` is put before the sentence.
    pub fn into_error(self, whose: &str) -> Error {
        match self.refused {
            Some(errno) => Error::from_errno(format!("{whose}the partner's call"), errno),
            None if self.killed => Error::Contradicted(format!("{whose}{}", self.words)),
            None => Error::Disproved(format!("{whose}{}", self.words)),
        }
    }
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)
    }
}
