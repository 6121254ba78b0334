//! Exit codes of every process of this crate, in one table.
//!
//! | code | name | when |
//! |---|---|---|
//! | 0 | [`Exit::Success`] | everything was measured or skipped, and something measured; `gate`: unchanged or faster |
//! | 1 | [`Exit::Disproved`] | a claim failed, nothing was measured, something could not be saved, or `gate` found a slowdown |
//! | 2 | [`Exit::Usage`] | the command line, an environment variable or a file asks for what does not exist |
//! | 3 | [`Exit::Unsettled`] | `run --strict`: a case was disturbed, unwitnessed or not settled |
//! | 3 | [`Exit::Incomparable`] | `gate`: two numbers say nothing about each other |
//! | 4 | [`Exit::Inconclusive`] | `gate`, `validate`: neither an effect nor its absence was shown |
//! | 5 | [`Exit::Unfit`] | `gate`: a canary moved, or too many pairs were disturbed |
//! | 125 | [`Exit::Skipped`] | `gate`: a case could not be measured; `git bisect run` skips the revision |
//! | 128 + n | [`Exit::Signal`] | signal n interrupted the run |
//!
//! An error becomes a code by its [`Kind`].

use crate::error::Kind;
use nix::sys::signal::Signal;
use std::process::ExitCode;

/// Why a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything was measured or skipped; nothing became slower.
    Success,
    /// A claim failed, nothing was measured, something could not be saved, or something became slower.
    Disproved,
    /// The request cannot be carried out as it was written.
    Usage,
    /// `run --strict` was asked for, and a case was disturbed, unwitnessed or not settled.
    Unsettled,
    /// Two numbers say nothing about each other.
    Incomparable,
    /// Neither an effect nor its absence was shown.
    Inconclusive,
    /// The machine was too disturbed to tell.
    Unfit,
    /// There is no measurement to judge.
    Skipped,
    /// The run was interrupted by this signal.
    Signal(Signal),
}

impl Exit {
    /// The number that the parent process sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Disproved => 1,
            Self::Usage => 2,
            Self::Unsettled | Self::Incomparable => 3,
            Self::Inconclusive => 4,
            Self::Unfit => 5,
            Self::Skipped => 125,
            Self::Signal(signal) => 128 + signal as u8,
        }
    }

    /// [`Exit::Disproved`] if something failed, [`Exit::Success`] otherwise.
    pub const fn failed_if(failed: bool) -> Self {
        if failed { Self::Disproved } else { Self::Success }
    }

    /// [`Exit::Signal`] if a signal has arrived, since an interrupted run has no other result.
    pub fn or_signal(self, pending: Option<Signal>) -> Self {
        pending.map_or(self, Self::Signal)
    }
}

/// Exit code 2 if the user must correct the request or a file, else 1.
impl From<Kind> for Exit {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Disproved | Kind::Disturbed | Kind::Missing => Self::Disproved,
            Kind::Usage | Kind::File => Self::Usage,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_signal_replaces_any_other_exit() {
        assert_eq!(Exit::failed_if(true).or_signal(None).code(), 1);
        assert_eq!(Exit::failed_if(true).or_signal(Some(Signal::SIGINT)).code(), 130);
    }
}
