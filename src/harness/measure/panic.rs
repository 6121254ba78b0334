//! Panics of a case, in words: they go into the record and not onto the terminal.

use crate::trial::CaseEnd;
use std::sync::{Mutex, PoisonError};

/// The last panic in words. The hook that writes it prints nothing: the sentence goes into the record.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// From here on a panic prints nothing.
pub(super) fn remember() {
    std::panic::set_hook(Box::new(|info| {
        let words = info.to_string().replace('\n', " ");
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }));
}

/// What a case left behind when it unwound: our own [`CaseEnd`], or a panic.
pub(super) fn halt_of(payload: Box<dyn std::any::Any + Send>) -> CaseEnd {
    match payload.downcast::<CaseEnd>() {
        Ok(halt) => *halt,
        Err(_) => CaseEnd::Failed(last()),
    }
}

/// The last one, with its place.
pub(super) fn last() -> String {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
