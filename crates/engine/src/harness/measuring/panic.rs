//! Records the message of a case's panic, which belongs into the record and not on the terminal.

use crate::trial::CaseEnd;
use std::sync::{Mutex, PoisonError};

/// The message of the last panic.
static MESSAGE: Mutex<String> = Mutex::new(String::new());

/// From here on a panic is recorded and prints nothing.
pub(super) fn record_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.to_string().replace('\n', " ");
        *MESSAGE.lock().unwrap_or_else(PoisonError::into_inner) = message;
    }));
}

/// Why a case unwound: its own [`CaseEnd`], or a panic.
pub(super) fn case_end_from_payload(payload: Box<dyn std::any::Any + Send>) -> CaseEnd {
    match payload.downcast::<CaseEnd>() {
        Ok(end) => *end,
        Err(_) => CaseEnd::Failed(last_message()),
    }
}

/// The message of the last panic, with its place in the source.
pub(super) fn last_message() -> String {
    MESSAGE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
