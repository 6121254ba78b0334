//! Turns of a paired comparison: about a millisecond of one case, while the other side waits.

use super::retraining::retrain_predictor;
use super::{CaseEnd, Trial, judge};
use crate::clock::{Delta, Ticks};
use crate::error;
use crate::platform::emulator_mark::Mark;
use crate::platform::proc::{CodeMapping, own_code_mappings};
use crate::platform::stack_sampler::{self, Stack, StackSampler};
use crate::platform::time;
use crate::record::EventRate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Times of one turn, with what else happened on the CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Ticks of each batch.
    pub ticks: Vec<u64>,
    /// Wall time of the whole turn, ns, including untimed preparation.
    pub elapsed_ns: f64,
    /// Frequency of the core just before, Hz, inferred from a chain of additions.
    pub core_hz: f64,
    /// Time that the thread was ready while a task outside the case ran, ns.
    pub waited_ns: Option<u64>,
    /// Stolen time of the CPU, clock ticks of 10 ms.
    pub stolen_ticks: Option<u64>,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl Trial<'_> {
    /// Runs `batches` batches of `iterations` between two readings of the counters, and judges them.
    ///
    /// # Errors
    /// The subject fails, or a claim does not hold.
    pub fn run_turn(&mut self, iterations: u64, batches: usize) -> Result<Turn, CaseEnd> {
        // A case that prepares each iteration resets the branch predictor by itself.
        if !self.case.one_by_one {
            let lap = self.lap_length();
            retrain_predictor(&mut *self.subject, iterations, lap, self.clock)?;
        }
        let core_hz = self.clock.core_hz();
        self.partners.read();
        let before = self.counters.read()?;
        let mut ticks = Vec::with_capacity(batches);
        let (start, ran) = (self.clock.start(), time::thread_cpu_ns());
        if let Some(sampler) = &self.sampler {
            sampler.begin_turn()?;
        }
        for _ in 0..batches {
            self.clock.mark(Mark::BeginBatch);
            ticks.push(self.run_batch(iterations)?);
            self.clock.mark(Mark::EndBatch);
        }
        self.clock.mark(Mark::EndTurn);
        if let Some(sampler) = &mut self.sampler {
            sampler.end_turn()?;
        }
        let ran_ns = time::thread_cpu_ns() - ran;
        let elapsed_ns = self.clock.nanoseconds(self.clock.stop() - start).0;
        let mut delta = Delta::between(&before, &self.counters.read()?);
        delta.partners = self.partners.read();
        if self.event.is_none() {
            let reported_ns = self.clock.nanoseconds(Ticks(ticks.iter().sum())).0;
            judge::check_reported_time(reported_ns, elapsed_ns, iterations * batches as u64)?;
        }
        judge::judge_sample(self.case, &delta, iterations * batches as u64, self.pinned)?;
        // An emulator that counts instructions at the marks needs no ticks; a tick may be longer than a batch.
        if ticks.contains(&0) && !self.clock.is_marked() {
            return Err(CaseEnd::Failed(
                "a batch took no time at all: nothing was done in the timed part".into(),
            ));
        }
        Ok(Turn {
            ticks,
            elapsed_ns,
            core_hz,
            waited_ns: judge::other_tasks_ns(self.case.own_tasks, &delta, elapsed_ns, ran_ns),
            stolen_ticks: delta.counted.stolen_ticks,
            involuntary_switches: delta.counted.involuntary_switches,
        })
    }

    /// One sentence per claim that has held so far.
    pub fn evidence(&self) -> &[String] {
        &self.evidence
    }

    /// The counts per iteration of events and allocations so far.
    pub fn counts(&self) -> &[EventRate] {
        &self.rates
    }

    /// One sentence per claim that could not be checked here.
    pub fn unchecked_claims(&self) -> &[String] {
        &self.unasked
    }
}

// Stacks of an operation, sampled inside the brackets of the clock while its turns run.

/// The sampled stacks of a process.
pub struct TurnSampler {
    sampler: StackSampler,
    counts: BTreeMap<Stack, u64>,
    lost: u64,
}

