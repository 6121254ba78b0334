//! `--output-format bencher`: the lines of Rust's own `#[bench]`, which several CI tools read.
//!
//! Criterion's version of this format cuts values to whole numbers, so a third of a nanosecond becomes 0.

use crate::record::{CaseRecord, Outcome};

/// `test ID ... bench: VALUE UNIT/iter (+/- STANDARD DEVIATION)`, with decimals as recent versions of libtest print.
pub(super) fn bencher_line(case: &CaseRecord, unit: &str) -> String {
    match &case.outcome {
        Outcome::Measured(m) => format!(
            "test {} ... bench: {:>14.4} {unit}/iter (+/- {:.4})",
            case.id,
            m.figure().estimate,
            m.standard_deviation
        ),
        Outcome::Skipped(sentence) => format!("test {} ... ignored, {sentence}", case.id),
        Outcome::Disturbed(sentence) => format!("test {} ... ignored, disturbed: {sentence}", case.id),
        Outcome::Failed(sentence) => format!("test {} ... FAILED: {sentence}", case.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Interval, Measured, fixture_run};

    #[test]
    fn a_third_of_a_nanosecond_is_not_zero() {
        let median = Interval { estimate: 0.3134, low: 0.31, high: 0.32 };
        let measured = Measured { median, standard_deviation: 0.0021, ..Default::default() };
        assert_eq!(
            bencher_line(&fixture_run::measured_case("empty_loop/register", measured), "ns"),
            "test empty_loop/register ... bench:         0.3134 ns/iter (+/- 0.0021)"
        );
    }
}
