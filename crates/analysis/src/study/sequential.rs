//! The sequential test of a comparison by pairs. It decides whether there are enough pairs, and gives the verdict.
//!
//! If nothing changed, the two sides are exchangeable, so the signed-rank test of the pairs' log ratios is exact for any
//! distribution. Changes below the threshold raise no alarm. The test is made after 8, 16, 32 and 64 pairs.
//! If it flags a case, the change must be found again on fresh pairs. The probability of a false alarm is then the product
//! of two errors, below one in ten thousand for a case. Over a suite, the probability of any false change is below one in a
//! hundred for any number of cases. That also bounds the false discovery rate, and does not depend on the other cases.
//!
//! Source: Wilcoxon 1945; Hodges and Lehmann 1963; Bonferroni over looks and cases; Schuirmann 1987 for
//! equivalence.

use crate::record::paired::{CasePairs, Ended, Paired, Rule};
use crate::statistic::{
    Alternative, equivalence_p, hodges_lehmann, median, minimum_detectable_shift, signed_rank_p,
};
use serde::Serialize;
use syscost_engine::record::{Interval, Verdict};

/// The most cases that the sentence on layouts names.
const LAYOUT_CASES: usize = 3;
/// The number of rejected pairs after which the machine is called unfit if no pair counted. If some pairs count, the limit is
/// the number of pairs of the last look. Rejections come in spells of some seconds, so a lower limit would end cases that the
/// next pairs could decide.
const REJECTED_WITHOUT_ANY: usize = 8;

/// The looks at a case: the number of pairs, and the error level of the test at that look. With 8 pairs the smallest
/// possible p is 1/256.
const LOOKS: [(usize, f64); 4] = [(8, 0.004), (16, 0.003), (32, 0.003), (64, 0.002)];
/// The looks at fresh pairs after a case was flagged, as in [`LOOKS`].
const CONFIRMATIONS: [(usize, f64); 3] = [(8, 0.004), (16, 0.003), (32, 0.003)];
/// The error level of each sequence of looks: the sum of its levels for [`LOOKS`], an upper limit for [`CONFIRMATIONS`].
const ERROR: f64 = 0.012;
/// The largest probability of any false change in a suite.
const ERROR_OF_SUITE: f64 = 0.01;
/// Confidence of the interval of a change.
const CONFIDENCE: f64 = 0.95;

impl Default for Rule {
    fn default() -> Self {
        Self::for_threshold(0.01)
    }
}

impl Rule {
    /// The rule for changes beyond this share.
    pub fn for_threshold(threshold: f64) -> Self {
        Self { threshold, margin: 2.0 * threshold, looks: LOOKS.len() }
    }

    /// The numbers of pairs of a case at the first and at the last look. A flagged case takes up to 32 more.
    pub fn fewest_and_most_pairs(&self) -> [usize; 2] {
        [1, self.looks.clamp(1, LOOKS.len())].map(|look| LOOKS[look - 1].0)
    }

    /// The smallest change, as a share, that pairs like these would flag four times in five at the last look. It cannot be
    /// computed for a last look at eight pairs, where the smallest p is the error itself.
    pub fn detectable_change(&self, differences: &[f64]) -> f64 {
        let [_, last] = self.fewest_and_most_pairs();
        (self.threshold.ln_1p() + minimum_detectable_shift(differences, last)).exp_m1()
    }
}

/// The state of a case after some pairs.
#[derive(Clone, Debug, PartialEq)]
pub enum Stand {
    /// More pairs are needed: this many in all.
    Open(usize),
    /// There is a verdict.
    Closed(Judgement),
}

/// A verdict with its grounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The cost of B divided by that of A, less 1: the pseudomedian over the pairs, with its 95 % interval.
    pub change: Interval,
    /// The p-value of the change; 1 if no change was found.
    pub p: f64,
    /// The reason why there is no stronger verdict.
    pub reason: Option<String>,
}

impl Judgement {
    fn new(verdict: Verdict, differences: &[f64], p: f64) -> Self {
        Self { verdict, change: hodges_lehmann(differences, CONFIDENCE).map(f64::exp_m1), p, reason: None }
    }

