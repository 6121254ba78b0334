//! Judges interference: CPU time that other tasks and the hypervisor took, as opposed to the case's own tasks.

use super::super::{CaseEnd, Sample};
use crate::case::{Case, OwnTasks};
use crate::clock::{Delta, Reading, USER_HZ};
use crate::statistic;

/// Largest share of the time that the hypervisor may take.
const MOST_STOLEN: f64 = 0.25;
/// Largest share of the quickest samples during which other tasks may have the CPU.
const OTHERS: f64 = 0.05;
/// [`OTHERS`] for a case with tasks of its own on the same CPU. The kernel charges no process for the time a task
/// runs after its end was reported: about a tenth of a short life. A busy foreign task takes half of the CPU.
const OTHERS_BESIDE_OWN: f64 = 0.3;

/// Time of a sample that is charged to no task, ns: from the reading of the clock to that of the thread's CPU time and back,
/// and the time of interrupts. It is a tenth of the shortest samples, which hold one round trip. It is not another task's, since
/// a task that gets the CPU keeps it for a slice of some hundred µs.
const UNCHARGED_NS: f64 = 5_000.0;

/// Checks over all samples that other tasks and the hypervisor left the CPU to the case. Returns the evidence.
///
/// # Errors
/// [`CaseEnd::Disturbed`]: they took too much of it.
pub(in crate::trial) fn judge_interference(case: &Case, samples: &[Sample]) -> Result<String, CaseEnd> {
    let others = others_share(case, samples);
    if others.is_some_and(|others| others > allowed_others_share(case)) {
        return Err(CaseEnd::Disturbed(format!(
            "other tasks had this CPU for {:.0} % of the time of even the quickest samples: stop them, or run again when \
             they have ended",
            100.0 * others.unwrap_or_default()
        )));
    }
    let stolen = stolen_share(samples);
    if stolen > MOST_STOLEN {
        return Err(CaseEnd::Disturbed(format!(
            "the hypervisor took {:.0} % of this CPU's time: run again when the host is quieter",
            100.0 * stolen
        )));
    }
    Ok(load_sentence(others, samples))
}

/// The evidence sentence about the load on the other CPUs; `busy` is a number of CPUs.
pub(in crate::trial) fn other_cpus_sentence(busy: f64) -> String {
    format!("on CPUs without a task of it others kept {busy:.2} busy")
}

fn allowed_others_share(case: &Case) -> f64 {
    if case.own_tasks == OwnTasks::SameCpu { OTHERS_BESIDE_OWN } else { OTHERS }
}

/// The counters over all samples as a sentence, as far as the kernel provides them.
fn load_sentence(others: Option<f64>, samples: &[Sample]) -> String {
    let moved = samples.iter().filter(|s| s.delta.migrated).count();
    let is_known = |f: fn(&Reading) -> Option<u64>| samples.iter().all(|s| f(&s.delta.counted).is_some());
    let mut facts = vec![match moved {
        0 => "stayed on one CPU".to_owned(),
        _ => format!("moved to another CPU in {moved} of {} samples", samples.len()),
    }];
    if is_known(|r| r.throttled) {
        facts.push("not throttled".into());
    }
    if let Some(others) = others {
        facts.push(format!("other tasks had {:.1} % of the quickest samples", 100.0 * others));
    }
    if is_known(|r| r.stolen_ticks) {
        facts.push(format!("the hypervisor took {:.0} % of all", 100.0 * stolen_share(samples)));
    }
    facts.join(", ")
}

/// Whether other tasks left the CPU to the case in this sample, as far as is known.
pub(super) fn is_quiet(case: &Case, sample: &Sample) -> bool {
    others_share_of_sample(case, sample).is_none_or(|share| share <= allowed_others_share(case))
}

/// Share of a sample during which other tasks had the CPU; `None` if unknown.
fn others_share_of_sample(case: &Case, s: &Sample) -> Option<f64> {
    let had_ns = other_tasks_ns(case.own_tasks, &s.delta, s.elapsed_ns, s.ran_ns)?;
    Some(((had_ns as f64 - UNCHARGED_NS).max(0.0) / s.elapsed_ns.max(1.0)).min(1.0))
}

/// Median over the quickest quarter of the samples of the share during which other tasks had the CPU: the published cost is
/// taken from these, and disturbances of other samples do not matter.
fn others_share(case: &Case, samples: &[Sample]) -> Option<f64> {
    let mut quickest: Vec<&Sample> = samples.iter().collect();
    let cost = |s: &Sample| s.counted as f64 / s.iterations.max(1) as f64;
    quickest.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    quickest.truncate(samples.len().div_ceil(4));
    let shares: Option<Vec<_>> = quickest.into_iter().map(|s| others_share_of_sample(case, s)).collect();
    shares.filter(|shares| !shares.is_empty()).map(|shares| statistic::median(&shares))
}

