//! Detects a core frequency that changes during cases. The time-stamp counter runs at a constant rate and does not show
//! it; a chain of dependent additions, timed before and after each case, does.

use crate::record::GroupRun;

/// Relative difference of the two readings of a case that occurs on a shared core of constant frequency.
const NOISE: f64 = 0.05;

/// A note if the frequency changed during some of the cases.
pub(super) fn note(run: &GroupRun) -> Option<String> {
    let pairs: Vec<(f64, f64)> = run.cases.iter().filter_map(|case| case.measured()?.core_hz).collect();
    let moved = pairs.iter().filter(|(before, after)| (after / before - 1.0).abs() > NOISE).count();
    let all = pairs.iter().flat_map(|(before, after)| [*before, *after]);
    let (low, high) = all.fold((f64::MAX, 0.0), |(low, high), hz| (hz.min(low), hz.max(high)));
    (moved > 0).then(|| {
        format!(
            "the core's frequency moved by more than 5 % during {moved} of {} cases: between {:.2} and {:.2} GHz",
            pairs.len(),
            low / 1e9,
            high / 1e9
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measured, fixture_run};

    fn run_with(core_hz: &[(f64, f64)]) -> GroupRun {
        let measured = |pair| Measured { core_hz: Some(pair), ..Measured::default() };
        let case = |pair: &(f64, f64)| fixture_run::measured_case("call/u64/3", measured(*pair));
        GroupRun { name: "call".into(), cases: core_hz.iter().map(case).collect(), ..GroupRun::default() }
    }

    #[test]
    fn a_ramp_is_told_and_a_steady_core_is_not() {
        assert_eq!(note(&run_with(&[(3.0e9, 3.1e9), (3.1e9, 3.0e9)])), None);
        let note = note(&run_with(&[(3.0e9, 3.0e9), (3.0e9, 3.7e9)])).expect("a ramp");
        assert!(note.contains("1 of 2 cases: between 3.00 and 3.70 GHz"), "{note}");
    }
}
