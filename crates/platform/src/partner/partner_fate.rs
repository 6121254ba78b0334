//! How a partner ended by itself, and what that proves.

use crate::error::Error;
use nix::errno::Errno;

/// How a partner ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    words: String,
    /// Its call was refused: that is no proof against what is measured.
    refused: Option<Errno>,
}

impl Fate {
    pub(super) fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), refused: None }
    }

    pub(super) fn from_refusal(errno: Errno) -> Self {
        Self { words: format!("the partner's call was refused: {}", errno.desc()), refused: Some(errno) }
    }

    /// The error for a measurement whose partner ended; `whose` is put before the sentence.
    pub fn into_error(self, whose: &str) -> Error {
        match self.refused {
            Some(errno) => Error::from_errno(format!("{whose}the partner's call"), errno),
            None => Error::Disproved(format!("{whose}{}", self.words)),
        }
    }
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)
    }
}
