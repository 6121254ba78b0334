//! A comparison by pairs of processes, as data: what each pair found, and the verdicts that follow from it.
//!
//! The verdicts are not stored but derived ([`Paired::judge`]), so the same pairs always give the same words.

mod rule;

pub use rule::{Judgement, Rule, Stand, stand};

use super::Verdict;
use crate::environment::Fingerprint;
use crate::statistic::median;
use serde::{Deserialize, Serialize};

/// The version of the layout.
pub const LAYOUT: u32 = 1;
/// Share of the pairs that may be rejected before the machine is called unfit.
const MOST_REJECTED: f64 = 0.2;
/// So many rejected pairs say nothing yet.
const FEW_REJECTED: usize = 3;

/// A whole comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Paired {
    /// Layout version, [`LAYOUT`].
    pub paired: u32,
    /// `syscost` and its version.
    pub tool: String,
    /// Unique name: start time and process.
    pub run: String,
    /// When it began, Unix seconds.
    pub started: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// How verdicts are reached.
    pub rule: Rule,
    /// Whether the sides took turns, or ran one after the other in blocks.
    pub by_turns: bool,
    /// What the two sides are, in words.
    pub sides: [String; 2],
    /// The machine.
    pub fingerprint: Fingerprint,
    /// The CPU of the measurement.
    pub cpu: usize,
    /// What a reader should know of the whole.
    pub notes: Vec<String>,
    /// The cases, in the order in which they ran.
    pub cases: Vec<CasePairs>,
}

/// All pairs of one case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CasePairs {
    /// `group/variant/parameter`.
    pub id: String,
    /// Neither side can change it: if it moves, it is not the sides that differ.
    pub canary: bool,
    /// What the two sides proved in their first pair.
    pub evidence: [Vec<String>; 2],
    /// Hash of the source of the operation on each side.
    pub bodies: [String; 2],
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Why it ended without a verdict. It has no pairs then: what is not proved has no number.
    pub ended: Option<Ended>,
    /// The pairs, in order.
    pub pairs: Vec<PairRecord>,
}

/// An end without a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// What kind of end.
    pub why: Why,
    /// The sentence.
    pub sentence: String,
}

/// What kind of end a case came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The machine lacks what the case needs, for both sides alike.
    Skipped,
    /// A claim does not hold, one side alone cannot run it, or a side died, hung or answered nonsense.
    Failed,
    /// Only one of the two builds has it.
    Lone,
}

/// One pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairRecord {
    /// ln(B/A).
    pub difference: f64,
    /// An iteration on each side, ns: the lower quartile of its turns.
    pub cost_ns: [f64; 2],
    /// Why it does not count. By what happened on the machine, never by its figure.
    pub rejected: Option<String>,
}

impl PairRecord {
    /// A pair that does not count and has no figure.
    pub fn rejected(sentence: String) -> Self {
        Self { rejected: Some(sentence), ..Self::default() }
    }
}

