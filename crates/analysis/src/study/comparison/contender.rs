//! Compares one baseline with the first, case by case.

use super::canary::{Canary, is_canary};
use super::contrast::{Contrast, series_key};
use super::pairing::{Index, pair_series};
use super::past_spread::History;
use super::replicate::{Replicate, Replicates};
use super::rule::{ENOUGH, Rule};
use super::{Change, Relation, exact, frequency, identity, is_exact, pooled, replicated};
use crate::statistic::Floor;
use syscost_engine::record::quantity::NANOSECONDS;
use syscost_engine::record::verdict::Verdict;

/// The two sides of a column.
struct Sides<'a> {
    a: &'a Index<'a>,
    b: &'a Index<'a>,
    replicate: Replicate,
    of_a: Replicates,
    of_b: Replicates,
    canary: Option<Canary>,
}

impl<'a> Sides<'a> {
    fn new(a: &'a Index<'a>, b: &'a Index<'a>) -> Self {
        let replicate = Replicate::for_sides(a.head, b.head);
        let of_a = Replicates::new(a.head, replicate);
        let of_b = Replicates::new(b.head, replicate);
        let canary = match replicate {
            Replicate::Boot => Canary::from_sides(a, b, &of_a, &of_b),
            Replicate::Session => None,
        };
        Self { a, b, replicate, of_a, of_b, canary }
    }

    fn contrast(&self, id: &str) -> Result<Contrast, String> {
        let (x, y) = pair_series(id, self.a, self.b)?;
        let timed = self.a.head.unit == NANOSECONDS;
        let core = timed && frequency::is_known([x, y]) && !is_canary(id);
        let mut logs = [self.of_a.value_logarithms(x, core), self.of_b.value_logarithms(y, core)];
        // A frequency says what a canary would, and of each value.
        if let Some(canary) = self.canary.as_ref().filter(|_| !core) {
            canary.subtract_from(id, &mut logs);
        }
        Ok(Contrast {
            estimates: [self.of_a.estimates(&logs[0]), self.of_b.estimates(&logs[1])],
            floors: logs.map(|logs| Floor::from_values(&logs, self.replicate.required_agreement())),
            key: series_key(x),
        })
    }

    fn relation(&self) -> Relation {
        let canary = self.canary.as_ref().map(Canary::ratio_between_sides);
        let cycle = frequency::cycle_time_ratio(self.a.head, self.b.head);
        Relation {
            replicate: self.replicate,
            replicates: [self.of_a.count, self.of_b.count],
            canary,
            cycle,
            differences: identity::differences(self.a.head, self.b.head),
            warnings: identity::warnings(self.a.head, self.b.head, self.replicate, [cycle, canary]),
            incomparable: identity::incomparable_reason(self.a.head, self.b.head),
        }
    }
}

/// The relation of a baseline to the first, and its change in each case.
pub(super) fn compare(
    a: &Index<'_>,
    b: &Index<'_>,
    ids: &[&str],
    history: &History<'_>,
    rule: Rule,
) -> (Relation, Vec<Change>) {
    let sides = Sides::new(a, b);
    let relation = sides.relation();
    if let Some(obstacle) = &relation.incomparable {
        let changes = ids.iter().map(|_| incomparable_change(obstacle.clone())).collect();
        return (relation, changes);
    }
    if is_exact(a.head) {
        let changes = ids.iter().map(|id| exact::compare_case(a, b, id, rule));
        return (relation, changes.map(|change| change.unwrap_or_else(incomparable_change)).collect());
    }
    let contrasts: Vec<_> = ids.iter().map(|id| sides.contrast(id)).collect();
    let few: Vec<_> =
        contrasts.iter().flatten().filter(|contrast| replicated_floors(contrast).is_none()).collect();
    let deviations = history.deviations(sides.replicate, sides.canary.is_some());
    let mut few = pooled::judge_rows(&few, sides.replicate, &deviations, rule).into_iter();
    let judged = |contrast: &Result<Contrast, String>| match contrast {
        Err(reason) => Some(incomparable_change(reason.clone())),
        Ok(contrast) => match replicated_floors(contrast) {
            Some(floors) => Some(replicated::judge(contrast, floors, rule)),
            None => few.next(),
        },
    };
    (relation, contrasts.iter().map(judged).map(Option::unwrap_or_default).collect())
}

/// The floors of a case with enough replicates a side.
fn replicated_floors(contrast: &Contrast) -> Option<[Floor; 2]> {
    let enough = contrast.replicate_counts().iter().all(|count| *count >= ENOUGH);
    let [a, b] = contrast.floors;
    Some([a?, b?]).filter(|_| enough)
}

fn incomparable_change(reason: String) -> Change {
    Change { verdict: Verdict::Incomparable, reason: Some(reason), ..Change::default() }
}