    /// An inconclusive judgement, because there are fewer pairs than wanted.
    fn from_too_few_pairs(differences: &[f64], wanted: usize) -> Self {
        let open = Self::new(Verdict::Inconclusive, differences, 1.0);
        open.with_reason(format!("ended after {} of {wanted} pairs", differences.len()))
    }

    fn with_reason(mut self, sentence: String) -> Self {
        self.reason = Some(sentence);
        self.p = 1.0;
        self
    }
}

/// The state of a case after pairs with these log ratios, in a comparison of `cases` cases.
pub fn case_state(differences: &[f64], rule: &Rule, cases: usize) -> Stand {
    let looks = &LOOKS[..rule.looks.clamp(1, LOOKS.len())];
    for &(pairs, error) in looks {
        let Some(seen) = differences.get(..pairs) else { return Stand::Open(pairs) };
        for direction in [Alternative::Greater, Alternative::Less] {
            if p_within_threshold(seen, rule, direction) <= error {
                return confirm_change(differences, pairs, direction, rule, cases);
            }
        }
        if equivalence_p(seen, rule.margin.ln_1p()) <= error {
            return Stand::Closed(Judgement::new(Verdict::Same, seen, 1.0));
        }
    }
    let open = Judgement::new(Verdict::Inconclusive, differences, 1.0);
    Stand::Closed(open.with_reason("neither a change nor its absence was shown".into()))
}

/// The state of a flagged case: whether fresh pairs find the change again, at an error level corrected for all cases.
fn confirm_change(
    differences: &[f64],
    flagged: usize,
    direction: Alternative,
    rule: &Rule,
    cases: usize,
) -> Stand {
    let looks = CONFIRMATIONS.len() as f64;
    let among_cases = ERROR_OF_SUITE / (cases.max(1) as f64 * ERROR * looks);
    for (pairs, error) in CONFIRMATIONS {
        let Some(fresh) = differences.get(flagged..flagged + pairs) else {
            return Stand::Open(flagged + pairs);
        };
        let p = p_within_threshold(fresh, rule, direction);
        if p <= error.min(among_cases) {
            let verdict = match direction {
                Alternative::Greater => Verdict::Slower,
                Alternative::Less => Verdict::Faster,
            };
            // The case was flagged with the error ERROR, and independently found again at one of the looks.
            return Stand::Closed(Judgement::new(verdict, differences, ERROR * looks * p));
        }
    }
    let open = Judgement::new(Verdict::Inconclusive, differences, 1.0);
    Stand::Closed(
        open.with_reason(format!("flagged after {flagged} pairs, and not found again on fresh ones")),
    )
}

