//! Clocks by which something else than time is counted in the same brackets: instructions, allocations.

use super::{Clock, Source};
use crate::platform::emulator_mark::{self, Mark};
use crate::platform::{allocation, arch, bracket_steps, callgrind, stack_sampler, time};

impl Clock {
    /// A clock that stands still and has the allocations in its brackets counted.
    pub(crate) fn for_allocation_counting(&self) -> Self {
        Self { source: Source::Allocations, ..Self::with_scale(self.scale()) }
    }

    /// A clock that stands still and marks its brackets for
    /// [`count_steps`](crate::platform::bracket_steps::count_steps), in whose body alone it may be used.
    pub(crate) fn for_step_counting(&self) -> Self {
        Self { source: Source::Steps, ..Self::with_scale(self.scale()) }
    }

    /// Whether it is the clock of `for_step_counting`, which times nothing. A loop that divides its iterations among
    /// brackets then keeps them in one.
    #[doc(hidden)]
    pub fn counts_steps(&self) -> bool {
        self.source == Source::Steps
    }

    /// A clock that stands still and marks its brackets for [`callgrind`].
    pub(crate) fn for_callgrind(&self) -> Self {
        Self { source: Source::Callgrind, ..Self::with_scale(self.scale()) }
    }

    /// This clock, with brackets that are marked for a [`stack_sampler`].
    pub(crate) fn for_stack_sampling(self) -> Self {
        Self { source: Source::Sampled { counter: self.reads_counter() }, ..self }
    }

    /// This clock for counting the instructions of an operation that is timed. A read of the counter always executes the same
    /// number of instructions. A read of the kernel's clock is repeated while a tick updates it, so a clock that stands still
    /// replaces it.
    pub(crate) fn for_instruction_counting(&self) -> Self {
        let source = if self.reads_counter() { Source::Counter } else { Source::Still };
        Self { source, ..Self::with_scale(self.scale()) }
    }

    /// [`Clock::start`] of all other sources. A function of its own, so that a bracket by the counter contains no more code
    /// than it needs.
    #[cold]
    #[inline(never)]
    pub(super) fn start_apart(&self) -> u64 {
        match self.source {
            Source::Allocations => allocation::open_bracket(),
            Source::Steps => bracket_steps::execute_mark(),
            Source::Callgrind => callgrind::toggle(),
            Source::Marked => {
                let ticks = arch::start();
                emulator_mark::execute(Mark::BeginBracket);
                return ticks;
            }
            Source::Sampled { counter } => {
                stack_sampler::open_bracket();
                return if counter { arch::start() } else { time::monotonic_raw_ns() };
            }
            Source::Counter | Source::Kernel | Source::Still => {}
        }
        0
    }

    #[cold]
    #[inline(never)]
    pub(super) fn stop_apart(&self) -> u64 {
        match self.source {
            Source::Allocations => allocation::close_bracket(),
            Source::Steps => bracket_steps::execute_mark(),
            Source::Callgrind => callgrind::toggle(),
            Source::Marked => {
                emulator_mark::execute(Mark::EndBracket);
                return arch::stop();
            }
            Source::Sampled { counter } => {
                let ticks = if counter { arch::stop() } else { time::monotonic_raw_ns() };
                stack_sampler::close_bracket();
                return ticks;
            }
            Source::Counter | Source::Kernel | Source::Still => {}
        }
        0
    }
}
