//! A whole comparison: the cases one after the other, the canaries first.

use super::process::Launch;
use super::sequence::{Bout, ByTurns, Meeting, Progress};
use super::turns;
use crate::case::Scale;
use crate::clock::Clock;
use crate::environment::Fingerprint;
use crate::platform::cpu::{self, Aside};
use crate::platform::kernel_files::KernelFiles;
use crate::platform::signal;
use crate::record::paired::{CasePairs, LAYOUT, Paired, Rule, Why};
use crate::record::quantity;
use crate::statistic::Random;
use crate::trial::scratch;
use crate::{Error, Result};
use std::time::{SystemTime, UNIX_EPOCH};

/// Cases that no kernel and no wrapper can change: arithmetic in registers. If they move, the machine does.
pub const CANARIES: [&str; 2] = ["known_work/add", "known_work/multiply"];

/// What is compared, and how.
pub struct Contest<'a> {
    /// How the sides are started.
    pub launches: [&'a Launch; 2],
    /// What they are, in words.
    pub sides: [String; 2],
    /// Whether they take turns.
    pub by_turns: bool,
    /// How verdicts are reached.
    pub rule: Rule,
    /// Seed of everything random.
    pub seed: u64,
    /// Size of the surroundings.
    pub scale: Scale,
}

/// A case that only one side has.
#[derive(Clone, Debug, PartialEq)]
pub struct Lone {
    /// The case.
    pub id: String,
    /// Which side.
    pub side: char,
}

impl Lone {
    /// How it stands among the others.
    fn record(&self) -> CasePairs {
        let mut case = CasePairs { id: self.id.clone(), ..CasePairs::default() };
        case.end(Why::Lone, format!("only side {} has it", self.side));
        case
    }
}

/// A comparison with its CPU and its clock.
pub struct Ring {
    clock: Clock,
    claimed: Option<cpu::Claimed>,
    cpu: usize,
    aside: Aside,
    fingerprint: Fingerprint,
}

impl Drop for Ring {
    fn drop(&mut self) {
        // A side that had to be killed has left its own.
        scratch::sweep_up(&scratch::place());
    }
}

impl Ring {
    /// Takes a CPU for the sides, steps aside from it, and calibrates the clock that they share.
    pub fn enter() -> Result<Self> {
        signal::watch()?;
        scratch::sweep_up(&scratch::place());
        let fingerprint = Fingerprint::take(&KernelFiles::live(), &scratch::place());
        let clock = Clock::start_up();
        let claimed = cpu::claim();
        let cpu = claimed.as_ref().map_or_else(cpu::current, |claimed| claimed.cpu);
        Ok(Self { clock, cpu, claimed, aside: Aside::from(cpu)?, fingerprint })
    }

    /// The cases of both builds in A's order, and those that only one of them has, each with that side.
    pub fn cases(&self, launches: [&Launch; 2]) -> Result<(Vec<String>, Vec<Lone>)> {
        let a = turns::cases(launches[0], &self.aside)?;
        let b = turns::cases(launches[1], &self.aside)?;
        let only = |side, ours: &[String], theirs: &[String]| -> Vec<Lone> {
            let lone = ours.iter().filter(|id| !theirs.contains(id));
            lone.map(|id| Lone { id: id.clone(), side }).collect()
        };
        let lone = [only('A', &a, &b), only('B', &b, &a)].concat();
        Ok((a.into_iter().filter(|id| b.contains(id)).collect(), lone))
    }

    /// What a reader should know of the place.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.aside.is_aside() {
            notes.push(
                "there is one CPU: the driver shares it with the sides, which adds a switch to every turn and \
                 lets a turn begin with colder caches"
                    .into(),
            );
        }
        if self.claimed.is_none() {
            notes.push(format!("CPU {} could not be claimed: another measurement may run on it", self.cpu));
        }
        notes
    }

    /// Compares one case by turns, as one of so many. `spin` slows a side on purpose.
    pub fn case(
        &self,
        contest: &Contest<'_>,
        id: &str,
        cases: usize,
        spin: [f64; 2],
        random: &mut Random,
        watch: &mut dyn FnMut(&Progress<'_>, Option<&turns::Pair>),
    ) -> Result<CasePairs> {
        self.bout(contest, cases).case(id, spin, &mut ByTurns, random, watch)
    }

    /// Ticks of the sides' clock in ns.
    pub fn nanoseconds(&self, ticks: f64) -> f64 {
        ticks * 1e9 / self.clock.hz()
    }

    /// Frequency of the measured core just now, Hz.
    pub fn core_hz(&self) -> f64 {
        // The driver keeps off that CPU; for the moment of a chain it goes there. Where it may not, its own will do.
        cpu::while_on(self.cpu, || self.clock.core_hz()).unwrap_or_else(|_| self.clock.core_hz())
    }

    fn bout<'a>(&'a self, contest: &Contest<'a>, cases: usize) -> Bout<'a> {
        Bout {
            launches: contest.launches,
            clock: &self.clock,
            cpu: self.cpu,
            aside: &self.aside,
            scale: contest.scale,
            rule: contest.rule,
            cases,
        }
    }

    /// Compares these cases. `watch` hears of every pair, `keep` of every case that has ended.
    pub fn compare(
        &self,
        contest: &Contest<'_>,
        ids: &[String],
        lone: &[Lone],
        meeting: &mut dyn Meeting,
        watch: &mut dyn FnMut(&Progress<'_>),
        keep: &mut dyn FnMut(&Paired) -> Result<()>,
    ) -> Result<Paired> {
        let mut paired = self.blank(contest);
        let mut random = Random::new(contest.seed);
        let bout = self.bout(contest, ids.len());
        for id in ids {
            let mut case = bout.case(id, [0.0; 2], meeting, &mut random, &mut |at, _| watch(at))?;
            if signal::pending().is_some() {
                break;
            }
            case.canary = CANARIES.contains(&id.as_str());
            paired.cases.push(case);
            keep(&paired)?;
        }
        paired.cases.extend(lone.iter().map(Lone::record));
        if let Err(reason) = self.clock.verify() {
            paired.notes.push(format!("the clock cannot be trusted: {reason}"));
        }
        Ok(paired)
    }

    fn blank(&self, contest: &Contest<'_>) -> Paired {
        // A clock before 1970 only spoils the name.
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Paired {
            paired: LAYOUT,
            tool: concat!("syscost ", env!("CARGO_PKG_VERSION")).into(),
            run: format!("{}-{}", quantity::utc(started), std::process::id()),
            started,
            seed: contest.seed,
            rule: contest.rule,
            by_turns: contest.by_turns,
            sides: contest.sides.clone(),
            fingerprint: self.fingerprint.clone(),
            cpu: self.cpu,
            notes: self.notes(),
            cases: Vec::new(),
        }
    }
}

/// The cases to run: those that match, behind the canaries that both sides have.
///
/// # Errors
/// None matches.
pub fn chosen(all: &[String], matches: impl Fn(&str) -> bool, canaries: bool) -> Result<Vec<String>> {
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
        assert_eq!(chosen(&all, |_| true, true).unwrap(), ["known_work/add", "call/u64/0", "syscall/bare"]);
        assert_eq!(
            chosen(&all, |id| id == "syscall/bare", true).unwrap(),
            ["known_work/add", "syscall/bare"]
        );
        assert_eq!(chosen(&all, |id| id == "syscall/bare", false).unwrap(), ["syscall/bare"]);
        assert!(chosen(&all, |_| false, true).is_err());
    }
}
