//! Judges what no operation can do, whatever it claims: take longer than the clock ran, or use other threads' CPU time
//! that it does not have.

use super::super::{CaseEnd, Sample};
use crate::case::{Case, OwnTasks};

/// Largest ratio of the time that a subject tells to the time that passed. Some subjects read a clock of the kernel's,
/// whose rate may differ from the raw counter's by 500 ppm.
const CLOCKS: f64 = 1.001;
/// How much longer it may be besides, ns: two readings of the clock.
const READINGS_NS: f64 = 1_000.0;
/// Largest CPU time of other threads of this process, as a share of the time that passed …
const THREADS: f64 = 0.05;
/// … and at least, ns: a thread that ends or begins between two batches.
const THREADS_NS: f64 = 200_000.0;

/// Judges one sample; `told_ns` is the time that the subject returned, if time was measured.
///
/// Both counts are exact: an honest case that declares its threads is never condemned by chance.
///
/// # Errors
/// [`CaseEnd::Failed`]: the time was made up, or another thread did the work.
pub(in crate::trial) fn plausible(case: &Case, sample: &Sample, told_ns: Option<f64>) -> Result<(), CaseEnd> {
    let passed_ns = sample.elapsed_ns;
    if let Some(told) = told_ns.filter(|told| *told > passed_ns * CLOCKS + READINGS_NS) {
        return Err(CaseEnd::Failed(format!(
            "{} iterations are said to have taken {told:.0} ns, and only {passed_ns:.0} ns passed: the time was made \
             up or remembered",
            sample.iterations
        )));
    }
    let others_ns = sample.delta.counted.other_threads_ns as f64;
    let has_tasks = case.own_tasks != OwnTasks::None || sample.delta.partners.is_some();
    if !has_tasks && others_ns > (passed_ns * THREADS).max(THREADS_NS) {
        return Err(CaseEnd::Failed(format!(
            "other threads of this process ran for {others_ns:.0} ns in a batch of {passed_ns:.0} ns: work was left to \
             them; declare them as partners or by own_tasks if they belong to the operation"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Delta, PartnerReport, Reading};

    fn judged(case: &Case, told_ns: f64, other_threads_ns: u64, partners: bool) -> Result<(), CaseEnd> {
        let counted = Reading { other_threads_ns, ..Reading::default() };
        let partners = partners.then(PartnerReport::default);
        let delta = Delta { counted, partners, ..Delta::default() };
        let sample =
            Sample { iterations: 9, counted: 1, elapsed_ns: 1e7, ran_ns: 0, delta, events: None, rounds: 0 };
        plausible(case, &sample, Some(told_ns))
    }

    fn case() -> Case {
        Case::looped("case", "a case", |_| {})
    }

    #[test]
    fn a_time_that_did_not_pass_is_caught() {
        assert_eq!(judged(&case(), 1e7, 0, false), Ok(()));
        let Err(CaseEnd::Failed(sentence)) = judged(&case(), 1.1e7, 0, false) else { panic!("believed") };
        assert!(sentence.contains("11000000 ns, and only 10000000 ns passed"), "{sentence}");
    }

    #[test]
    fn work_of_a_thread_that_was_not_declared_is_caught() {
        assert_eq!(judged(&case(), 1.0, 100_000, false), Ok(()));
        assert!(judged(&case(), 1.0, 9_000_000, false).is_err());
        assert_eq!(judged(&case(), 1.0, 9_000_000, true), Ok(()), "a partner is declared");
        assert_eq!(judged(&case().own_tasks(OwnTasks::Elsewhere), 1.0, 9_000_000, false), Ok(()));
    }
}