/// Time that tasks outside the case had the CPU while it could have run, ns; `None` if unknown.
pub(in crate::trial) fn other_tasks_ns(
    own_tasks: OwnTasks,
    delta: &Delta,
    elapsed_ns: f64,
    ran_ns: u64,
) -> Option<u64> {
    let counted = &delta.counted;
    match own_tasks {
        OwnTasks::None => counted
            .waited_ns
            .map(|waited| foreign_ns_beside_partners(waited, delta, elapsed_ns, ran_ns) as u64),
        OwnTasks::SameCpu => {
            let stolen_ns = counted.stolen_ticks.unwrap_or(0) as f64 * 1e9 / USER_HZ;
            Some((elapsed_ns - 1e3 * counted.process_us as f64 - stolen_ns).max(0.0) as u64)
        }
        OwnTasks::Elsewhere => None,
    }
}

/// Time that tasks outside the case took from it, ns. Without partners on its CPU, this is the time for which the thread was
/// ready but did not run. With partners, the thread also waits for them. Other tasks then had at most the time in which neither
/// it nor a partner ran, and at most the sum of their waits.
fn foreign_ns_beside_partners(waited: u64, delta: &Delta, elapsed_ns: f64, ran_ns: u64) -> f64 {
    let Some(partners) = delta.partners else { return waited as f64 };
    let here = match partners.ran_here_ns.filter(|_| partners.here) {
        None => waited as f64,
        Some(ran) => {
            let all = (waited + partners.waited_here_ns.unwrap_or(0)) as f64;
            all.min(elapsed_ns - (ran_ns + ran) as f64).max(0.0)
        }
    };
    here.max(partners.waited_elsewhere_ns.unwrap_or(0) as f64)
}

/// Share of the samples' time that the hypervisor took. Its resolution of 10 ms exceeds a short case, so up to two ticks
/// count as none.
fn stolen_share(samples: &[Sample]) -> f64 {
    let ticks: u64 = samples.iter().filter_map(|s| s.delta.counted.stolen_ticks).sum();
    let elapsed: f64 = samples.iter().map(|s| s.elapsed_ns).sum();
    if ticks <= 2 { 0.0 } else { ticks as f64 * 1e9 / USER_HZ / elapsed.max(1.0) }
}

// Finds the samples in which the measuring thread was held up: stopped by a signal, or frozen with its control group.
//
// The kernel counts neither as time of waiting for a CPU, and it counts the switch as voluntary. So a sample is recognised by a
// long time in which the thread did not run, in a case that does not sleep by itself.

/// Shortest time that counts, ns: a device may be slower than usual, and a timer late, by tens of milliseconds. No share of the
/// sample is required, since busy tasks may lengthen a sample too.
const SHORTEST_NS: f64 = 50e6;
/// Least ratio of a held-up sample's idle time per iteration to that of the median sample.
const UNUSUAL_RATIO: f64 = 10.0;

/// For each sample, whether the thread was held up in it.
pub(in crate::trial) fn held_up_samples(samples: &[Sample]) -> Vec<bool> {
    let each: Vec<_> = samples.iter().map(|s| idle_ns(s) / s.iterations.max(1) as f64).collect();
    let usual = if each.is_empty() { 0.0 } else { statistic::median(&each) };
    let is_held_up = |(s, each): (&Sample, &f64)| idle_ns(s) > SHORTEST_NS && *each > UNUSUAL_RATIO * usual;
    samples.iter().zip(&each).map(is_held_up).collect()
}

