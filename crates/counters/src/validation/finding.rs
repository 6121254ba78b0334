//! One row of an experiment: the published, expected and found values, and the verdict on the found one.

use syscost_statistic::{median, standard_deviation, student_upper_quantile};

/// A counter's value compared with the known one. Values are texts with their units, ready for a table.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The counted quantity.
    pub what: String,
    /// The value in the paper; empty where the paper has none.
    pub published: String,
    /// The known amount that the experiment used.
    pub expected: String,
    /// The value of the counter.
    pub found: String,
    /// The largest accepted distance between the expected and the found value.
    pub tolerance: String,
    /// Whether the found value is within the tolerance.
    pub verdict: Verdict,
}

/// Whether a counter was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The found value is within the tolerance.
    Passed,
    /// The found value is outside the tolerance, and only the counter can be the cause.
    Failed,
    /// A requirement of the experiment is missing, or the row is only a warning. It holds the reason.
    NotJudged(String),
    /// The found value is outside the tolerance, and something other than the counter may be the cause, which it holds.
    Inconclusive(String),
}

impl Verdict {
    fn from_passed(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }

    /// The verdict as one or two words.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotJudged(_) => "not judged",
            Self::Inconclusive(_) => "inconclusive",
        }
    }

    /// The reason of a verdict that has one.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::NotJudged(why) | Self::Inconclusive(why) => Some(why),
            _ => None,
        }
    }
}

impl Finding {
    fn with_verdict(what: &str, published: &str, values: [String; 3], passed: bool) -> Self {
        let ([expected, found, tolerance], verdict) = (values, Verdict::from_passed(passed));
        Self { what: what.into(), published: published.into(), expected, found, tolerance, verdict }
    }

    /// A row for a count that must be exactly `expected`.
    pub(super) fn exact_count(what: &str, published: &str, expected: u64, found: u64) -> Self {
        let values = [expected.to_string(), found.to_string(), "exact".into()];
        Self::with_verdict(what, published, values, expected == found)
    }

    /// A row for two lists that must have the same items. It names the items that only one of them has.
    pub(super) fn same_items<T: Ord + ToString>(
        what: &str,
        published: &str,
        mut expected: Vec<T>,
        mut found: Vec<T>,
    ) -> Self {
        expected.sort_unstable();
        found.sort_unstable();
        let counts = [expected.len().to_string(), found.len().to_string(), "exact".into()];
        let row = Self::with_verdict(what, published, counts, expected == found);
        let odd = |list: &[T], other: &[T]| -> Vec<String> {
            list.iter().filter(|item| !other.contains(item)).map(T::to_string).collect()
        };
        match row.verdict {
            Verdict::Passed => row,
            _ => Self {
                expected: format!("{} with {:?}", row.expected, odd(&expected, &found)),
                found: format!("{} with {:?}", row.found, odd(&found, &expected)),
                ..row
            },
        }
    }

    /// A row for a size in KB that must be within `percent` of the expected one.
    pub(super) fn size_within(
        what: &str,
        published: &str,
        expected_kb: f64,
        found_kb: f64,
        percent: f64,
    ) -> Self {
        let passed = (found_kb - expected_kb).abs() <= expected_kb.abs() * percent / 100.0;
        let values = [format!("{expected_kb:.0} KB"), format!("{found_kb:.0} KB"), format!("±{percent} %")];
        Self::with_verdict(what, published, values, passed)
    }

    /// A row for the mean of `samples`, in percent. Its distance from `expected` and half the width of its 95 % interval must
    /// both be within `tolerance`.
    pub(super) fn mean_share(
        what: &str,
        published: &str,
        expected: f64,
        samples: &[f64],
        tolerance: f64,
    ) -> Self {
        let (mean, half) = mean_and_half_width(samples);
        let passed = (mean - expected).abs() <= tolerance && half <= tolerance;
        let found = format!("{mean:.2} ±{half:.2} %");
        let values = [format!("{expected:.2} %"), found, format!("±{tolerance} %, interval too")];
        Self::with_verdict(what, published, values, passed)
    }

