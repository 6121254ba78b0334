//! Detects whether a new task started before its creator returned from the call.

use crate::kit::contract::*;
use crate::platform::shared::{Word, Words};
use std::sync::atomic::Ordering::SeqCst;

/// Shared memory in which a new task notes that its creator had not returned yet when it started.
pub struct Order(Words);

impl Order {
    /// Maps the memory.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel refuses the mapping.
    pub fn new() -> Result<Self> {
        Words::new().map(Self)
    }

    /// Two flags: whether the creator has returned, and whether the task started before that.
    #[inline(always)]
    fn returned_and_early(&self) -> [&Word; 2] {
        [&self.0[0], &self.0[1]]
    }

    /// Clears both flags. Called before a task is created.
    #[inline(always)]
    pub fn clear_flags(&self) {
        self.returned_and_early().iter().for_each(|flag| flag.value.store(0, SeqCst));
    }

    /// Called by the task when it starts.
    #[inline(always)]
    pub fn note_start(&self) {
        let [returned, early] = self.returned_and_early();
        if returned.value.load(SeqCst) == 0 {
            early.value.store(1, SeqCst);
        }
    }

    /// Called by the creator when the creating call has returned.
    #[inline(always)]
    pub fn note_return(&self) {
        self.returned_and_early()[0].value.store(1, SeqCst);
    }

    /// Whether the task started before its creator returned. Called after the task has ended.
    pub fn was_early(&self) -> bool {
        self.returned_and_early()[1].value.load(SeqCst) != 0
    }
}

/// The number of times that a creation may be repeated because the new task started before its creator returned: the bracket then
/// holds a part of the task's life, too.
pub struct Repeats {
    left: u64,
    most: u64,
}

impl Repeats {
    /// The limit for a batch of this many creations: four times as many repetitions, plus 16.
    pub fn for_batch(iterations: u64) -> Self {
        let most = 4 * iterations + 16;
        Self { left: most, most }
    }

    /// Decides whether the creation that `order` has seen counts. Called after the task has ended.
    ///
    /// This yields the CPU, so that a repeated creation starts with a new time slice. Otherwise the slice of the creator
    /// could end inside every long call, and the new task would run first at every return.
    ///
    /// # Errors
    /// [`Error::Disturbed`] if the repetitions are used up: other tasks want this CPU, or the scheduler runs new tasks
    /// first.
    pub fn judge_creation(&mut self, call: &str, order: &Order) -> Result<Counts> {
        if !order.was_early() {
            return Ok(Counts::Yes);
        }
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            Error::Disturbed(format!(
                "in {} calls of {call} the new task began before it returned: other tasks want this CPU, or this \
                 scheduler lets new tasks come first",
                self.most
            ))
        })?;
        std::thread::yield_now();
        Ok(Counts::Again)
    }
}

/// Claims that tasks were created. The kernel counts those of the whole machine, so there must be at least one per
/// iteration.
pub fn tasks_were_created(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    match delta.counted.created {
        Some(count) if count < iterations => Err(format!(
            "{count} tasks were created on the whole machine in {iterations} iterations: there was no child in each"
        )),
        Some(count) => Ok(format!("{count} tasks were created on this machine in {iterations} iterations")),
        None => Ok("the kernel does not tell how many tasks were created".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::testing::run_in_child_process;

    #[test]
    fn a_child_that_starts_early_is_repeated_until_the_limit() {
        let order = Order::new().expect("a mapping");
        let mut repeats = Repeats::for_batch(1);
        order.clear_flags();
        order.note_start();
        for _ in 0..20 {
            assert_eq!(repeats.judge_creation("fork", &order).expect("repetitions are left"), Counts::Again);
        }
        assert!(matches!(repeats.judge_creation("fork", &order), Err(Error::Disturbed(_))));
    }

    #[test]
    fn a_child_that_starts_before_its_creator_returns_is_noticed() {
        let order = Order::new().expect("a mapping");
        for had_returned in [true, false] {
            order.clear_flags();
            if had_returned {
                order.note_return();
            }
            run_in_child_process(|| order.note_start());
            assert_eq!(order.was_early(), !had_returned);
        }
    }
}
