//! The line of a case that is only tested.

use super::arguments::Mode;
use super::pipe_message::{CaseExecution, ExecutionEnd};
use super::supervision::Supervisor;
use crate::trial::CaseEnd;

impl Supervisor<'_> {
    /// Prints how a case ended, if the cases are only tested.
    pub(super) fn print_verdict(&self, case: &CaseExecution) {
        if self.arguments.mode == Mode::Test && !self.arguments.bencher {
            self.progress.print(&format!("{}: {}", case.id, verdict_text(&case.end)));
        }
    }
}

fn verdict_text(end: &ExecutionEnd) -> String {
    match end {
        Ok(m) if m.is_unwitnessed() => {
            format!(
                "unwitnessed, {} claims hold, {} were not asked",
                m.evidence.len(),
                m.unwitnessed_claims().count()
            )
        }
        Ok(m) => format!("ok, {} claims hold", m.evidence.len()),
        Err(CaseEnd::Skipped(sentence)) => format!("skipped: {sentence}"),
        Err(CaseEnd::Disturbed(sentence)) => format!("disturbed: {sentence}"),
        Err(CaseEnd::Contradicted(sentence)) => format!("not settled: {sentence}"),
        Err(CaseEnd::Failed(sentence) | CaseEnd::CutShort(sentence)) => format!("FAILED: {sentence}"),
        Err(CaseEnd::Interrupted) => "interrupted".into(),
    }
}
