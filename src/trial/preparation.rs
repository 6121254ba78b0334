//! Preparation of a process that measures.

use crate::platform::process;

/// Touches the stack and locks all memory, so that no page fault interrupts a sample. A refusal is a sentence for the
/// record, since the numbers stay valid.
pub fn lock_memory() -> Option<String> {
    process::touch_stack();
    process::lock_memory().err().map(|error| format!("not locked in memory: {error}"))
}
