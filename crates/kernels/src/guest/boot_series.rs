//! All boots of a comparison: two of each kernel, and more of both kernels if the counts of two boots differ.

use super::boot::{Boot, Machine, boot};
use super::console::{Question, Questions, VERSION, is_canary};
use super::initramfs;
use super::kernel::Kernel;
use crate::counted_change::{BOOTS_OF_NOISY, has_equal_counts, is_noisy};
use crate::executed::execution_log::ExecutionLog;
use crate::executed::function_table::CaseDifference;
use crate::instruction_counts::CaseCounts;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use syscost_engine::record::guest_side::GuestSide;
use syscost_platform::error::{Error, Result};

/// Boots of each kernel whose counts must agree; if they differ, more boots follow.
pub const BOOTS: usize = 2;

/// Two kernels and how they are booted.
pub struct Series<'a> {
    /// A and B.
    pub kernels: &'a [Kernel; 2],
    /// The bytes of the static program that runs as the guest's first process.
    pub program: &'a [u8],
    /// How they are booted; its initramfs is replaced by one with the questions.
    pub machine: Machine,
    /// Boots of each kernel. Fewer than [`BOOTS`] cannot show differences between boots, and then no more follow.
    pub boots: usize,
    /// Guests that run at the same time. They do not disturb each other's counts.
    pub at_once: usize,
    /// Called before each boot with its kernel and the number of cases that it counts.
    pub announce: &'a (dyn Fn(&Kernel, usize) + Sync),
}

/// The results of all boots.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// A and B.
    pub sides: [GuestSide; 2],
    /// The cases, in the order of the questions.
    pub cases: Vec<CaseCounts>,
    /// The executed instructions of the first boot of each kernel with symbols; `None` without the plugin.
    pub logs: [Option<ExecutionLog>; 2],
}

