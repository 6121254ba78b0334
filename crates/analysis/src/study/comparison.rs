//! Compares two or more baselines: each with the first, case by case, with a verdict.
//!
//! # The unit
//!
//! Each process gives one value of a case. Processes of one boot, or of one session, share the state of the machine. So the
//! unit, the [`Replicate`], is a boot if the sides ran in different boots, perhaps of different kernels. If all ran in one
//! boot, it is a session. A change needs several replicates that agree. Where the core's frequency beside a value is known,
//! the value is multiplied by it, so that cycles are compared. Between boots without a known frequency, values are divided
//! by the mean of the canaries, which no kernel can change.
//!
//! # The rule, with five replicates a side or more
//!
//! The change is the ratio of the floors ([`Floor`](crate::statistic::Floor)). A floor is the mean of the two lowest processes
//! of a side. The half-width of the interval is the larger of the two sides' spreads. A spread is the distance from the lowest
//! value to the last of the lowest third, which must come from three sessions or four boots. The verdict is *slower* if the
//! whole interval lies above the threshold θ and half of the faster side's processes lie below the slower side's floor.
//! *Faster* is its mirror image. It is *same* if the interval lies within ± 2 % (or ± θ, if that is more), else
//! *inconclusive*.
//!
//! Each row is judged by itself, and among a thousand unchanged rows up to ten may be called changed. The rule was chosen by
//! this trial of five sessions of three processes a side:
//!
//! | | false alarms | 5 % found | median change that was enough |
//! |---|---|---|---|
//! | simulated spells (3 of 10 processes 5 to 30 % longer; 1 row in 10 of two modes): means, exact permutation test | 0.6 % | 6 % | |
//! | the same: floors, exact permutation test | 0.1 % | 77 % | |
//! | the same: the interval alone | 0.1 % | 90 % | |
//! | the same: the interval and the half | 0.02 % | 83 % | |
//! | 20 recorded sessions of an unquiet guest, 19 rows, lower quartiles: the interval alone, on times | 2.0 % | 49 % | 4.9 % |
//! | the same at one core frequency | 0.45 % | 83 % | 2.9 % |
//! | the same, and the half | 0.2 % | 82 % | 3.0 % |
//!
//! A permutation test misses changes if one session in three is disturbed on each side, because it does not use the fact that
//! noise only adds. The condition on half of the processes is for operations of several modes: one side may miss the fastest
//! mode. Without the condition such rows had nearly all of the false alarms. Boots deviate in both directions, because each
//! boot has one random layout. With deviations of 2 %, requiring three boots that agree gave 3 % of false alarms, and
//! requiring four gave 0.7 %.
//!
//! # With fewer replicates
//!
//! One boot per side does not show how boots differ. Then means are compared, and the deviation comes from other records of
//! the machine. It is the variance of the replicates of each case within one fingerprint (and so one kernel), pooled over
//! fingerprints. With at least four degrees of freedom (five records of one kernel) Student's t gives the verdict, with p
//! corrected by Benjamini and Hochberg (q = 0.01, both directions). Otherwise the change is shown, the verdict is
//! inconclusive, and its reason names the missing records.
//!
//! The output depends only on the heads and the options: the same inputs give the same bytes.

mod contender;
#[cfg(test)]
#[path = "../../tests/support/fixture_head.rs"]
pub(crate) mod fixture_head;
mod pairing;
mod past_spread;
mod replicate;
mod rule;

pub use past_spread::needs_history as wants_history;
pub use replicate::Replicate;

use crate::record::bundle::Head;
use crate::statistic::median;
use pairing::Index;
use past_spread::History;
use rule::Rule;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use syscost_engine::environment::Difference;
use syscost_engine::record::Interval;
use syscost_engine::record::quantity::is_instruction_unit;
use syscost_engine::record::verdict::Verdict;

/// The version of the layout of a comparison as JSON. Version 2 has no seed, because nothing is random, and adds `cycle`.
pub const LAYOUT: u32 = 2;

/// The smallest threshold, as a share: the layout of a binary alone causes changes up to it.
pub const LEAST_THRESHOLD: f64 = 0.01;
/// A change within ± this share is called *same*; the threshold takes its place if it is larger.
pub const MARGIN: f64 = 0.02;

/// Options of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The largest change, as a share, that does not matter. It is at least [`LEAST_THRESHOLD`], unless counts are exact.
    pub threshold: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: LEAST_THRESHOLD }
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Layout version, [`LAYOUT`].
    pub comparison: u32,
    /// The threshold that was applied, a share.
    pub threshold: f64,
    /// The margin of *same*, a share: a change within ± it is none.
    pub margin: f64,
    /// The baselines. Each is compared with the first.
    pub baselines: Vec<Baseline>,
    /// The cases.
    pub rows: Vec<Row>,
    /// Number of rows that were left out because they have no change.
    pub left_out: usize,
    /// The numbers of verdicts, including those of rows that were left out because they have no change.
    pub tally: Tally,
}

