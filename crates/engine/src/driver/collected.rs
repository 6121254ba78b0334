//! Collects the results of one group's processes: executions of its cases, which are joined into one outcome per case.

use super::group_notes;
use super::plan::Planned;
use super::process_task::{CaseExecution, Wanted};
use super::rounds::{CONDEMNING, Rounds};
use super::supervision::ProcessRun;
use crate::environment::Fingerprint;
use crate::record::{CaseRecord, GroupRun, Measured, Outcome, Tally};
use crate::study::executions::{pool_executions, quiet_of_executions};
use crate::study::interval::draw_to_kind;
use crate::study::reference_frequency::core_frequency;
use crate::trial::CaseEnd;

/// The executions of one group.
pub(super) struct Collected<'a> {
    pub(super) planned: &'a Planned<'a>,
    /// The group as its processes described it: clock, CPU and notes, without cases.
    run: GroupRun,
    cases: Vec<Executions>,
    /// Whether no further process is started, because one of this group ended before it was ready to measure.
    closed: bool,
}

/// The executions of one case.
#[derive(Default)]
struct Executions {
    title: String,
    measured: Vec<Measured>,
    disturbed: Vec<String>,
    contradicted: Vec<String>,
    /// A skip or a failure, which ends the case.
    ended: Option<Outcome>,
    /// Duration of the first execution, which includes the proof of the claims, seconds; 0 if there was none.
    first: f64,
    /// Duration of the longest later execution, seconds; 0 if there was none.
    later: f64,
}

impl<'a> Collected<'a> {
    pub(super) fn new(planned: &'a Planned<'a>) -> Self {
        let run = GroupRun {
            name: planned.group.name.into(),
            version: planned.group.version_text(),
            ..GroupRun::default()
        };
        let cases = planned.ids.iter().map(|_| Executions::default()).collect();
        Self { planned, run, cases, closed: false }
    }

    /// Adds the results of one process.
    pub(super) fn add(&mut self, process: ProcessRun) {
        let (first, never_ready) = (self.run.clock.source.is_empty(), process.run.clock.source.is_empty());
        let ProcessRun { run, cases, cut_short } = process;
        if first {
            (self.run.clock, self.run.cpu) = (run.clock, run.cpu);
            self.run.version = if never_ready { std::mem::take(&mut self.run.version) } else { run.version };
        }
        let elsewhere = run.cpu.filter(|_| !never_ready && run.cpu != self.run.cpu);
        for note in run.notes.into_iter().chain(elsewhere.map(other_cpu_note)) {
            if !self.run.notes.contains(&note) {
                self.run.notes.push(note);
            }
        }
        self.run.wire = self.run.wire.take().or(run.wire);
        // A process that failed before it was ready would fail again.
        self.closed |= cut_short.is_some() && never_ready;
        for execution in cases {
            if let Some(place) = self.planned.ids.iter().position(|id| *id == execution.id) {
                self.cases[place].add(execution);
            }
        }
        if let Some(sentence) = cut_short.filter(|_| self.closed) {
            let left = self.cases.iter().filter(|case| case.is_empty()).count();
            if left > 0 {
                self.run.notes.push(format!("{left} cases were not measured: {sentence}"));
            }
        }
    }

    /// The cases that need another execution in this round (counted from 0): those with too few executions and, while there
    /// is `time`, those that are not settled.
    pub(super) fn wanted_cases(&self, rounds: &Rounds, round: usize, time: bool) -> Vec<Wanted> {
        let cases = self.planned.ids.iter().zip(&self.cases).filter(|_| !self.closed);
        cases.filter(|(_, case)| case.needs_execution(rounds, round, time)).map(wanted_case).collect()
    }

    /// The headline cases with at most `round` executions; only those of the first screen if `answers` is true.
    pub(super) fn wanted_headlines(&self, round: usize, answers: bool) -> Vec<Wanted> {
        let cases = self.planned.ids.iter().zip(&self.cases).filter(|_| !self.closed);
        let is_open = |case: &Executions| case.ended.is_none() && case.count() <= round;
        let is_wanted = |id| self.planned.headline(id).is_some_and(|headline| headline.is_answer || !answers);
        cases.filter(|(id, case)| is_wanted(id) && is_open(case)).map(wanted_case).collect()
    }

