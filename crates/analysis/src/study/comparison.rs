//! Two or more baselines side by side: each against the first, case by case, with a verdict.
//!
//! # The unit
//!
//! Each process gives one value of a case. Processes of one boot, or of one session, share the state of the machine. So a
//! boot (if the sides ran in different boots, perhaps of different kernels) or a session (if all ran in one boot) is one
//! [`Replicate`], and a change needs several that agree. A value is multiplied by the core's frequency beside it
//! where that is known: cycles are compared. Between boots without a known frequency, values are divided by the mean of the
//! canaries, which no kernel can change.
//!
//! # The rule, with five replicates a side or more
//!
//! The change is floor over floor ([`Floor`](crate::statistic::Floor)): the mean of the two lowest processes of each side.
//! Half of its interval is the spread of the lowest values on the side with the larger spread: from the lowest to the
//! last of the lowest third, which must be of three sessions or four boots. *Slower* is said if the whole interval lies above
//! the threshold θ and half of the faster side's processes below the slower side's floor, *faster* mirrored, *same* if it
//! lies within ± 2 % (or ± θ, if that is more). Any other change is
//! *inconclusive*.
//!
//! Each row is judged by itself, and among a thousand unchanged rows up to ten may be called changed. Tried before this rule
//! was taken, five sessions of three processes a side:
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
//! mode. Without the condition such rows had nearly all of the false alarms. Boots deviate to either side, since each draws a
//! layout that stays. With deviations of 2 %, three boots that agree gave 3 % of false alarms, and four gave 0.7 %.
//!
//! # With fewer
//!
//! One boot a side does not show how boots differ. Then means are compared, and the deviation is taken from other records of the machine: the variance of
//! the replicates of each case within one fingerprint (and so one kernel), pooled over fingerprints. With at least four
//! degrees of freedom (five records of one kernel) the verdict is given by Student's t, with p corrected by Benjamini
//! and Hochberg (q = 0.01, both directions). Otherwise the change is shown, the verdict is inconclusive, and its reason
//! names the missing records.
//!
//! The output depends on the heads and the options only, to the byte.

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

/// The version of the layout of a comparison as JSON.
/// 2: no seed, because nothing is drawn; `cycle`.
pub const LAYOUT: u32 = 2;

/// Changes up to this share are never called changes: below it lies what the layout of a binary does.
pub const LEAST_THRESHOLD: f64 = 0.01;
/// A change within this share is called none, unless the threshold is larger.
pub const MARGIN: f64 = 0.02;

/// Options of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A change up to this share is none that matters; [`LEAST_THRESHOLD`] at least, unless counts are exact.
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
    /// The threshold in force, a share.
    pub threshold: f64,
    /// Within which a change is none, a share.
    pub margin: f64,
    /// The baselines; the others are compared with the first.
    pub baselines: Vec<Baseline>,
    /// The cases.
    pub rows: Vec<Row>,
    /// Number of rows that were left out because they have no change.
    pub left_out: usize,
    /// The sum, with the rows that were left out for that.
    pub tally: Tally,
}

/// One baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Baseline {
    /// Its name; of two with one name the second has a number.
    pub name: String,
    /// When it was made, Unix seconds.
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
    /// Its relation to the first; `None` for the first.
    pub relation: Option<Relation>,
}

/// The relation of a baseline to the first.
#[derive(Clone, Debug, Serialize)]
pub struct Relation {
    /// The unit of replication.
    pub replicate: Replicate,
    /// Number of replicates of the first, and of this one.
    pub replicates: [usize; 2],
    /// Canaries of this one over those of the first, by which every change is divided. `None` if that is not done.
    pub canary: Option<f64>,
    /// A core cycle of this one over that of the first, by which every change is divided in place of the canaries.
    /// `None` where no frequency was inferred.
    pub cycle: Option<f64>,
    /// Differences between machines, kernels and builds, the weightiest first; `ours` is the first's.
    pub differences: Vec<Difference>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// Why nothing of it can be compared.
    pub incomparable: Option<String>,
}

/// One case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `group/variant/parameter`.
    pub id: String,
    /// The bench group.
    pub group: String,
    /// One a baseline.
    pub cells: Vec<Cell>,
}

/// A case in one baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The floor of the processes' values, as far to either side as the lowest of them lie apart; of one process its
    /// value with its 95 % interval.
    pub value: Option<Interval>,
    /// Against the first; `None` in the first itself.
    pub change: Option<Change>,
}

/// A case against the first baseline.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Change {
    /// The verdict.
    pub verdict: Verdict,
    /// Why there is no stronger verdict.
    pub reason: Option<String>,
    /// This one's value over the first one's; above 1 is slower.
    pub ratio: Option<f64>,
    /// Its interval, which holds the true one in 95 of 100 comparisons or more.
    pub interval: Option<[f64; 2]>,
    /// The data behind the verdict.
    pub basis: Option<Basis>,
    /// By other records: the chance of such a change or a larger one, if the true one were no larger than the
    /// threshold. `None` if the change itself is no larger.
    pub p: Option<f64>,
    /// `p` adjusted for the number of rows of the column.
    pub p_among_all: Option<f64>,
    /// Number of replicates of the first, and of this one.
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

/// Compares every head with the first. `history` are other records; those of other machines and runs of the heads
/// are ignored.
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

/// Whether its values are counts that repeat exactly.
pub fn is_exact(head: &Head) -> bool {
    is_instruction_unit(&head.unit)
}

/// Every id that at least one head measured, once: in the order of the first head, then the ids of the other heads only. An id
/// that no head could measure has no row.
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
    /// Its changes, one for each baseline after the first.
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
    /// Keeps some rows and their tally. Verdicts stay, because each was given among all rows.
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

    /// Groups by their weightiest change, and rows within a group by theirs; of equal ones the earlier first.
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
    /// Each verdict with its number.
    pub verdicts: BTreeMap<Verdict, usize>,
    /// The median, over all for which it is known, of the smallest change that would have been found, percent.
    pub detectable_percent: Option<f64>,
}

impl Tally {
    /// The sum of these rows.
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
