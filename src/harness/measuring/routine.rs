//! The routine that Criterion calls for each batch, with a trial behind it.

use crate::platform::perf_event::Event;
use crate::record::Measured;
use crate::trial::{CaseEnd, Trial};
use std::panic::resume_unwind;

/// Unwinds through Criterion when the last sample is there: what it would make of one execution alone is of no use, and its
/// bootstrap and its files cost more time than the samples.
pub(super) struct Complete;

/// Phases of Criterion's until it samples: the first zero begins the warm-up, the second the sampling
/// ([`Shared::phase`](super::Shared::phase)).
pub(super) const PHASES: u32 = 2;

/// A case as a routine: Criterion decides when a batch runs, the trial decides whether the case goes on.
pub(super) struct Routine<'a> {
    pub(super) trial: Option<Trial<'a>>,
    /// Iterations of a sample. Criterion would size them by its warm-up, to which a first batch that was interrupted, or has
    /// a long untimed part, is as good as any: some samples then had one iteration.
    pub(super) iterations: u64,
    /// [`Shared::phase`](super::Shared::phase) from which on batches are samples.
    pub(super) sampling_from: u32,
    /// Events that are counted when all samples are there.
    pub(super) events: &'a [Event],
    /// Samples still to come.
    pub(super) left: usize,
    pub(super) outcome: Option<Box<Measured>>,
}

impl Routine<'_> {
    /// Runs one batch. The last sample concludes the trial, and Criterion does not receive it. Unwinding is the only way to
    /// make Criterion drop a case.
    pub(super) fn batch(&mut self, iterations: u64, samples: usize, phase: u32) -> u64 {
        let sampling = phase >= self.sampling_from;
        let ran = self.trial.as_mut().map_or(Ok(1), |trial| {
            if sampling {
                trial.begin();
            }
            trial.sample(if sampling { self.iterations } else { iterations })
        });
        self.left -= usize::from(sampling && self.left > 0);
        let counted = ran.and_then(|counted| {
            match (sampling, &mut self.trial) {
                (true, _) if self.left == 0 => {
                    self.conclude(samples)?;
                    resume_unwind(Box::new(Complete));
                }
                (true, Some(trial)) => trial.sweep_on()?,
                _ => {}
            }
            Ok(counted)
        });
        counted.unwrap_or_else(|end| resume_unwind(Box::new(end)))
    }

    fn conclude(&mut self, samples: usize) -> Result<(), CaseEnd> {
        if let Some(mut trial) = self.trial.take() {
            trial.count(self.events)?;
            self.outcome = Some(Box::new(trial.conclude(samples)?));
        }
        Ok(())
    }

    /// The outcome.
    pub(super) fn outcome(self) -> Result<Box<Measured>, CaseEnd> {
        self.outcome.ok_or_else(|| {
            CaseEnd::Failed("Criterion ended the case before its last sample: its phases have changed".into())
        })
    }
}
