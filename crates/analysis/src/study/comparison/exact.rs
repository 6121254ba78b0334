//! Counts that repeat exactly, such as instructions by single steps: they are compared as they are, whatever the processes,
//! sessions and boots.

use super::contrast::case_range;
use super::pairing::{Index, pair_series};
use super::rule::Rule;
use super::{Basis, Change};
use crate::study::exact_count::CountChange;
use syscost_engine::record::quantity::INSTRUCTIONS;
use syscost_engine::record::verdict::Verdict;

/// The change of a case, or why it has none.
pub(super) fn compare_case(a: &Index<'_>, b: &Index<'_>, id: &str, rule: Rule) -> Result<Change, String> {
    let (x, y) = pair_series(id, a, b)?;
    let [Some(old), Some(new)] = [x, y].map(case_range) else { return Err("a side has no value".into()) };
    let change = CountChange { id: id.to_owned(), name: INSTRUCTIONS, old, new };
    let verdict = change.verdict(rule.threshold);
    let reason = match verdict {
        Verdict::Inconclusive => Some(format!("the executions differ: {}", change.sentence())),
        Verdict::Same => None,
        _ => Some(change.sentence()),
    };
    Ok(Change {
        verdict,
        reason,
        ratio: Some(change.ratio()),
        interval: Some([new.low / old.high, new.high / old.low]),
        basis: Some(Basis::Replicates),
        replicates: [x.values.len(), y.values.len()],
        ..Change::default()
    })
}