/// The p-value of the hypothesis "the change is within the threshold".
fn p_within_threshold(differences: &[f64], rule: &Rule, direction: Alternative) -> f64 {
    let threshold = rule.threshold.ln_1p();
    let shift = if direction == Alternative::Greater { threshold } else { -threshold };
    signed_rank_p(differences, shift, direction)
}

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// `group/variant/parameter`.
    pub id: String,
    /// Whether the case is a canary, which neither side can change.
    pub canary: bool,
    /// The cost of an iteration on each side, ns: medians over the pairs that count.
    pub cost_ns: [f64; 2],
    /// Number of pairs that count.
    pub pairs: usize,
    /// Number of rejected pairs.
    pub rejected: usize,
    /// A remark if the difference of the costs contradicts the change.
    pub remark: Option<String>,
    /// The change between the two builds as they were linked, from one pair. Set if every other pair ran links of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_built: Option<f64>,
    /// Whether `as_built` differs from the change by more than the margin: then the layout of the builds causes the difference.
    pub is_layout: bool,
    /// The smallest change, as a share, that such pairs would show four times in five; `None` for too few pairs.
    pub detectable: Option<f64>,
    /// The verdict with its grounds.
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl CasePairs {
    /// The number of pairs at which this case, one of `cases`, is judged next; `None` if it needs no more pairs.
    pub fn pairs_needed(&self, rule: &Rule, cases: usize) -> Option<usize> {
        match case_state(&self.valid_log_ratios(), rule, cases) {
            Stand::Open(wanted) if self.unfit_reason(rule, cases).is_none() && self.ended.is_none() => {
                Some(wanted)
            }
            _ => None,
        }
    }

    /// The reason why the machine was unfit, if too many pairs were rejected to reach a verdict. Events on the machine cause
    /// rejections, never the figures of pairs, so a verdict of the other pairs is valid.
    pub fn unfit_reason(&self, rule: &Rule, cases: usize) -> Option<String> {
        let differences = self.valid_log_ratios();
        let [_, most] = rule.fewest_and_most_pairs();
        let limit = if differences.is_empty() { REJECTED_WITHOUT_ANY } else { most };
        let rejected: Vec<_> = self.pairs.iter().filter_map(|pair| pair.rejected.as_ref()).collect();
        let is_open = || matches!(case_state(&differences, rule, cases), Stand::Open(_));
        let last = rejected.last().filter(|_| rejected.len() >= limit && is_open())?;
        let all = self.pairs.len();
        Some(format!(
            "the machine is unfit: {} of {all} pairs were rejected, the last because {last}",
            rejected.len()
        ))
    }

    fn judged_row(&self, rule: &Rule, cases: usize) -> Row {
        let differences = self.valid_log_ratios();
        let counted: Vec<_> = self.pairs.iter().filter(|pair| pair.rejected.is_none()).collect();
        let cost = |side: usize| median(&counted.iter().map(|pair| pair.cost_ns[side]).collect::<Vec<_>>());
        let judged = match case_state(&differences, rule, cases) {
            Stand::Closed(judgement) => judgement,
            Stand::Open(wanted) => Judgement::from_too_few_pairs(&differences, wanted),
        };
        let judgement = match (&self.ended, self.unfit_reason(rule, cases)) {
            (Some(Ended { sentence, .. }), _) => {
                Judgement { verdict: Verdict::Incomparable, ..judged }.with_reason(sentence.clone())
            }
            (None, Some(sentence)) => {
                Judgement { verdict: Verdict::Inconclusive, ..judged }.with_reason(sentence)
            }
            (None, None) => judged,
        };
        let as_built = self.as_built.as_ref().filter(|pair| pair.rejected.is_none());
        let as_built = as_built.map(|pair| pair.difference.exp_m1());
        Row {
            id: self.id.clone(),
            canary: self.canary,
            cost_ns: [cost(0), cost(1)],
            remark: slow_mode_remark([cost(0), cost(1)], &judgement, rule),
            is_layout: as_built
                .is_some_and(|change| (change - judgement.change.estimate).abs() > rule.margin),
            as_built,
            pairs: counted.len(),
            rejected: self.pairs.len() - counted.len(),
            detectable: Some(rule.detectable_change(&differences)).filter(|share| share.is_finite()),
            judgement,
        }
    }
}

/// A sentence on the cases whose builds, as they were linked, differ because of their layout and not their code. `None` if
/// there are none. No verdict uses this difference.
pub fn layout_sentence<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<String> {
    let percent = |share: f64| format!("{:+.1} %", 100.0 * share);
    let cases: Vec<_> = rows.into_iter().filter(|row| row.is_layout).collect();
    let named = cases.iter().take(LAYOUT_CASES).filter_map(|row| {
        let code = percent(row.judgement.change.estimate);
        Some(format!(
            "{} by {} (over random orders of the functions by {code})",
            row.id,
            percent(row.as_built?)
        ))
    });
    let named: Vec<_> = named.collect();
    let rest = match cases.len().saturating_sub(LAYOUT_CASES) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!named.is_empty()).then(|| {
        format!(
            "layout, and no verdict: as their builds linked them, the sides differ in {}{rest}",
            named.join(", ")
        )
    })
}

/// A remark if one side ran in its slow mode more often. The change compares the fastest of neighbouring turns, but the costs
/// are lower quartiles of all turns, so the two then disagree.
fn slow_mode_remark(cost_ns: [f64; 2], judgement: &Judgement, rule: &Rule) -> Option<String> {
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
    /// Judges every case. The permitted error is divided among all cases.
    pub fn judge(&self) -> Vec<Row> {
        self.cases.iter().map(|case| case.judged_row(&self.rule, self.cases.len())).collect()
    }
}

#[cfg(test)]
mod tests;
