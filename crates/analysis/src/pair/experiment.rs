//! A whole comparison of two sides, case by case, with the canaries first.

use super::running_side::Start;
use super::sequence::{CasePairing, Progress, Schedule};
use super::turns;
use crate::error::{Error, Result};
use crate::platform::cpu::cpu_class::choose_own_cpus;
use crate::platform::cpu::{self, Aside};
use crate::platform::kernel_files::KernelFiles;
use crate::platform::process::inheritance;
use crate::platform::signal;
use crate::record::paired::{CasePairs, LAYOUT, Paired, Rule, Why};
use crate::statistic::Random;
use syscost_engine::case::Scale;
use syscost_engine::clock::{Clock, Dispute, check_clocks};
use syscost_engine::environment::{Fingerprint, Inherited};
use syscost_engine::record::quantity::fresh_run_name;
use syscost_engine::trial::scratch;

/// The cases that no kernel and no wrapper can change: arithmetic in registers. If one differs, the machine has changed.
pub const CANARIES: [&str; 2] = ["known_work/add", "known_work/multiply"];

/// The parameters of a comparison, and the descriptions of its sides.
#[derive(Clone)]
pub struct Plan {
    /// Descriptions of the sides for the record.
    pub sides: [String; 2],
    /// Whether the sides take turns; otherwise they run in blocks.
    pub by_turns: bool,
    /// The parameters of the verdicts.
    pub rule: Rule,
    /// Seed of all random choices.
    pub seed: u64,
    /// Scale of the cases' parameters.
    pub scale: Scale,
    /// The way in which functions are reordered for every pair; `None` if each side runs one link.
    pub placement: Option<&'static str>,
}

impl Plan {
    /// A comparison by turns at default scale, in which each side runs one link.
    pub fn by_turns(sides: [String; 2], rule: Rule, seed: u64) -> Self {
        Self { sides, by_turns: true, rule, seed, scale: Scale::Default, placement: None }
    }
}

/// A comparison of two sides of this machine.
pub struct Experiment<'a> {
    /// The starters of the sides.
    pub starts: [&'a dyn Start; 2],
    /// The parameters of the comparison.
    pub plan: Plan,
}

/// A case that only one side has.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpaired {
    /// Id of the case.
    pub id: String,
    /// The side that has it: `A` or `B`.
    pub side: char,
}

impl Unpaired {
    /// The case as data of a comparison, without a pair.
    pub fn to_case_pairs(&self) -> CasePairs {
        let mut case = CasePairs { id: self.id.clone(), ..CasePairs::default() };
        case.end_without_verdict(Why::Lone, format!("only side {} has it", self.side));
        case
    }
}

/// The cases of two sides, and the differences of their builds.
pub struct Roster {
    /// Cases that both sides have, in A's order.
    pub ids: Vec<String>,
    /// Cases that only one side has.
    pub unpaired: Vec<Unpaired>,
    /// A sentence if the sides were built by different compilers or with different flags.
    pub differences: Vec<String>,
}

/// A sentence if the descriptions of two builds differ. A build of an earlier version has no description.
fn build_difference(a: Option<String>, b: Option<String>) -> Option<String> {
    let (a, b) = (a?, b?);
    (a != b).then(|| format!("A was built by {a}, B by {b}: the compiler is part of the change"))
}

/// The CPU and the clock of a comparison, claimed for its duration.
pub struct Testbed {
    /// The clock that the sides share.
    pub(super) clock: Clock,
    claimed: Option<cpu::Claimed>,
    /// The CPU on which the sides run.
    pub cpu: usize,
    /// Keeps this process off that CPU.
    pub(super) aside: Aside,
    fingerprint: Fingerprint,
    /// Sentences on the settings that the sides inherit.
    inherited: Vec<String>,
    /// Another clock, if it contradicts the one that measures.
    disputed: Option<Dispute>,
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // A side that was killed leaves its scratch directory behind.
        scratch::remove_orphans(&scratch::scratch_parent());
    }
}

impl Testbed {
    /// Claims a CPU for the sides, moves this process off it, and calibrates the clock that the sides share.
    ///
    /// # Errors
    /// A signal handler or the CPU affinity cannot be set.
    pub fn set_up() -> Result<Self> {
        choose_own_cpus()?;
        let notes = Inherited::read_once().deviation_sentences();
        inheritance::allow_owner_access();
        inheritance::leave_deadline_class();
        signal::watch_signals()?;
        scratch::remove_orphans(&scratch::scratch_parent());
        let fingerprint = Fingerprint::take(&KernelFiles::live(), &scratch::scratch_parent());
        let disputed = check_clocks()?;
        let clock = Clock::start_up();
        let claimed = cpu::claim_cpu();
        let cpu = claimed.as_ref().map_or_else(cpu::current_cpu, |claimed| claimed.cpu);
        let aside = Aside::keep_off(cpu)?;
        Ok(Self { clock, cpu, claimed, aside, fingerprint, inherited: notes, disputed })
    }