/// The stacks that were sampled in the turns of a process, as sent to the driver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledStacks {
    /// `cpu-cycles` or `cpu-clock`.
    pub event: String,
    /// Whether the kernel was sampled, too.
    pub with_kernel: bool,
    /// Time from one sample to the next, ns.
    pub period_ns: u64,
    /// The file of the program.
    pub program: String,
    /// Samples that were lost because a turn was too long for the ring.
    pub lost: u64,
    /// Every distinct address in the stacks.
    pub addresses: Vec<CodeAddress>,
    /// Each distinct stack: how often it was sampled, and the indices of its addresses in `addresses`. The executed address is
    /// first, its callers follow.
    pub stacks: Vec<(u64, Vec<u32>)>,
}

/// An address of code, as another process can look it up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CodeAddress {
    /// The offset in `file`, or without a file the address itself.
    pub address: u64,
    /// The mapped file, or a name in brackets (`[vdso]`); empty for code that no file holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl TurnSampler {
    /// Opens a sampler for this thread and, if it stays on `cpu`, for the children that it makes from now on.
    ///
    /// # Errors
    /// Perf events are not available here.
    pub fn open(cpu: Option<usize>, core_hz: f64) -> error::Result<Self> {
        Ok(Self { sampler: StackSampler::open(cpu, core_hz)?, counts: BTreeMap::new(), lost: 0 })
    }

    pub(super) fn begin_turn(&self) -> error::Result<()> {
        // Closes the bracket of the turn itself, which is not an operation.
        stack_sampler::close_bracket();
        self.sampler.enable()
    }

    pub(super) fn end_turn(&mut self) -> error::Result<()> {
        self.sampler.disable()?;
        let (stacks, lost) = self.sampler.take_stacks();
        for stack in stacks.into_iter().filter(|stack| !stack.is_empty()) {
            *self.counts.entry(stack).or_default() += 1;
        }
        self.lost += lost;
        Ok(())
    }

    fn sampled_stacks(&self, mappings: &[CodeMapping]) -> SampledStacks {
        let distinct: Vec<_> = {
            let mut all: Vec<_> = self.counts.keys().flatten().copied().collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let place = |address: &u64| distinct.binary_search(address).unwrap_or_default() as u32;
        let stacks = self.counts.iter().map(|(stack, count)| (*count, stack.iter().map(place).collect()));
        SampledStacks {
            event: self.sampler.event.into(),
            with_kernel: self.sampler.with_kernel,
            period_ns: stack_sampler::PERIOD_NS,
            program: std::env::current_exe().map(|file| file.display().to_string()).unwrap_or_default(),
            lost: self.lost,
            stacks: stacks.collect(),
            addresses: distinct.iter().map(|address| locate(*address, mappings)).collect(),
        }
    }
}

impl Trial<'_> {
    /// Samples the turns from now on, if there is a sampler.
    pub fn sample_turns(&mut self, sampler: Option<TurnSampler>) {
        self.sampler = sampler;
    }

    /// What was sampled so far; `None` if the turns are not sampled.
    pub fn sampled_stacks(&self) -> Option<SampledStacks> {
        let mappings = own_code_mappings().unwrap_or_default();
        Some(self.sampler.as_ref()?.sampled_stacks(&mappings))
    }
}

/// Finds the file that is mapped at this address.
fn locate(address: u64, mappings: &[CodeMapping]) -> CodeAddress {
    let found = mappings.iter().find_map(|mapping| Some((mapping.place_in_file(address)?, mapping)));
    match found {
        Some((place, mapping)) => CodeAddress { address: place, file: Some(mapping.file.clone()) },
        None => CodeAddress { address, file: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_the_file_that_is_mapped_there() {
        let text = "55d0a000-55d0b000 r--p 00000000 fd:00 12 /usr/bin/a b\n\
                    55d0b000-55d0c000 r-xp 00001000 fd:00 12                 /usr/bin/a b\n\
                    7ff00000-7ff01000 rwxp 00000000 00:00 0\n\
                    7ff10000-7ff12000 r-xp 00000000 00:00 0                  [vdso]\n";
        let mappings: Vec<_> = text.lines().filter_map(CodeMapping::parse).collect();
        let found = |address| locate(address, &mappings);
        let file = |name: &str| Some(name.to_owned());
        assert_eq!(found(0x55d0_b010), CodeAddress { address: 0x1010, file: file("/usr/bin/a b") });
        assert_eq!(found(0x7ff1_1000), CodeAddress { address: 0x1000, file: file("[vdso]") });
        for nowhere in [0x55d0_a010, 0x7ff0_0010, 0xffff_ffff_8100_0000] {
            assert_eq!(found(nowhere), CodeAddress { address: nowhere, file: None });
        }
    }
}