    /// The core's frequency in each execution, Hz.
    pub(super) fn core_frequencies(&self) -> impl Iterator<Item = f64> {
        self.cases.iter().flat_map(|case| &case.measured).filter_map(core_frequency)
    }

    /// The number of cases that were neither skipped nor failed so far.
    pub(super) fn count_runnable(&self) -> usize {
        self.cases.iter().filter(|case| case.ended.is_none()).count()
    }

    /// A line on the first round: `call: 45 measured, 2 skipped, 0 failed, in 3.1 s`.
    pub(super) fn summary_line(&self) -> String {
        let mut tally = Tally::default();
        for case in self.cases.iter().filter_map(|case| case.outcome(None)) {
            tally.add(&case);
        }
        // After one execution no case can be settled, so the line does not count unsettled ones.
        tally.unsettled = 0;
        let seconds: f64 = self.cases.iter().map(|case| case.first.max(case.later)).sum();
        format!("{}: {tally}, in {seconds:.1} s", self.planned.group.name)
    }

    /// Whether no process of this group has reported anything yet.
    pub(super) fn is_empty(&self) -> bool {
        self.run.clock.source.is_empty()
            && self.run.notes.is_empty()
            && self.cases.iter().all(Executions::is_empty)
    }

    /// The group for the record: its outcomes, with curves, fitted lines and notes that follow from several cases.
    pub(super) fn group_run(&self, fingerprint: &Fingerprint, core_hz: Option<f64>) -> GroupRun {
        let cases = self.planned.ids.iter().zip(&self.cases);
        let outcome = |(id, case): (&String, &Executions)| {
            Some(CaseRecord { id: id.clone(), title: case.title.clone(), outcome: case.outcome(core_hz)? })
        };
        let mut run = GroupRun { cases: cases.filter_map(outcome).collect(), ..self.run.clone() };
        draw_to_kind(run.cases.iter_mut().filter_map(CaseRecord::measured_mut));
        group_notes::add_series(&mut run, self.planned.group, fingerprint);
        let notes = [
            group_notes::frequency_note(&run),
            group_notes::prefetch_note(&run),
            group_notes::neighbour_note(&run),
        ];
        run.notes.extend(notes.into_iter().flatten().chain(group_notes::unquiet_notes(&run)));
        run
    }
}

/// A request for the next execution of a case. A case counts as proven once one execution has measured it.
fn wanted_case((id, case): (&String, &Executions)) -> Wanted {
    Wanted { id: id.clone(), proven: !case.measured.is_empty() }
}

/// A note on a process that ran on another CPU than the first process, whose CPU was taken by another run or offline.
fn other_cpu_note(cpu: usize) -> String {
    format!("some executions were measured on CPU {cpu}, since the first one's CPU was taken or offline")
}

impl Executions {
    fn add(&mut self, execution: CaseExecution) {
        if !execution.title.is_empty() {
            self.title = execution.title;
        }
        match self.count() {
            0 => self.first = execution.seconds,
            _ => self.later = self.later.max(execution.seconds),
        }
        match execution.end {
            Ok(measured) => self.measured.push(*measured),
            Err(CaseEnd::Disturbed(sentence)) => self.disturbed.push(sentence),
            Err(CaseEnd::Contradicted(sentence)) => self.contradicted.push(sentence),
            // If a process was killed or refused, the measurements of other processes are kept.
            Err(CaseEnd::CutShort(sentence)) if !self.measured.is_empty() => self.disturbed.push(sentence),
            Err(CaseEnd::Failed(sentence) | CaseEnd::CutShort(sentence)) => {
                self.ended = Some(Outcome::Failed(sentence));
            }
            // A need that is no longer met must not discard earlier executions.
            Err(CaseEnd::Skipped(sentence)) if self.measured.is_empty() => {
                self.ended = Some(Outcome::Skipped(sentence));
            }
            Err(CaseEnd::Skipped(sentence)) => self.disturbed.push(sentence),
            // A measuring process never sends this end: the signal ends the run, and the driver receives the signal, too.
            Err(CaseEnd::Interrupted) => {}
        }
    }

    /// Expected duration of a further execution, seconds. Later executions do not repeat the proof.
    fn expected_seconds(&self) -> f64 {
        if self.later > 0.0 { self.later } else { self.first }
    }

    fn count(&self) -> usize {
        self.measured.len() + self.disturbed.len() + self.contradicted.len()
    }