/// One baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Baseline {
    /// The name. If two baselines have one name, the second gets a number.
    pub name: String,
    /// Time at which the baseline was made, Unix seconds.
    pub created: u64,
    /// Smoke, default or full.
    pub scale: String,
    /// Unit of its values.
    pub unit: String,
    /// Kernel releases, each once.
    pub kernels: Vec<String>,
    /// Number of boots.
    pub boots: usize,
    /// Number of sessions.
    pub sessions: usize,
    /// The largest number of processes that measured a case.
    pub processes: usize,
    /// The relation to the first baseline; `None` for the first itself.
    pub relation: Option<Relation>,
}

/// The relation of a baseline to the first.
#[derive(Clone, Debug, Serialize)]
pub struct Relation {
    /// The unit of replication.
    pub replicate: Replicate,
    /// Numbers of replicates of the first baseline and of this one.
    pub replicates: [usize; 2],
    /// The ratio of this baseline's canaries to the first's, by which every change is divided. `None` if no change is.
    pub canary: Option<f64>,
    /// The ratio of this baseline's core cycle to the first's. Every change is divided by it in place of the canaries. `None`
    /// if no frequency was inferred.
    pub cycle: Option<f64>,
    /// Differences between machines, kernels and builds, the weightiest first. Their `ours` is the first baseline.
    pub differences: Vec<Difference>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// The reason if no case of the baseline can be compared.
    pub incomparable: Option<String>,
}

/// One case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `group/variant/parameter`.
    pub id: String,
    /// The bench group.
    pub group: String,
    /// One cell per baseline.
    pub cells: Vec<Cell>,
}

/// A case in one baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The floor of the processes' values ± the spread of the lowest of them; for a single process its value with its
    /// 95 % interval.
    pub value: Option<Interval>,
    /// The change against the first baseline; `None` in the first itself.
    pub change: Option<Change>,
}

/// A case against the first baseline.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Change {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason why there is no stronger verdict.
    pub reason: Option<String>,
    /// The ratio of this baseline's value to the first's; above 1 is slower.
    pub ratio: Option<f64>,
    /// The interval of the ratio, which contains the true ratio in at least 95 of 100 comparisons.
    pub interval: Option<[f64; 2]>,
    /// The data behind the verdict.
    pub basis: Option<Basis>,
    /// The p-value by the deviation in other records: the probability of such a change or a larger one if the true change
    /// were at most the threshold. `None` if the change itself is at most the threshold.
    pub p: Option<f64>,
    /// `p` adjusted for the number of rows of the column.
    pub p_among_all: Option<f64>,
    /// Numbers of replicates of the first baseline and of this one.
    pub replicates: [usize; 2],
    /// The smallest change that would have been found here in 80 of 100 comparisons, percent.
    pub detectable_percent: Option<f64>,
}

/// The data behind a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The replicates of both sides.
    Replicates,
    /// The deviation between replicates in other records.
    History,
}

/// Compares every head with the first. `history` has other records; records of other machines, and runs that the heads
/// contain, are ignored.
pub fn compare(heads: &[Head], history: &[Head], options: Options) -> Comparison {
    let indexes: Vec<Index<'_>> = heads.iter().map(Index::new).collect();
    let ids = measured_ids(heads);
    let history = History::from_records(heads, history);
    let [least, margin] = if heads.iter().all(is_exact) { [0.0; 2] } else { [LEAST_THRESHOLD, MARGIN] };
    let threshold = if options.threshold > least { options.threshold } else { least };
    let rule = Rule { threshold, margin: margin.max(threshold) };
    let names = contender::distinct_names(heads);
    let mut baselines: Vec<_> =
        heads.iter().zip(names).map(|(head, name)| contender::baseline(head, name)).collect();
    let columns: Vec<_> = (1..heads.len())
        .map(|at| {
            let (relation, changes) = contender::compare(&indexes[0], &indexes[at], &ids, &history, rule);
            baselines[at].relation = Some(relation);
            changes
        })
        .collect();
    let mut rows: Vec<Row> = ids.iter().map(|id| row_without_changes(id, &indexes)).collect();
    for (at, changes) in columns.into_iter().enumerate() {
        let places = rows.iter_mut().map(|row| &mut row.cells[at + 1].change);
        places.zip(changes).for_each(|(place, change)| *place = Some(change));
    }
    Comparison {
        comparison: LAYOUT,
        tally: Tally::from_rows(&rows),
        threshold,
        margin: rule.margin,
        baselines,
        rows,
        left_out: 0,
    }
}

