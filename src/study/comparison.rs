//! Two or more baselines side by side: each against the first, case by case, with a verdict.
//!
//! # The unit
//!
//! Processes of one boot, or of one session, are correlated. So a boot (if the sides ran in different boots, perhaps of
//! different kernels) or a session (if all ran in one boot) is one [`Replicate`] with one estimate: the mean, over its
//! processes, of the logarithm of their medians. Between boots the mean of the canaries, which no kernel can change,
//! is subtracted: it follows the core's frequency.
//!
//! # The rule, with five replicates a side or more
//!
//! The change is the Hodges–Lehmann shift with its 95 % interval. *Slower* is said if two tests pass at
//! α = 0.01, *faster* mirrored:
//!
//! * of this row: the exact permutation test that the change is at most the threshold θ;
//! * of all rows of the column together: the chance that, were nothing changed, any row would show as much
//!   ([`crate::statistic::joint_p`]), so that a column of whatever length without a change shows one in one
//!   comparison of a hundred.
//!
//! The second stands where the Benjamini–Hochberg procedure is usual. With 5 + 5 replicates no exact p is below
//! 1/252, and one change among 60 rows would need 0.01/60. In simulations of that (60 rows, one changed by 5 %;
//! deviations of 0.5, 1 and 2 % between boots, each row's own e^±0.7 times that; a thousand comparisons each)
//! that procedure found no change at all; the joint test found 91, 66 and 19 %, with a false alarm in 0.4, 0.9
//! and 1.1 % of the columns; without any correction 97, 82 and 52 %, with one in 1, 5 and 13 %. With two modes
//! or heavy tails in place of the normal law it stays at 0.9 and 1.1 %.
//!
//! *Same* is said if two one-sided tests at 1 % place the change within ± 2 % (or ± θ, if that is more). What
//! remains is *inconclusive*.
//!
//! # With fewer
//!
//! One boot a side does not show how boots differ. That is taken from other records of the machine: the variance of
//! the replicates of each case within one fingerprint (and so one kernel), pooled over fingerprints. With at least four
//! degrees of freedom (five records of one kernel) the verdict is given by Student's t, with p corrected by Benjamini
//! and Hochberg (q = 0.01, both directions). Otherwise the change is shown, and the verdict is inconclusive and names
//! what would settle it.
//!
//! Same heads, same options: same bytes.

mod canary;
mod contender;
mod contrast;
#[cfg(test)]
pub mod fixture_head;
mod history;
mod identity;
mod pairing;
mod pooled;
mod replicate;
mod replicated;
mod rule;
mod selection;
mod tally;
#[cfg(test)]
mod tests;

pub use history::wanted as wants_history;
pub use replicate::Replicate;
pub use tally::Tally;

use crate::environment::Difference;
use crate::error::{Error, Result};
use crate::record::Interval;
use crate::record::bundle::Head;
use crate::record::verdict::Verdict;
use history::History;
use pairing::Index;
use rule::Rule;
use serde::Serialize;
use std::collections::BTreeSet;

/// The version of the layout of a comparison as JSON.
pub const LAYOUT: u32 = 1;

/// Changes up to this share are never called changes: below it lies what the layout of a binary does.
pub const LEAST_THRESHOLD: f64 = 0.01;
/// A change within this share is called none, unless the threshold is larger.
pub const MARGIN: f64 = 0.02;

/// Options of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A change up to this share is none that matters; [`LEAST_THRESHOLD`] at least.
    pub threshold: f64,
    /// Seed of the permutations that are drawn where there are too many to try all.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: LEAST_THRESHOLD, seed: 1 }
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
    /// The seed.
    pub seed: u64,
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
    /// Geometric mean of the processes' medians, with its 95 % interval: over replicates where there are
    /// several, else over processes, else that of the one process.
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
    /// Its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// The data behind the verdict.
    pub basis: Option<Basis>,
    /// The chance of such a change or a larger one, if the true one were no larger than the threshold.
    /// `None` if the change itself is no larger.
    pub p: Option<f64>,
    /// `p` with regard to all rows of the column: by the joint test, or adjusted for their number.
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
    let indexes: Vec<Index<'_>> = heads.iter().map(Index::of).collect();
    let ids = ids(heads);
    let history = History::of(heads, history);
    let threshold = if options.threshold > LEAST_THRESHOLD { options.threshold } else { LEAST_THRESHOLD };
    let rule = Rule { threshold, margin: MARGIN.max(threshold), seed: options.seed };
    let names = identity::names(heads);
    let mut baselines: Vec<_> =
        heads.iter().zip(names).map(|(head, name)| identity::baseline(head, name)).collect();
    let columns: Vec<_> = (1..heads.len())
        .map(|at| {
            let (relation, changes) = contender::compare(&indexes[0], &indexes[at], &ids, &history, rule);
            baselines[at].relation = Some(relation);
            changes
        })
        .collect();
    let mut rows: Vec<Row> = ids.iter().map(|id| row(id, &indexes)).collect();
    for (at, changes) in columns.into_iter().enumerate() {
        let places = rows.iter_mut().map(|row| &mut row.cells[at + 1].change);
        places.zip(changes).for_each(|(place, change)| *place = Some(change));
    }
    Comparison {
        comparison: LAYOUT,
        tally: Tally::of(&rows),
        threshold,
        margin: rule.margin,
        seed: options.seed,
        baselines,
        rows,
        left_out: 0,
    }
}

/// Every id once: in the order of the first head, then what only others have.
fn ids(heads: &[Head]) -> Vec<&str> {
    let mut known = BTreeSet::new();
    let all = heads.iter().flat_map(|head| head.series.iter().map(|series| series.id.as_str()));
    all.filter(|id| known.insert(*id)).collect()
}

fn row(id: &str, indexes: &[Index<'_>]) -> Row {
    let value = |index: &Index<'_>| index.fullest(id).and_then(|series| contrast::value(index.head, series));
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
    /// The whole as JSON, indented.
    ///
    /// # Errors
    /// A number is not finite.
    pub fn json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|e| Error::file("the comparison", "writing as JSON", e.into()))
    }

    /// Every change of every row.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.rows.iter().flat_map(Row::changes)
    }
}