    fn is_empty(&self) -> bool {
        self.ended.is_none() && self.count() == 0
    }

    /// Whether the case needs another execution in this round: it has too few or, while there is `time`, is not settled.
    fn needs_execution(&self, rounds: &Rounds, round: usize, time: bool) -> bool {
        let needed = rounds.needed_executions(self.expected_seconds());
        // A case that has only been disturbed gets more attempts.
        let needed =
            if self.measured.is_empty() { rounds.max_attempts(self.disturbed.len()) } else { needed };
        let unsettled = || {
            rounds.allows_another_execution(self.count(), self.expected_seconds())
                && round >= needed
                && !self.is_settled(rounds.executions_to_settle(needed))
        };
        self.ended.is_none() && (self.count() < needed || (time && unsettled()))
    }

    /// Whether the case has at least `fewest` measured executions, and a settled quiet figure.
    fn is_settled(&self, fewest: usize) -> bool {
        // Whether executions agree does not depend on the frequency to which they are converted.
        let core_hz = self.measured.first().and_then(core_frequency);
        let quiet = || quiet_of_executions(&self.measured, core_hz);
        self.measured.len() >= fewest && quiet().is_some_and(|quiet| quiet.is_settled())
    }

    /// The outcome of the case so far; `None` if no execution was tried.
    fn outcome(&self, core_hz: Option<f64>) -> Option<Outcome> {
        if let Some(ended) = &self.ended {
            return Some(ended.clone());
        }
        if let Some(mut measured) = pool_executions(&self.measured, core_hz) {
            let left_out = self.disturbed.iter().chain(&self.contradicted);
            measured.left_out = left_out.cloned().collect();
            return Some(Outcome::Measured(Box::new(measured)));
        }
        match (self.disturbed.last(), self.contradicted.last()) {
            (_, Some(sentence)) if self.contradicted.len() >= CONDEMNING => Some(Outcome::Failed(format!(
                "{sentence}; so it was in each of {} processes",
                self.contradicted.len()
            ))),
            (disturbed, contradicted) => disturbed.or(contradicted).map(|s| Outcome::Disturbed(s.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Group;
    use crate::driver::ExecutionEnd;
    use crate::record::{Execution, Headline};

    const GROUP: Group = Group::new("call", "", Vec::new);

    fn end(end: ExecutionEnd) -> CaseExecution {
        CaseExecution { id: "call/u64/3".into(), title: "a call".into(), seconds: 0.1, end }
    }

    fn measured(low: f64) -> ExecutionEnd {
        let executions = vec![Execution { low, median: low, samples: 10, ..Execution::default() }];
        Ok(Box::new(Measured { executions, ..Measured::default() }))
    }

    fn case(ends: Vec<ExecutionEnd>) -> Executions {
        let mut case = Executions::default();
        ends.into_iter().for_each(|e| case.add(end(e)));
        case
    }

    fn contradicted(times: usize) -> Vec<ExecutionEnd> {
        (0..times).map(|_| Err(CaseEnd::Contradicted("time does not grow".into()))).collect()
    }

    #[test]
    fn a_claim_is_disproved_only_if_six_executions_and_all_contradict_it() {
        assert!(
            matches!(case(contradicted(6)).outcome(None), Some(Outcome::Failed(s)) if s.contains("each of 6"))
        );
        assert!(matches!(case(contradicted(5)).outcome(None), Some(Outcome::Disturbed(_))));
        let mut ends = contradicted(5);
        ends.push(measured(5.0));
        match case(ends).outcome(None) {
            Some(Outcome::Measured(measured)) => assert_eq!(measured.left_out.len(), 5),
            other => panic!("{other:?}"),
        }
        let mut ends = contradicted(4);
        ends.extend((0..8).map(|_| Err(CaseEnd::Disturbed("others had the CPU".into()))));
        assert!(!case(ends).needs_execution(&Rounds::ONE, 12, false), "a case is not tried for ever");
    }

    #[test]
    fn a_case_that_was_only_disturbed_gets_more_attempts() {
        let rounds = Rounds::default_without_limit();
        let ends = (0..3).map(|_| Err(CaseEnd::Disturbed("others had the CPU".into()))).collect();
        assert!(case(ends).needs_execution(&rounds, 3, false));
    }

    #[test]
    fn the_answers_of_the_first_screen_are_measured_before_other_headlines() {
        const HEADLINES: &[Headline] =
            &[Headline::new(1, "u64/0", "an answer").as_answer(), Headline::new(2, "u64/7", "another")];
        let group = GROUP.headlines(HEADLINES);
        let ids = ["u64/0", "u64/3", "u64/7"].map(|name| format!("call/{name}"));
        let planned = Planned { group: &group, ids: ids.to_vec() };
        let collected = Collected::new(&planned);
        let wanted = |answers_only| -> Vec<String> {
            collected.wanted_headlines(0, answers_only).into_iter().map(|wanted| wanted.id).collect()
        };
        assert_eq!((wanted(true), wanted(false)), (ids[..1].to_vec(), vec![ids[0].clone(), ids[2].clone()]));
    }

    #[test]
    fn measurements_of_other_processes_are_kept_when_one_is_killed() {
        let killed = || Err(CaseEnd::CutShort("killed".into()));
        assert!(matches!(case(vec![killed()]).outcome(None), Some(Outcome::Failed(_))));
        assert!(matches!(case(vec![measured(5.0), killed()]).outcome(None), Some(Outcome::Measured(_))));
    }

    #[test]
    fn a_process_on_another_cpu_than_the_first_is_noted_once() {
        let planned = Planned { group: &GROUP, ids: Vec::new() };
        let mut group = Collected::new(&planned);
        for cpu in [1, 0, 0, 1] {
            let clock = crate::record::ClockRun { source: "tsc".into(), ..Default::default() };
            let run = GroupRun { clock, cpu: Some(cpu), ..GroupRun::default() };
            group.add(ProcessRun { run, cases: Vec::new(), cut_short: None });
        }
        assert_eq!((group.run.cpu, &group.run.notes), (Some(1), &vec![other_cpu_note(0)]));
    }

    #[test]
    fn the_interval_of_a_case_whose_executions_agree_is_widened_by_its_group() {
        let ids = ["a", "b", "c", "d"].map(|name| format!("call/{name}/0"));
        let planned = Planned { group: &GROUP, ids: ids.to_vec() };
        let mut group = Collected::new(&planned);
        let spread = [[100.0, 100.0, 100.0], [50.0, 50.0, 55.0], [70.0, 70.0, 77.0], [90.0, 90.0, 99.0]];
        for (case, lows) in group.cases.iter_mut().zip(spread) {
            lows.into_iter().for_each(|low| case.add(end(measured(low))));
        }
        let run = group.group_run(&Fingerprint::default(), None);
        let half = |case: &CaseRecord| case.measured().map(|m| m.figure().high / m.figure().estimate);
        let halves: Vec<f64> = run.cases.iter().filter_map(half).collect();
        assert!(halves[0] > 1.1 && halves[0] < halves[1], "{halves:?}");
    }

    #[test]
    fn a_disproof_ends_a_case_and_discards_its_number() {
        let case = case(vec![measured(5.0), Err(CaseEnd::Failed("no bytes arrived".into()))]);
        assert!(matches!(case.outcome(None), Some(Outcome::Failed(_))));
        assert!(!case.needs_execution(&Rounds::default_without_limit(), 1, true));
    }

    #[test]
    fn a_case_stays_open_until_its_lowest_executions_agree() {
        let rounds = Rounds::default_without_limit();
        let open = |lows: &[f64]| {
            case(lows.iter().map(|&low| measured(low)).collect()).needs_execution(&rounds, lows.len(), true)
        };
        assert!(open(&[]) && open(&[100.0, 100.0]));
        assert!(!open(&[100.0, 100.1, 100.2]));
        assert!(open(&[100.0, 100.1, 110.0]));
        assert!(!open(&[100.0, 100.1, 110.0, 100.3]));
    }

    #[test]
    fn the_duration_of_the_proof_does_not_reduce_the_later_executions() {
        let rounds = Rounds::default_without_limit();
        let mut case = Executions::default();
        let mut add = |seconds, low| case.add(CaseExecution { seconds, ..end(measured(low)) });
        add(4.0, 100.0);
        add(0.1, 110.0);
        assert!(case.needs_execution(&rounds, 2, false), "two are enough only where each takes long");
        let mut add = |seconds, low| case.add(CaseExecution { seconds, ..end(measured(low)) });
        add(0.1, 120.0);
        assert!(case.needs_execution(&rounds, 3, true) && !case.needs_execution(&rounds, 3, false));
    }
}