/// Whether the values of a head are counts that repeat exactly.
pub fn is_exact(head: &Head) -> bool {
    is_instruction_unit(&head.unit)
}

/// The ids that at least one head measured, each once: in the order of the first head, then the ids that only other heads have.
/// An id that no head could measure has no row.
fn measured_ids(heads: &[Head]) -> Vec<&str> {
    let mut known = BTreeSet::new();
    let series = || heads.iter().flat_map(|head| &head.series);
    let measured: BTreeSet<&str> =
        series().filter(|series| !series.values.is_empty()).map(|series| series.id.as_str()).collect();
    let all = series().map(|series| series.id.as_str());
    all.filter(|id| measured.contains(id) && known.insert(*id)).collect()
}

fn row_without_changes(id: &str, indexes: &[Index<'_>]) -> Row {
    let value = |index: &Index<'_>| {
        index.fullest_series(id).and_then(|series| pairing::case_value(index.head, series))
    };
    Row {
        id: id.to_owned(),
        group: id.split('/').next().unwrap_or_default().to_owned(),
        cells: indexes.iter().map(|index| Cell { value: value(index), change: None }).collect(),
    }
}

impl Row {
    /// The changes of the row, one for each baseline after the first.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.cells.iter().filter_map(|cell| cell.change.as_ref())
    }
}

impl Comparison {
    /// Every change of every row.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.rows.iter().flat_map(Row::changes)
    }
}

// The rows that are shown, and their order: the largest change first.

/// The sort key of a row: rank of its verdict, then size of its change, whose bits are in the order of the sizes.
type Weight = (u8, u64);

impl Comparison {
    /// Keeps only the rows whose ids are wanted, and counts the tally again. Verdicts stay as they were given among all rows.
    pub fn keep_rows(&mut self, wanted: impl Fn(&str) -> bool) {
        self.rows.retain(|row| wanted(&row.id));
        self.tally = Tally::from_rows(&self.rows);
    }

    /// Keeps the rows with a change and counts the others.
    pub fn keep_changed(&mut self) {
        let before = self.rows.len();
        self.rows.retain(|row| row.changes().any(|change| change.verdict.is_change()));
        self.left_out += before - self.rows.len();
    }

    /// Sorts groups by their weightiest change, and rows within a group likewise. Equal ones keep their order.
    pub fn sort_by_weight(&mut self) {
        let mut of_group: BTreeMap<String, (Reverse<Weight>, usize)> = BTreeMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            let own = Reverse(row_weight(row));
            let group = of_group.entry(row.group.clone()).or_insert((own, at));
            group.0 = own.min(group.0);
        }
        self.rows.sort_by_key(|row| (of_group[&row.group], Reverse(row_weight(row))));
    }
}

fn row_weight(row: &Row) -> Weight {
    row.changes().map(change_weight).max().unwrap_or_default()
}

fn change_weight(change: &Change) -> Weight {
    let rank = match change.verdict {
        Verdict::Slower | Verdict::Faster => 3,
        Verdict::Inconclusive => 2,
        Verdict::Same => 1,
        Verdict::Incomparable => 0,
    };
    (rank, change.ratio.map_or(0, |ratio| ratio.ln().abs().to_bits()))
}

// The summary of a comparison.

/// The number of changes by verdict, and the median of the smallest changes that could be shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tally {
    /// The number of changes with each verdict.
    pub verdicts: BTreeMap<Verdict, usize>,
    /// The median of the smallest changes that would have been found, percent, over all changes for which it is known.
    pub detectable_percent: Option<f64>,
}

impl Tally {
    /// The tally of these rows.
    fn from_rows(rows: &[Row]) -> Self {
        let changes = || rows.iter().flat_map(Row::changes);
        let count = |verdict| changes().filter(|change| change.verdict == verdict).count();
        let detectable: Vec<f64> = changes().filter_map(|change| change.detectable_percent).collect();
        Self {
            verdicts: Verdict::ALL.into_iter().map(|verdict| (verdict, count(verdict))).collect(),
            detectable_percent: (!detectable.is_empty()).then(|| median(&detectable)),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |verdict| self.verdicts.get(&verdict).copied().unwrap_or_default();
        let counts = Verdict::ALL.map(|verdict| format!("{} {verdict}", count(verdict)));
        f.write_str(&counts.join(", "))?;
        match self.detectable_percent {
            Some(percent) => write!(f, "; the median row could have shown a change of {percent:.1} %"),
            None => f.write_str("; how small a change could have been shown is not known"),
        }
    }
}

#[cfg(test)]
mod tests;