    /// A row for a share in percent that must be within `tolerance` of the expected one.
    pub(super) fn share_near(what: &str, published: &str, expected: f64, found: f64, tolerance: f64) -> Self {
        let passed = (found - expected).abs() <= tolerance;
        let values = [format!("{expected:.2} %"), format!("{found:.2} %"), format!("±{tolerance} %")];
        Self::with_verdict(what, published, values, passed)
    }

    /// A row without values: the experiment cannot run here.
    pub(super) fn not_judged(what: &str, why: impl Into<String>) -> Self {
        Self::with_verdict(what, "", Default::default(), true).without_verdict(why)
    }

    /// The same row without a verdict, for this reason.
    pub(super) fn without_verdict(self, why: impl Into<String>) -> Self {
        Self { verdict: Verdict::NotJudged(why.into()), ..self }
    }

    /// The only row of an experiment that ended with an error.
    pub(super) fn broken_off(why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Inconclusive(why.into()), ..Self::not_judged("all of it", "") }
    }

    /// Turns a failure into an inconclusive result, because `why` may be its cause. Other verdicts stay.
    pub(super) fn excuse_failure(self, why: impl Into<String>) -> Self {
        match self.verdict {
            Verdict::Failed => Self { verdict: Verdict::Inconclusive(why.into()), ..self },
            _ => self,
        }
    }
}

/// The mean of the samples, and half the width of its 95 % interval by Student's distribution, as in the paper.
pub(super) fn mean_and_half_width(samples: &[f64]) -> (f64, f64) {
    let n = samples.len().max(1) as f64;
    let mean = samples.iter().sum::<f64>() / n;
    if samples.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let error = standard_deviation(samples) / n.sqrt();
    (mean, student_upper_quantile(0.025, samples.len() - 1) * error)
}

/// The median of differences in bytes, as KB.
pub(super) fn median_kb(bytes: &[f64]) -> f64 {
    median(bytes) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_that_is_far_or_uncertain_fails() {
        let verdict = |samples: &[f64]| Finding::mean_share("it", "50", 50.0, samples, 0.5).verdict;
        assert_eq!(verdict(&[50.1, 49.9, 50.2, 49.8]), Verdict::Passed);
        assert_eq!(verdict(&[51.1, 50.9, 51.2, 50.8]), Verdict::Failed, "too far");
        assert_eq!(verdict(&[40.0, 60.0]), Verdict::Failed, "not known");
        assert_eq!(verdict(&[50.0]), Verdict::Failed, "one sample has no interval");
    }

    #[test]
    fn only_a_failure_is_excused_and_it_never_becomes_a_pass() {
        let excused = |found| Finding::exact_count("it", "9", 9, found).excuse_failure("others").verdict;
        assert_eq!(excused(9), Verdict::Passed);
        assert_eq!(excused(8), Verdict::Inconclusive("others".into()));
    }

    #[test]
    fn the_half_width_is_that_of_student_s_distribution() {
        // Five values have the mean 3 and the standard deviation 1.5811; Student's t for four degrees of freedom is 2.7764.
        let (mean, half) = mean_and_half_width(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((mean - 3.0).abs() < 1e-9 && (half - 1.9632).abs() < 1e-3, "{mean} {half}");
    }

    #[test]
    fn a_size_is_within_its_tolerance_on_both_sides() {
        let verdict = |found| Finding::size_within("it", "988", 976.0, found, 1.0).verdict;
        assert_eq!(
            (verdict(980.0), verdict(988.0), verdict(964.0)),
            (Verdict::Passed, Verdict::Failed, Verdict::Failed)
        );
    }

    #[test]
    fn lists_with_different_items_fail_and_the_items_are_named() {
        let row = Finding::same_items("it", "", vec!["a", "b"], vec!["b", "c"]);
        assert_eq!(row.verdict, Verdict::Failed);
        assert!(row.expected.contains('a') && row.found.contains('c') && !row.found.contains('b'), "{row:?}");
        assert_eq!(Finding::same_items("it", "", vec![2, 1], vec![1, 2]).verdict, Verdict::Passed);
    }
}