/// Time in which the thread neither ran nor was ready, ns.
fn idle_ns(s: &Sample) -> f64 {
    (s.elapsed_ns - s.ran_ns as f64 - s.delta.counted.waited_ns.unwrap_or(0) as f64).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Delta, PartnerReport, Reading};

    /// Partners are not own tasks: they live as long as the case.
    fn judge_beside_partners(samples: &[Sample]) -> Result<String, CaseEnd> {
        let case = Case::looped("case", "a case", |_| {});
        judge_interference(&case, samples)
    }

    /// A sample of 1 ms: times that the thread and its partners on its CPU ran and waited, ns.
    fn shared_sample(ran: u64, waited: u64, partner_ran: u64, partner_waited: u64) -> Sample {
        let partners = PartnerReport {
            here: true,
            ran_here_ns: Some(partner_ran),
            waited_here_ns: Some(partner_waited),
            ..PartnerReport::default()
        };
        let counted = Reading { waited_ns: Some(waited), ..Reading::default() };
        let delta = Delta { counted, partners: Some(partners), ..Delta::default() };
        Sample { iterations: 1, counted: 1, elapsed_ns: 1e6, ran_ns: ran, delta, ..Sample::default() }
    }

    #[test]
    fn a_partner_on_the_same_cpu_is_no_disturbance() {
        assert!(judge_beside_partners(&[shared_sample(500_000, 300_000, 490_000, 300_000)]).is_ok());
    }

    #[test]
    fn samples_disturbed_beside_quiet_quicker_ones_are_no_disturbance() {
        let slow = |counted| Sample { counted, ..shared_sample(300_000, 400_000, 300_000, 400_000) };
        let clean = Sample { counted: 1, ..shared_sample(900_000, 0, 0, 0) };
        let disturbed: Vec<_> = (0..8).map(|i| slow(2 + i)).collect();
        assert!(judge_beside_partners(&[disturbed.clone(), vec![clean.clone(), clean]].concat()).is_ok());
        assert!(judge_beside_partners(&disturbed).is_err());
    }

    #[test]
    fn uncharged_time_in_a_short_sample_is_no_disturbance() {
        let short =
            |elapsed_ns, own, partner| Sample { elapsed_ns, ..shared_sample(own, 4_000, partner, 4_000) };
        assert!(judge_beside_partners(&[short(20e3, 9_500, 8_500)]).is_ok());
        assert!(judge_beside_partners(&[short(20e3, 4_000, 4_000)]).is_err());
    }

    #[test]
    fn another_task_is_a_disturbance() {
        let disturbed = judge_beside_partners(&[shared_sample(300_000, 400_000, 300_000, 400_000)]);
        let Err(CaseEnd::Disturbed(sentence)) = disturbed else { panic!("believed") };
        assert!(sentence.contains("40 %"), "{sentence}");
    }

    #[test]
    fn an_idle_cpu_is_no_disturbance() {
        assert!(judge_beside_partners(&[shared_sample(100_000, 10_000, 100_000, 10_000)]).is_ok());
    }

    #[test]
    fn a_partner_that_waits_on_another_cpu_is_a_disturbance() {
        let mut sample = shared_sample(500_000, 0, 0, 0);
        let partners = PartnerReport { waited_elsewhere_ns: Some(300_000), ..PartnerReport::default() };
        sample.delta.partners = Some(partners);
        assert!(judge_beside_partners(&[sample]).is_err());
    }

    fn other_tasks_time(own_tasks: OwnTasks, counted: Reading) -> Option<u64> {
        other_tasks_ns(own_tasks, &Delta { counted, ..Delta::default() }, 1e6, 0)
    }

    #[test]
    fn waiting_for_own_tasks_is_no_disturbance() {
        let counted = Reading { waited_ns: Some(400_000), process_us: 990, ..Reading::default() };
        assert_eq!(other_tasks_time(OwnTasks::None, counted), Some(400_000));
        assert_eq!(other_tasks_time(OwnTasks::SameCpu, counted), Some(10_000));
        assert_eq!(other_tasks_time(OwnTasks::Elsewhere, counted), None);
    }

    #[test]
    fn beside_own_tasks_the_uncharged_time_counts_as_that_of_other_tasks() {
        let counted = Reading { process_us: 500, ..Reading::default() };
        assert_eq!(other_tasks_time(OwnTasks::SameCpu, counted), Some(500_000));
        let stolen = Reading { stolen_ticks: Some(1), ..counted };
        assert_eq!(
            other_tasks_time(OwnTasks::SameCpu, stolen),
            Some(0),
            "the hypervisor is judged by itself"
        );
    }

    fn sample(elapsed_ms: f64, ran_ms: u64, waited_ms: u64) -> Sample {
        let counted = Reading { waited_ns: Some(waited_ms * 1_000_000), ..Reading::default() };
        let delta = Delta { counted, ..Delta::default() };
        Sample {
            iterations: 1,
            elapsed_ns: 1e6 * elapsed_ms,
            ran_ns: ran_ms * 1_000_000,
            delta,
            ..Sample::default()
        }
    }

    #[test]
    fn a_thread_that_did_not_run_was_held_up() {
        let samples = [sample(2.0, 2, 0), sample(302.0, 2, 0), sample(2.1, 2, 0)];
        assert_eq!(held_up_samples(&samples), [false, true, false]);
        let beside_busy_tasks = [sample(90.0, 30, 60), sample(330.0, 30, 150), sample(90.0, 30, 60)];
        assert_eq!(held_up_samples(&beside_busy_tasks), [false, true, false]);
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_or_always_sleeps_was_not_held_up() {
        assert_eq!(held_up_samples(&[sample(2.0, 2, 0), sample(302.0, 2, 300)]), [false, false]);
        let sleeps = [sample(100.0, 1, 0), sample(110.0, 1, 0), sample(300.0, 1, 0)];
        assert_eq!(held_up_samples(&sleeps), [false; 3], "it always waits");
        assert_eq!(held_up_samples(&[]), [false; 0]);
    }
}
