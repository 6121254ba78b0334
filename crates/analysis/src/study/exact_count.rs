//! Counts per iteration that are the same in every run, such as allocations. They are compared as counts, never as times.

use crate::record::paired::{CasePairs, Paired};
use std::collections::BTreeMap;
use syscost_engine::record::{EventRate, Interval, Record, Verdict};

/// The gap between the ranges of two sides, as a multiple of the sum of their widths, that is a change. Without a change, three
/// executions a side have such a gap once in a thousand times, and five once in 100 000.
const GAP: f64 = 2.0;
/// The most counts that a sentence names.
const MOST_NAMED: usize = 8;

/// A count of one case on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct CountChange {
    /// `group/variant/parameter`.
    pub id: String,
    /// The name of the counted event in the record.
    pub name: String,
    /// The count per iteration of the old side, with the range over its executions.
    pub old: Interval,
    /// The count per iteration of the new side, with the range over its executions.
    pub new: Interval,
}

impl CountChange {
    /// The least growth of the count per iteration on the new side. It is exact if no executions differ; otherwise it is the gap
    /// between the ranges less twice the sum of their widths.
    pub fn least_growth(&self) -> f64 {
        self.new.low - self.old.high - self.margin()
    }

    /// The gap between the two ranges that is not a change yet; 0 if the counts repeat exactly.
    fn margin(&self) -> f64 {
        GAP * (self.old.high - self.old.low + self.new.high - self.new.low)
    }

    /// The new count divided by the old count; infinite if only the old count is 0.
    pub fn ratio(&self) -> f64 {
        if self.new == self.old { 1.0 } else { self.new.estimate / self.old.estimate }
    }

    /// The verdict, where changes up to the share `threshold` do not matter. Counts that differ between executions are
    /// compared by their ranges.
    pub fn verdict(&self, threshold: f64) -> Verdict {
        let Self { old, new, .. } = self;
        let (above, below) = (1.0 + threshold, 1.0 - threshold);
        match () {
            () if new.low - self.margin() > old.high * above => Verdict::Slower,
            () if new.high + self.margin() < old.low * below => Verdict::Faster,
            () if new.high <= old.low * above && new.low >= old.high * below => Verdict::Same,
            () if self.margin() == 0.0 => Verdict::Same,
            () => Verdict::Inconclusive,
        }
    }

    /// The sentence of the change, such as `3 allocations an iteration, 2 before`.
    pub fn sentence(&self) -> String {
        format!("{} {} an iteration, {} before", count_text(self.new), self.name, count_text(self.old))
    }
}

/// The text of a count, or of its range if the executions differ.
fn count_text(count: Interval) -> String {
    let [low, high] = [count.low, count.high].map(|end| (100.0 * end).round() / 100.0);
    if low == high { low.to_string() } else { format!("{low} to {high}") }
}

/// The changes of the count of this name, for each case that both sides counted in the same version.
pub fn changes_between_records(name: &str, old: &[Record], new: &[Record]) -> Vec<CountChange> {
    let [old, new] = [old, new].map(|records| counts_of_records(name, records));
    let both = new.into_iter().filter_map(|(key, new)| Some((key, *old.get(&key)?, new)));
    both.map(|((id, _), old, new)| CountChange { id: id.to_owned(), name: name.to_owned(), old, new })
        .collect()
}

/// The count of each id and version over all of these records.
fn counts_of_records<'a>(name: &str, records: &'a [Record]) -> BTreeMap<(&'a str, &'a str), Interval> {
    let mut counts = BTreeMap::new();
    for (group, case) in records.iter().flat_map(Record::cases) {
        let counted = case.measured().and_then(|measured| rate_of(name, &measured.events));
        if let Some(rate) = counted {
            let all = counts.entry((case.id.as_str(), group.version.as_str())).or_insert(rate);
            *all = all.widened_to(rate);
        }
    }
    counts
}

/// The changes of the count of this name, for each case that both sides of these pairs counted in the same version.
pub fn changes_of_pairs(name: &str, paired: &Paired) -> Vec<CountChange> {
    let compared = paired.cases.iter().filter(|case| case.versions[0] == case.versions[1]);
    let both = compared.filter_map(|case| {
        let [old, new] = case.counts.each_ref().map(|counts| rate_of(name, counts));
        Some(CountChange { id: case.id.clone(), name: name.to_owned(), old: old?, new: new? })
    });
    both.collect()
}

/// The names of what one of the sides has counted in this case, in A's order.
fn counted_names(case: &CasePairs) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for count in case.counts.iter().flatten().filter(|count| count.rate.is_some()) {
        if !names.contains(&count.name.as_str()) {
            names.push(&count.name);
        }
    }
    names
}

/// A sentence on the counts of a case that differ between the sides, largest difference first: `11 more statx (3, was 14)`. `None` if a
/// side has no counts, or none differs. A name that one side lacks was not counted there once.
pub fn count_sentence(case: &CasePairs) -> Option<String> {
    if case.counts.iter().any(Vec::is_empty) {
        return None;
    }
    let nothing = Interval::exactly(0.0);
    let change = |name: &str| {
        let [old, new] = case.counts.each_ref().map(|counts| rate_of(name, counts).unwrap_or(nothing));
        CountChange { id: case.id.clone(), name: name.to_owned(), old, new }
    };
    let changed = |change: &CountChange| change.verdict(0.0).is_change();
    let mut changes: Vec<_> = counted_names(case).into_iter().map(change).filter(changed).collect();
    let size = |change: &CountChange| (change.new.estimate - change.old.estimate).abs();
    changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let text = |change: &CountChange| {
        let word = if change.new.estimate > change.old.estimate { "more" } else { "fewer" };
        let difference = Interval::exactly(size(change));
        let [old, new] = [change.old, change.new].map(count_text);
        format!("{} {word} {} ({new}, was {old})", count_text(difference), change.name)
    };
    let all: Vec<_> = changes.iter().take(MOST_NAMED).map(text).collect();
    let rest = changes.len().saturating_sub(MOST_NAMED);
    let rest =
        if rest > 0 { format!(", and {rest} more counts that `--format json` has") } else { String::new() };
    (!all.is_empty()).then(|| format!("B counts {}{rest}", all.join(", ")))
}

