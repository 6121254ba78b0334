//! A CPU and memory of its own for a measuring process.

use crate::platform::cpu;
use crate::trial;

/// Claims a CPU, pins the process to it and prepares its memory. What fails becomes a note, since the numbers stay valid.
pub(super) fn claim_cpu_and_memory() -> (Option<cpu::Claimed>, Vec<String>) {
    let mut notes = Vec::new();
    let claimed = cpu::claim_cpu().filter(|claimed| match cpu::pin_and_verify(claimed.cpu) {
        Ok(()) => true,
        Err(error) => {
            notes.push(format!("not pinned to a CPU: {error}"));
            false
        }
    });
    if claimed.is_none() && notes.is_empty() {
        notes.push("not pinned to a CPU: none could be claimed for this run alone".into());
    }
    notes.extend(trial::prepare_memory());
    (claimed, notes)
}
