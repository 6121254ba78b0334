//! A comparison whose sides run in guests. Each pair of fresh boots gives one pair to every open case.
//!
//! The unit of a verdict is the boot, because times within a boot deviate less than times of two boots: a kernel places its
//! data once per boot. So a pair of boots gives every open case one pair, in random order; settled cases drop out.

use super::experiment::{CANARIES, Plan, Testbed};
use super::running_side::Start;
use super::sequence::{ByTurns, CasePairing, OpenCase, Progress};
use crate::error::Result;
use crate::platform::signal;
use crate::record::paired::{CasePairs, Paired, Why};
use crate::statistic::Random;

/// Number of consecutive pairs of boots without a pair of any case after which the comparison ends.
const FRUITLESS: usize = 2;

/// The two sides of a pair of boots.
pub type BootedSides = [Box<dyn Start>; 2];

/// Boots the sides.
pub trait Boots {
    /// Boots both sides afresh, the side `first` before the other. The inner error is the reason why a side did not boot.
    ///
    /// # Errors
    /// No boot can succeed, or a signal arrived.
    fn next(&mut self, first: usize) -> Result<std::result::Result<BootedSides, String>>;
    /// Whether a difference of the core's frequency between the sides is meaningful. An emulator's core has no frequency.
    fn has_frequency(&self) -> bool;
    /// Adds the identities of the sides to the record.
    fn describe_sides(&self, paired: &mut Paired);
}

/// A comparison by boots while it runs.
struct Course<'a> {
    testbed: &'a Testbed,
    plan: &'a Plan,
    open: Vec<OpenCase>,
    random: Random,
}

impl Testbed {
    /// Compares these cases on pairs of boots. `watch` is called before every pair, `keep` with the record so far after
    /// every pair of boots.
    ///
    /// # Errors
    /// No boot can succeed, or `keep` fails.
    pub fn compare_by_boots(
        &self,
        plan: &Plan,
        ids: &[String],
        boots: &mut dyn Boots,
        watch: &mut dyn FnMut(&Progress<'_>),
        keep: &mut dyn FnMut(&Paired) -> Result<()>,
    ) -> Result<Paired> {
        let mut paired = self.new_record(plan);
        let open = ids.iter().map(|id| OpenCase::new(id)).collect();
        let mut course = Course { testbed: self, plan, open, random: Random::new(plan.seed) };
        let mut fruitless = 0;
        while !course.unfinished_cases().is_empty() && signal::pending().is_none() {
            let booted = boots.next(course.random.number_below(2));
            if signal::pending().is_some() {
                break;
            }
            let why = match booted? {
                Ok(sides) if course.run_open_cases(&sides, boots.has_frequency(), watch)? => None,
                Ok(_) => Some("a guest ended before a case got its pair".to_owned()),
                Err(why) => Some(why),
            };
            fruitless = why.as_ref().map_or(0, |_| fruitless + 1);
            if let Some(why) = why.filter(|_| fruitless == FRUITLESS) {
                course.end_open_cases(&why);
            }
            paired.cases = course.case_pairs();
            boots.describe_sides(&mut paired);
            keep(&paired)?;
        }
        Ok(paired)
    }
}

impl Course<'_> {
    /// The indices of the cases that need more pairs.
    fn unfinished_cases(&self) -> Vec<usize> {
        let is_open =
            |at: &usize| self.open[*at].case.pairs_needed(&self.plan.rule, self.open.len()).is_some();
        (0..self.open.len()).filter(is_open).collect()
    }

    /// Runs a pair of every open case on these boots, in random order, until a side ends. Returns whether a case got a pair.
    fn run_open_cases(
        &mut self,
        sides: &BootedSides,
        has_frequency: bool,
        watch: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<bool> {
        let mut order = self.unfinished_cases();
        self.random.shuffle(&mut order);
        let pairing = self.testbed.case_pairing(self.plan, [&*sides[0], &*sides[1]], self.open.len());
        // A guest has only CPU 0.
        let pairing = CasePairing { cpu: 0, one_frequency: has_frequency, ..pairing };
        let mut is_served = false;
        for at in order {
            let open = &mut self.open[at];
            pairing.run_next_pair(open, [0.0; 2], &mut ByTurns, &mut self.random, &mut |at, _| watch(at))?;
            if signal::pending().is_some() || !sides.iter().all(|side| side.can_start_another()) {
                break;
            }
            is_served = true;
        }
        Ok(is_served)
    }

    /// Ends every open case without a verdict.
    fn end_open_cases(&mut self, why: &str) {
        for at in self.unfinished_cases() {
            self.open[at].case.end_without_verdict(Why::Failed, why.to_owned());
        }
    }

    fn case_pairs(&self) -> Vec<CasePairs> {
        let is_canary = |id: &str| CANARIES.contains(&id);
        let case = |open: &OpenCase| CasePairs { canary: is_canary(&open.case.id), ..open.case.clone() };
        self.open.iter().map(case).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::paired::Rule;
    use syscost_engine::case::Scale;

    fn plan() -> Plan {
        let sides = ["a", "b"].map(str::to_owned);
        Plan { sides, by_turns: true, rule: Rule::default(), seed: 1, scale: Scale::Smoke, placement: None }
    }

    struct Never(usize);

    impl Boots for Never {
        fn next(&mut self, _first: usize) -> Result<std::result::Result<BootedSides, String>> {
            self.0 += 1;
            Ok(Err("it panicked".into()))
        }

        fn has_frequency(&self) -> bool {
            true
        }

        fn describe_sides(&self, paired: &mut Paired) {
            paired.notes = vec![format!("{} boots", self.0)];
        }
    }

    #[test]
    fn kernels_that_do_not_boot_are_tried_twice_and_every_case_has_the_reason() {
        let (testbed, mut boots, mut kept) = (Testbed::set_up().expect("entered"), Never(0), 0);
        let ids = ["known_work/add", "syscall/getpid"].map(str::to_owned);
        let mut keep = |_: &Paired| {
            kept += 1;
            Ok(())
        };
        let paired = testbed.compare_by_boots(&plan(), &ids, &mut boots, &mut |_| (), &mut keep);
        let Paired { cases, notes, .. } = paired.expect("compared");
        assert_eq!(notes, ["2 boots"]);
        assert_eq!((boots.0, kept), (FRUITLESS, FRUITLESS));
        let why = |case: &CasePairs| case.ended.as_ref().map(|ended| ended.sentence.clone());
        assert!(cases.iter().all(|case| why(case).as_deref() == Some("it panicked")), "{cases:?}");
        assert!(cases[0].canary && !cases[1].canary);
    }
}
