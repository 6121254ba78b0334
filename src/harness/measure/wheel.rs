//! Criterion at the wheel.

use super::super::arguments::Mode;
use crate::record::Measured;
use crate::trial::{CaseEnd, Trial};
use std::panic::resume_unwind;

/// Criterion at the wheel: it decides how many iterations a batch has; we decide whether the case goes on.
pub(super) struct Wheel<'a> {
    pub(super) trial: Option<Trial<'a>>,
    pub(super) first_phase: u32,
    pub(super) left: usize,
    pub(super) outcome: Option<Box<Measured>>,
}

impl Wheel<'_> {
    /// One batch. The last sample concludes the trial *before* Criterion hears of it: Criterion saves at once,
    /// and what is claimed in vain must not be saved. Unwinding is the only way to make it forget a case.
    pub(super) fn turn(&mut self, iterations: u64, samples: usize, phase: u32) -> u64 {
        // The first zero opens the warm-up, the second the sampling (see `Counted::phase`).
        let sampling = phase >= self.first_phase + 2;
        let turned = self.trial.as_mut().map_or(Ok(1), |trial| {
            if sampling {
                trial.begin();
            }
            trial.sample(iterations)
        });
        self.left -= usize::from(sampling && self.left > 0);
        let counted = turned.and_then(|counted| {
            match (sampling, &mut self.trial) {
                (true, _) if self.left == 0 => self.conclude(samples)?,
                (true, Some(trial)) => trial.sweep_on()?,
                _ => {}
            }
            Ok(counted)
        });
        counted.unwrap_or_else(|halt| resume_unwind(Box::new(halt)))
    }

    fn conclude(&mut self, samples: usize) -> std::result::Result<(), CaseEnd> {
        if let Some(trial) = self.trial.take() {
            self.outcome = Some(Box::new(trial.conclude(samples)?));
        }
        Ok(())
    }

    /// What came of it. Criterion's other modes run a case without sampling it; their trial is concluded here.
    pub(super) fn outcome(
        mut self,
        mode: Mode,
        samples: usize,
    ) -> std::result::Result<Box<Measured>, CaseEnd> {
        if mode != Mode::Measure {
            self.conclude(samples)?;
        }
        self.outcome.ok_or_else(|| {
            CaseEnd::Failed("Criterion ended the case before its last sample: its phases have changed".into())
        })
    }
}