    /// The cases that both sides have, in A's order, and those that only one side has.
    ///
    /// # Errors
    /// A side cannot be started, or is no bench of this version of syscost.
    pub fn match_cases(&self, starts: [&dyn Start; 2]) -> Result<Roster> {
        let (a, build_a) = turns::list_cases(starts[0], &self.aside)?;
        let (b, build_b) = turns::list_cases(starts[1], &self.aside)?;
        let only = |side, ours: &[String], theirs: &[String]| -> Vec<Unpaired> {
            let unpaired = ours.iter().filter(|id| !theirs.contains(id));
            unpaired.map(|id| Unpaired { id: id.clone(), side }).collect()
        };
        let unpaired = [only('A', &a, &b), only('B', &b, &a)].concat();
        let ids = a.into_iter().filter(|id| b.contains(id)).collect();
        Ok(Roster { ids, unpaired, differences: Vec::from_iter(build_difference(build_a, build_b)) })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.inherited.clone();
        if !self.aside.has_other_cpu() {
            notes.push(
                "there is one CPU: the driver shares it with the sides, which adds a switch to every turn and \
                 lets a turn begin with colder caches"
                    .into(),
            );
        }
        if self.claimed.is_none() {
            notes.push(format!("CPU {} could not be claimed: another measurement may run on it", self.cpu));
        }
        notes.extend(self.disputed.as_ref().map(ToString::to_string));
        notes
    }

    /// Converts ticks of the sides' clock to nanoseconds.
    pub fn ticks_to_nanoseconds(&self, ticks: f64) -> f64 {
        ticks * 1e9 / self.clock.hz()
    }

    /// Current frequency of the measured core, Hz. This process moves to that CPU while it reads. If it may not move, it
    /// reads the frequency of its own core.
    pub fn core_hz(&self) -> f64 {
        cpu::run_on_cpu(self.cpu, || self.clock.core_hz()).unwrap_or_else(|_| self.clock.core_hz())
    }

    /// The common parameters of all pairs in a comparison of `cases` cases.
    pub fn case_pairing<'a>(
        &'a self,
        plan: &'a Plan,
        starts: [&'a dyn Start; 2],
        cases: usize,
    ) -> CasePairing<'a> {
        // Blocks compare settings, which may be settings of the frequency, so only turns require one frequency.
        CasePairing { testbed: self, plan, starts, cpu: self.cpu, cases, one_frequency: plan.by_turns }
    }

    /// Compares these cases. `watch` is called before every pair, `keep` with the record so far after every case.
    ///
    /// # Errors
    /// A side's state cannot be entered, or `keep` fails.
    pub fn compare_cases(
        &self,
        experiment: &Experiment<'_>,
        ids: &[String],
        unpaired: &[Unpaired],
        schedule: &mut dyn Schedule,
        watch: &mut dyn FnMut(&Progress<'_>),
        keep: &mut dyn FnMut(&Paired) -> Result<()>,
    ) -> Result<Paired> {
        let mut paired = self.new_record(&experiment.plan);
        let mut random = Random::new(experiment.plan.seed);
        let pairing = self.case_pairing(&experiment.plan, experiment.starts, ids.len());
        for id in ids {
            let mut case =
                pairing.compare_case(id, [0.0; 2], schedule, &mut random, &mut |at, _| watch(at))?;
            if signal::pending().is_some() {
                break;
            }
            case.canary = CANARIES.contains(&id.as_str());
            paired.cases.push(case);
            keep(&paired)?;
        }
        paired.cases.extend(unpaired.iter().map(Unpaired::to_case_pairs));
        if let Err(reason) = self.clock.verify_frequency() {
            paired.notes.push(format!("the clock cannot be trusted: {reason}"));
        }
        Ok(paired)
    }

    pub(super) fn new_record(&self, plan: &Plan) -> Paired {
        let (started, run) = fresh_run_name();
        Paired {
            paired: LAYOUT,
            tool: concat!("syscost ", env!("CARGO_PKG_VERSION")).into(),
            run,
            started,
            seed: plan.seed,
            rule: plan.rule,
            by_turns: plan.by_turns,
            placement: plan.placement.map(str::to_owned),
            sides: plan.sides.clone(),
            guests: None,
            fingerprint: self.fingerprint.clone(),
            cpu: self.cpu,
            notes: self.notes(),
            cases: Vec::new(),
        }
    }
}

/// The matching cases, preceded by the canaries that both sides have.
///
/// # Errors
/// No case matches.
pub fn choose_cases(all: &[String], matches: impl Fn(&str) -> bool, canaries: bool) -> Result<Vec<String>> {
    let wanted: Vec<_> = all.iter().filter(|id| matches(id)).collect();
    if wanted.is_empty() {
        return Err(Error::Usage(
            "no case that both sides have matches the filter; `syscost list` prints ours".into(),
        ));
    }
    let is_canary = |id: &&String| CANARIES.contains(&id.as_str());
    let first = all.iter().filter(|id| is_canary(id) && canaries);
    let rest = wanted.into_iter().filter(|id| !(canaries && is_canary(id)));
    Ok(first.chain(rest).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canaries_run_first_and_once() {
        let all = ["call/u64/0", "known_work/add", "syscall/bare"].map(String::from);
        assert_eq!(
            choose_cases(&all, |_| true, true).unwrap(),
            ["known_work/add", "call/u64/0", "syscall/bare"]
        );
        assert_eq!(
            choose_cases(&all, |id| id == "syscall/bare", true).unwrap(),
            ["known_work/add", "syscall/bare"]
        );
        assert_eq!(choose_cases(&all, |id| id == "syscall/bare", false).unwrap(), ["syscall/bare"]);
        assert!(choose_cases(&all, |_| false, true).is_err());
    }
}