/// What the pairs say of one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// `group/variant/parameter`.
    pub id: String,
    /// Neither side can change it.
    pub canary: bool,
    /// An iteration on each side, ns: medians over the pairs that count.
    pub cost_ns: [f64; 2],
    /// Pairs that count.
    pub pairs: usize,
    /// Pairs that were rejected.
    pub rejected: usize,
    /// What its costs say that its change does not.
    pub remark: Option<String>,
    /// The smallest change that such pairs would show four times in five, as a share; none for too few pairs.
    pub detectable: Option<f64>,
    /// The verdict with its grounds.
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl CasePairs {
    /// A case that ends without a verdict: whatever it has measured is forgotten.
    pub fn end(&mut self, why: Why, sentence: String) {
        self.pairs.clear();
        self.ended = Some(Ended { why, sentence });
    }

    /// The figures of the pairs that count, in order.
    pub fn differences(&self) -> Vec<f64> {
        self.pairs.iter().filter(|pair| pair.rejected.is_none()).map(|pair| pair.difference).collect()
    }

    /// Why the machine was unfit, if too many pairs had to be rejected.
    pub fn unfit(&self) -> Option<String> {
        let rejected: Vec<_> = self.pairs.iter().filter_map(|pair| pair.rejected.as_ref()).collect();
        let all = self.pairs.len();
        let too_many = rejected.len() > FEW_REJECTED && rejected.len() as f64 > MOST_REJECTED * all as f64;
        let last = rejected.last().filter(|_| too_many)?;
        Some(format!(
            "the machine is unfit: {} of {all} pairs were rejected, the last because {last}",
            rejected.len()
        ))
    }

    fn row(&self, rule: &Rule, cases: usize) -> Row {
        let differences = self.differences();
        let counted: Vec<_> = self.pairs.iter().filter(|pair| pair.rejected.is_none()).collect();
        let cost = |side: usize| median(&counted.iter().map(|pair| pair.cost_ns[side]).collect::<Vec<_>>());
        let judged = match stand(&differences, rule, cases) {
            Stand::Closed(judgement) => judgement,
            Stand::Open(wanted) => Judgement::open(&differences, wanted),
        };
        let judgement = match (&self.ended, self.unfit()) {
            (Some(Ended { sentence, .. }), _) => {
                Judgement { verdict: Verdict::Incomparable, ..judged }.because(sentence.clone())
            }
            (None, Some(sentence)) => {
                Judgement { verdict: Verdict::Inconclusive, ..judged }.because(sentence)
            }
            (None, None) => judged,
        };
        Row {
            id: self.id.clone(),
            canary: self.canary,
            cost_ns: [cost(0), cost(1)],
            remark: remark([cost(0), cost(1)], &judgement, rule),
            pairs: counted.len(),
            rejected: self.pairs.len() - counted.len(),
            detectable: Some(rule.detectable(&differences)).filter(|share| share.is_finite()),
            judgement,
        }
    }
}

/// Change compares the fastest of neighbouring turns, costs the lower quartiles of all of them. Where these two
/// disagree, one side met its slow mode more often.
fn remark(cost_ns: [f64; 2], judgement: &Judgement, rule: &Rule) -> Option<String> {
    let apart = cost_ns[1] / cost_ns[0] - 1.0;
    let off = apart < judgement.change.low - rule.margin || apart > judgement.change.high + rule.margin;
    (apart.is_finite() && off).then(|| {
        format!(
            "its costs differ by {:+.1} %, its fastest turns by {:+.1} %: one side met a slower mode of the operation \
             more often",
            100.0 * apart,
            100.0 * judgement.change.estimate
        )
    })
}

impl Paired {
    /// The verdicts. Each is held among all the cases.
    pub fn judge(&self) -> Vec<Row> {
        self.cases.iter().map(|case| case.row(&self.rule, self.cases.len())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(differences: &[f64]) -> CasePairs {
        let pair = |&difference| PairRecord { difference, cost_ns: [100.0, 100.0], rejected: None };
        CasePairs { id: "a/b".into(), pairs: differences.iter().map(pair).collect(), ..CasePairs::default() }
    }

    fn slower(by: f64, pairs: usize) -> Vec<f64> {
        (0..pairs).map(|i| by + 0.001 * (i % 5) as f64).collect()
    }

    #[test]
    fn a_rejected_pair_does_not_count() {
        let mut case = case(&slower(0.05, 16));
        case.pairs.insert(
            3,
            PairRecord { difference: -9.0, rejected: Some("it moved".into()), ..Default::default() },
        );
        let row = case.row(&Rule::default(), 1);
        assert_eq!((row.judgement.verdict, row.pairs, row.rejected), (Verdict::Slower, 16, 1));
    }

    #[test]
    fn too_many_rejected_pairs_are_the_machines_fault() {
        let mut case = case(&slower(0.05, 16));
        case.pairs.iter_mut().take(5).for_each(|pair| pair.rejected = Some("it moved".into()));
        let row = case.row(&Rule::default(), 1);
        assert_eq!(row.judgement.verdict, Verdict::Inconclusive);
        assert!(
            row.judgement
                .reason
                .is_some_and(|reason| reason.contains("5 of 16") && reason.contains("it moved"))
        );
    }

    #[test]
    fn a_case_that_ended_is_incomparable_and_says_why() {
        let mut case = case(&slower(0.05, 16));
        case.end(Why::Failed, "side B died".into());
        let row = case.row(&Rule::default(), 1);
        assert_eq!((row.judgement.verdict, row.pairs), (Verdict::Incomparable, 0), "no number");
        assert_eq!(row.judgement.reason.as_deref(), Some("side B died"));
    }
}
