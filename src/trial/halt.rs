//! How a case ends without a number.

/// Why a case ended without a number.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseEnd {
    /// A need is not met.
    Skipped(String),
    /// A claim does not hold, or the operation was refused.
    Failed(String),
    /// The machine was not ours while it was measured, or changed its speed between one part of the case and
    /// the next. Another attempt may do better; if none does, it counts as failed.
    Disturbed(String),
    /// A signal asked the whole run to end.
    Interrupted,
}

impl From<crate::Error> for CaseEnd {
    fn from(error: crate::Error) -> Self {
        match error {
            crate::Error::Disturbed(sentence) => Self::Disturbed(sentence),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl CaseEnd {
    /// What a set-up could not be without is a need as well, met too late to be asked before.
    pub(super) fn of_set_up(error: crate::Error) -> Self {
        if error.is_of_the_machine() {
            return Self::Skipped(error.to_string());
        }
        Self::Failed(format!("could not be set up: {error}"))
    }
}
