//! Preparation of a process that measures.

use crate::platform::{cpu, process};

/// Touches the stack and what makes the branch predictor forget, and locks all memory, so that no page fault interrupts a
/// sample. Each refusal is a sentence for the record, since the numbers stay valid.
pub fn prepare_memory() -> Vec<String> {
    process::touch_stack();
    let learnt =
        "what is timed begins with what the branch predictor has learnt: written code may not be executed";
    let learnt = (!cpu::flush_branch_predictor()).then(|| learnt.to_owned());
    let unlocked = process::lock_memory().err().map(|error| format!("not locked in memory: {error}"));
    learnt.into_iter().chain(unlocked).collect()
}