impl Series<'_> {
    /// Counts all cases on both kernels, and cases whose counts differ between boots again in more boots of both.
    ///
    /// # Errors
    /// There is no emulator, the initramfs cannot be written, or this process was interrupted.
    pub fn run(&self, questions: &Questions) -> Result<Outcome> {
        let mut outcome = Outcome::new(self.kernels, questions);
        let first = Questions { wants_symbols: self.machine.plugin.is_some(), ..questions.clone() };
        self.boot_with_seeds(&first, 0..self.boots, &mut outcome)?;
        outcome.name_moved_functions(questions);
        if self.boots < BOOTS {
            return Ok(outcome);
        }
        let again = outcome.noisy_questions(questions);
        if !again.cases.is_empty() {
            self.boot_with_seeds(&again, BOOTS..BOOTS_OF_NOISY, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// Boots each kernel once with each of these seeds, and adds the results to `outcome`.
    fn boot_with_seeds(
        &self,
        questions: &Questions,
        seeds: Range<usize>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let machine = self.prepare_machine(questions)?;
        // A, B, B, A, …: if the series ends early, both sides have nearly as many boots.
        let plan: Vec<(usize, usize)> =
            seeds.flat_map(|seed| [(seed % 2, seed), (1 - seed % 2, seed)]).collect();
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || loop {
            let Some(&(side, seed)) = plan.get(next.fetch_add(1, Ordering::SeqCst)) else { return };
            (self.announce)(&self.kernels[side], questions.cases.len());
            let ended = boot(&machine, &self.kernels[side], seed);
            if ended.is_err() {
                next.store(plan.len(), Ordering::SeqCst);
            }
            if let Ok(mut done) = done.lock() {
                done.push((side, ended));
            }
        };
        std::thread::scope(|scope| {
            (1..self.at_once).for_each(|_| _ = scope.spawn(work));
            work();
        });
        for (side, ended) in done.into_inner().unwrap_or_default() {
            outcome.add(side, ended?);
        }
        Ok(())
    }

    /// Writes an initramfs with these questions, and returns the machine that has it.
    fn prepare_machine(&self, questions: &Questions) -> Result<Machine> {
        let asked =
            serde_json::to_vec(questions).map_err(|e| Error::file("the questions", "writing", e.into()))?;
        let name = format!("initramfs-{}", questions.cases.len());
        let initramfs = initramfs::write(&self.machine.scratch, &name, self.program, &asked)?;
        Ok(Machine { initramfs, ..self.machine.clone() })
    }
}

impl Outcome {
    fn new(kernels: &[Kernel; 2], questions: &Questions) -> Self {
        let side = |kernel: &Kernel| GuestSide { name: kernel.name.clone(), ..GuestSide::default() };
        let case = |Question { id, .. }: &Question| CaseCounts {
            canary: is_canary(id),
            id: id.clone(),
            ..CaseCounts::default()
        };
        let cases = questions.cases.iter().map(case).collect();
        Self { sides: kernels.each_ref().map(side), cases, logs: [None, None] }
    }

    fn add(&mut self, side: usize, boot: Boot) {
        let guest_side = &mut self.sides[side];
        guest_side.boots += 1;
        guest_side.faults.extend(boot.fault);
        guest_side.identity = guest_side.identity.take().or(boot.transcript.hello);
        let has_symbols = |log: &ExecutionLog| !log.symbols.is_empty();
        self.logs[side] = self.logs[side].take().or(boot.log.filter(has_symbols));
        for answer in boot.transcript.answers {
            if let Some(case) = self.cases.iter_mut().find(|case| case.id == answer.id) {
                case.sides[side].push(answer.outcome);
            }
        }
    }

    /// Notes in each case the functions whose instructions changed.
    fn name_moved_functions(&mut self, questions: &Questions) {
        let [Some(a), Some(b)] = &self.logs else { return };
        for (case, question) in self.cases.iter_mut().zip(&questions.cases) {
            let difference = CaseDifference::between([a, b], &case.id, question.iterations);
            case.moved = difference.map_or(Vec::new(), |difference| difference.moved());
        }
    }

    /// The cases that both kernels counted, but with counts that differ between boots of one kernel.
    fn noisy_questions(&self, questions: &Questions) -> Questions {
        let is_open = |id: &str| {
            let case = self.cases.iter().find(|case| case.id == id);
            case.is_some_and(|case| {
                let counted = |at: usize| case.sides[at].iter().any(|outcome| outcome.count().is_some());
                let differs = counted(0) && counted(1) && !has_equal_counts(case);
                differs && case.sides.iter().any(|side| is_noisy(side))
            })
        };
        let cases = questions.cases.iter().filter(|question| is_open(&question.id)).cloned().collect();
        Questions { version: VERSION, cases, wants_symbols: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::console::{Answer, Transcript};
    use crate::instruction_counts::{Count, CountOutcome};

    fn questions() -> Questions {
        let question = |id: &str| Question { id: id.into(), iterations: 10 };
        Questions { version: VERSION, cases: ["a", "b"].map(question).to_vec(), wants_symbols: false }
    }

    fn said(counts: &[(&str, u64)]) -> Boot {
        let answer = |(id, more): &(&str, u64)| {
            let count = Count { iterations: 10, batches: [100, 100 + more], repetitions: [0; 2] };
            Answer { id: (*id).into(), outcome: CountOutcome::Counted(count) }
        };
        let answers = counts.iter().map(answer).collect();
        Boot {
            transcript: Transcript { answers, ended: true, ..Transcript::default() },
            fault: None,
            log: None,
        }
    }

    #[test]
    fn only_cases_whose_counts_differ_between_boots_are_counted_again() {
        let mut outcome = Outcome::new(&Default::default(), &questions());
        for (side, b) in [(0, 7), (0, 7), (1, 7), (1, 9)] {
            outcome.add(side, said(&[("a", 5), ("b", b), ("unasked", 1)]));
        }
        let again = outcome.noisy_questions(&questions()).cases;
        assert_eq!(again.iter().map(|question| question.id.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(outcome.sides.map(|side| side.boots), [2, 2]);
    }

    #[test]
    fn cases_that_one_kernel_never_counted_are_not_counted_again() {
        let mut outcome = Outcome::new(&Default::default(), &questions());
        outcome.add(0, said(&[("a", 5)]));
        outcome
            .add(1, Boot { transcript: Transcript::default(), fault: Some("it panicked".into()), log: None });
        assert!(outcome.noisy_questions(&questions()).cases.is_empty());
        assert_eq!(outcome.sides[1].faults, ["it panicked"]);
    }
}