fn rate_of(name: &str, counts: &[EventRate]) -> Option<Interval> {
    counts.iter().find(|count| count.name == name)?.rate
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::{ALLOCATIONS, Outcome, fixture_run};

    fn counted(low: f64, high: f64) -> Vec<EventRate> {
        let rate = Some(Interval { estimate: low, low, high });
        vec![EventRate { name: ALLOCATIONS.into(), rate, remark: None }]
    }

    fn record(low: f64, high: f64) -> Record {
        let mut record = fixture_run::fixture_record();
        for case in record.groups.iter_mut().flat_map(|group| &mut group.cases) {
            if let (Outcome::Measured(measured), "call/u64/3") = (&mut case.outcome, case.id.as_str()) {
                measured.events = counted(low, high);
            }
        }
        record
    }

    #[test]
    fn counts_that_repeat_are_compared_exactly_and_others_by_their_ranges() {
        let growth = |old: [Record; 1], new: &[Record]| {
            let changes = changes_between_records(ALLOCATIONS, &old, new);
            assert_eq!(changes.len(), 1, "a case that was not counted is not compared");
            changes[0].least_growth()
        };
        assert_eq!(growth([record(2.0, 2.0)], &[record(2.0, 2.0)]), 0.0);
        assert_eq!(growth([record(2.0, 2.0)], &[record(3.0, 3.0)]), 1.0);
        assert!(
            growth([record(2.0, 4.0)], &[record(5.0, 5.0)]) < 0.0,
            "a gap of 1 between ranges that are 2 wide"
        );
        assert!(growth([record(2.0, 4.0)], &[record(9.0, 9.0)]) > 0.0);
        assert!(growth([record(2.0, 2.0)], &[record(3.0, 3.0), record(2.0, 2.0)]) < 0.0);
    }

    #[test]
    fn a_verdict_is_exact_where_the_counts_are() {
        let exactly = Interval::exactly;
        let verdict = |old, new, threshold| {
            CountChange { id: String::new(), name: ALLOCATIONS.into(), old, new }.verdict(threshold)
        };
        assert_eq!(verdict(exactly(1_000.0), exactly(1_000.0), 0.0), Verdict::Same);
        assert_eq!(verdict(exactly(1_000.0), exactly(1_001.0), 0.0), Verdict::Slower);
        assert_eq!(verdict(exactly(1_001.0), exactly(1_000.0), 0.0), Verdict::Faster);
        assert_eq!(verdict(exactly(1_000.0), exactly(1_001.0), 0.01), Verdict::Same);
        let varied = Interval { estimate: 1_000.0, low: 990.0, high: 1_010.0 };
        assert_eq!(verdict(varied, exactly(1_005.0), 0.0), Verdict::Inconclusive);
        assert_eq!(verdict(varied, exactly(1_011.0), 0.0), Verdict::Inconclusive);
        assert_eq!(verdict(varied, exactly(1_051.0), 0.0), Verdict::Slower);
        assert_eq!(verdict(varied, exactly(1_005.0), 0.03), Verdict::Same);
    }

    #[test]
    fn another_version_is_not_compared() {
        let mut new = record(3.0, 3.0);
        new.groups.iter_mut().for_each(|group| group.version = "another".into());
        assert_eq!(changes_between_records(ALLOCATIONS, &[record(2.0, 2.0)], &[new]), []);
    }

    #[test]
    fn counts_that_differ_are_named_and_one_that_a_side_lacks_is_zero_there() {
        let count = |name: &str, low: f64, high: f64| EventRate {
            name: name.into(),
            rate: Some(Interval { estimate: low, low, high }),
            remark: None,
        };
        let a = vec![count("read", 40.0, 40.0), count("page-faults", 200.0, 230.0), count("statx", 2.0, 2.0)];
        let b =
            vec![count("read", 51.0, 51.0), count("page-faults", 210.0, 215.0), count("openat", 1.0, 1.0)];
        let case = CasePairs { id: "command/ab".into(), counts: [a, b], ..CasePairs::default() };
        let sentence =
            "B counts 11 more read (51, was 40), 2 fewer statx (0, was 2), 1 more openat (1, was 0)";
        assert_eq!(count_sentence(&case).as_deref(), Some(sentence));
        let alone = CasePairs { counts: [case.counts[0].clone(), Vec::new()], ..case };
        assert_eq!(count_sentence(&alone), None);
    }

    #[test]
    fn both_sides_of_a_pair_are_compared() {
        let counts = [counted(2.0, 2.0), counted(3.0, 4.0)];
        let case = CasePairs { id: "a/b".into(), counts, ..CasePairs::default() };
        let alone = CasePairs { counts: [counted(2.0, 2.0), Vec::new()], ..CasePairs::default() };
        let changes =
            changes_of_pairs(ALLOCATIONS, &Paired { cases: vec![case, alone], ..Paired::default() });
        let sentences: Vec<_> = changes.iter().map(CountChange::sentence).collect();
        assert_eq!(sentences, ["3 to 4 allocations an iteration, 2 before"]);
    }
}
