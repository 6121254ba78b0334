//! Allocations an iteration, where the program declares an allocator that counts ([`syscost::alloc`](crate::alloc)): in
//! batches of their own, behind the timed ones, of what stands in the clock's brackets.

use super::{CaseEnd, Trial};
use crate::platform::allocation::{self, Counts};
use crate::record::{ALLOCATED_BYTES, ALLOCATIONS, EventRate, Interval, PEAK_BYTES};
use crate::statistic::median_interval;

/// Pairs of batches. All agree, unless the operation allocates at random or once in a while.
const PAIRS: usize = 3;
/// Iterations of the shorter batch of a pair; the longer one has twice as many. What a batch allocates whatever its length
/// cancels out. A fixed number, since the lengths of the samples differ from run to run.
const FEW: u64 = 16;

impl Trial<'_> {
    /// Counts the allocations of an iteration. Nothing is counted in a program without such an allocator.
    ///
    /// # Errors
    /// The subject fails.
    pub fn count_allocations(&mut self) -> Result<(), CaseEnd> {
        if !allocation::is_declared() {
            return Ok(());
        }
        let clock = self.clock.for_allocation_counting();
        let few = self.samples.last().map_or(FEW, |sample| sample.iterations.clamp(1, FEW));
        let mut counts = |iterations| -> Result<Counts, CaseEnd> {
            allocation::take_counts();
            self.subject.run(iterations, &clock)?;
            Ok(allocation::take_counts())
        };
        let one = counts(1)?;
        let (mut blocks, mut bytes) = ([0.0; PAIRS], [0.0; PAIRS]);
        for pair in 0..PAIRS {
            let (short, long) = (counts(few)?, counts(2 * few)?);
            let each = |more: u64, less: u64| more.saturating_sub(less) as f64 / few as f64;
            blocks[pair] = each(long.allocations, short.allocations);
            bytes[pair] = each(long.bytes, short.bytes);
        }
        self.rates.extend(match one.brackets {
            0 => vec![EventRate {
                name: ALLOCATIONS.into(),
                rate: None,
                remark: Some("allocations of an operation that measures its own time".into()),
            }],
            _ => {
                rates([median_interval(&blocks), median_interval(&bytes), Interval::exactly(one.peak as f64)])
            }
        });
        Ok(())
    }
}

fn rates(found: [Interval; 3]) -> Vec<EventRate> {
    let names = [ALLOCATIONS, ALLOCATED_BYTES, PEAK_BYTES].into_iter().zip(found);
    names.map(|(name, rate)| EventRate { name: name.into(), rate: Some(rate), remark: None }).collect()
}
