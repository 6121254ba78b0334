//! Who else used the CPU: strangers, the hypervisor, and tasks of the case's own, which are no strangers.

use super::super::{CaseEnd, Sample};
use crate::case::{Case, OwnTasks};
use crate::clock::{Delta, Reading, USER_HZ};
use crate::statistic;

/// Share of the time that the hypervisor may take before the numbers say more about it than about us.
const STEAL: f64 = 0.25;
/// Share of the median sample's time that other tasks may have the CPU.
const OTHERS: f64 = 0.05;
/// The same beside tasks of the case's own on the same CPU. What a task runs after its parent was told of its end
/// is charged to nobody, some tenth of a short life; a stranger that always wants the CPU has half of it.
const BESIDE_COMPANY: f64 = 0.3;

/// What must hold for all samples together: other tasks and the hypervisor left us the CPU.
pub(in crate::trial) fn interference(case: &Case, samples: &[Sample]) -> Result<String, CaseEnd> {
    let others = others(case, samples);
    if others.is_some_and(|others| others > most_of_others(case)) {
        return Err(CaseEnd::Disturbed(format!(
            "other tasks had this CPU for {:.0} % of the median sample's time: stop them, or run again when they \
             have ended",
            100.0 * others.unwrap_or_default()
        )));
    }
    let stolen = stolen(samples);
    if stolen > STEAL {
        return Err(CaseEnd::Disturbed(format!(
            "the hypervisor took {:.0} % of this CPU's time: run again when the host is quieter",
            100.0 * stolen
        )));
    }
    Ok(known(others, samples))
}

/// How many CPUs others kept busy on which no task of the case was.
pub(in crate::trial) fn other_cpus(busy: f64) -> String {
    format!("on CPUs without a task of it others kept {busy:.2} busy")
}

fn most_of_others(case: &Case) -> f64 {
    if case.own_tasks == OwnTasks::SameCpu { BESIDE_COMPANY } else { OTHERS }
}

/// What the counters say of all samples together, and nothing of what the kernel does not tell.
fn known(others: Option<f64>, samples: &[Sample]) -> String {
    let moved = samples.iter().filter(|s| s.delta.migrated).count();
    let told = |f: fn(&Reading) -> Option<u64>| samples.iter().all(|s| f(&s.delta.counted).is_some());
    let mut words = vec![match moved {
        0 => "stayed on one CPU".to_owned(),
        _ => format!("moved to another CPU in {moved} of {} samples", samples.len()),
    }];
    if told(|r| r.throttled) {
        words.push("not throttled".into());
    }
    if let Some(others) = others {
        words.push(format!("other tasks had {:.1} % of the median sample", 100.0 * others));
    }
    if told(|r| r.stolen_ticks) {
        words.push(format!("the hypervisor took {:.0} % of all", 100.0 * stolen(samples)));
    }
    words.join(", ")
}

/// The share of the median sample's time that strangers had the CPU. What is published is a median: bursts that
/// hit a few samples do not touch it, a neighbour that hits every other one does.
fn others(case: &Case, samples: &[Sample]) -> Option<f64> {
    let share = |s: &Sample| {
        let had_ns = by_other_tasks(case.own_tasks, &s.delta, s.elapsed_ns, s.ran_ns)?;
        Some((had_ns as f64 / s.elapsed_ns.max(1.0)).min(1.0))
    };
    let shares: Option<Vec<_>> = samples.iter().map(share).collect();
    shares.filter(|shares| !shares.is_empty()).map(|shares| statistic::median(&shares))
}

/// Nanoseconds that tasks which are not the case's own had the CPU while it could have used it.
pub(in crate::trial) fn by_other_tasks(
    family: OwnTasks,
    delta: &Delta,
    elapsed_ns: f64,
    ran_ns: u64,
) -> Option<u64> {
    let counted = &delta.counted;
    match family {
        OwnTasks::None => {
            counted.waited_ns.map(|waited| beside_partners(waited, delta, elapsed_ns, ran_ns) as u64)
        }
        OwnTasks::SameCpu => {
            let stolen_ns = counted.stolen_ticks.unwrap_or(0) as f64 * 1e9 / USER_HZ;
            Some((elapsed_ns - 1e3 * counted.family_us as f64 - stolen_ns).max(0.0) as u64)
        }
        OwnTasks::Elsewhere => None,
    }
}

/// Time that tasks which are no part of the case took from it, ns. Alone, what the thread was ready for and did
/// not get. Beside partners it waits for them too: then others had at most what neither it nor they ran, and no
/// more than all of them waited.
fn beside_partners(waited: u64, delta: &Delta, elapsed_ns: f64, ran_ns: u64) -> f64 {
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

/// The share of all samples' time that the hypervisor took. It is told in ticks of 10 ms, more than the whole
/// of a short case: two of them prove nothing yet.
fn stolen(samples: &[Sample]) -> f64 {
    let ticks: u64 = samples.iter().filter_map(|s| s.delta.counted.stolen_ticks).sum();
    let elapsed: f64 = samples.iter().map(|s| s.elapsed_ns).sum();
    if ticks <= 2 { 0.0 } else { ticks as f64 * 1e9 / USER_HZ / elapsed.max(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::PartnerReport;

    /// Partners are no family: they live as long as the case.
    fn of_partners(samples: &[Sample]) -> Result<String, CaseEnd> {
        let case = Case::looped("case", "a case", |_| {});
        interference(&case, samples)
    }

    /// A sample of 1 ms: what the thread ran and waited, and the same of its partners on its CPU.
    fn beside(ran: u64, waited: u64, partner_ran: u64, partner_waited: u64) -> Sample {
        let partners = PartnerReport {
            here: true,
            ran_here_ns: Some(partner_ran),
            waited_here_ns: Some(partner_waited),
            ..PartnerReport::default()
        };
        let counted = Reading { waited_ns: Some(waited), ..Reading::default() };
        let delta = Delta { counted, partners: Some(partners), ..Delta::default() };
        Sample { iterations: 1, counted: 1, elapsed_ns: 1e6, ran_ns: ran, delta, events: None, rounds: 0 }
    }

    #[test]
    fn a_partner_on_the_same_cpu_is_no_disturbance() {
        assert!(of_partners(&[beside(500_000, 300_000, 490_000, 300_000)]).is_ok());
    }

    #[test]
    fn who_is_no_partner_is_one() {
        let disturbed = of_partners(&[beside(300_000, 400_000, 300_000, 400_000)]);
        let Err(CaseEnd::Disturbed(sentence)) = disturbed else { panic!("believed") };
        assert!(sentence.contains("40 %"), "{sentence}");
    }

    #[test]
    fn a_cpu_that_slept_was_nobody_elses() {
        assert!(of_partners(&[beside(100_000, 10_000, 100_000, 10_000)]).is_ok());
    }

    #[test]
    fn a_partner_that_waits_elsewhere_is_noticed() {
        let mut sample = beside(500_000, 0, 0, 0);
        let partners = PartnerReport { waited_elsewhere_ns: Some(300_000), ..PartnerReport::default() };
        sample.delta.partners = Some(partners);
        assert!(of_partners(&[sample]).is_err());
    }

    fn had(family: OwnTasks, counted: Reading) -> Option<u64> {
        by_other_tasks(family, &Delta { counted, ..Delta::default() }, 1e6, 0)
    }

    #[test]
    fn what_a_case_waits_for_its_own_tasks_is_no_disturbance() {
        let counted = Reading { waited_ns: Some(400_000), family_us: 990, ..Reading::default() };
        assert_eq!(had(OwnTasks::None, counted), Some(400_000));
        assert_eq!(had(OwnTasks::SameCpu, counted), Some(10_000));
        assert_eq!(had(OwnTasks::Elsewhere, counted), None);
    }

    #[test]
    fn beside_tasks_of_its_own_a_stranger_is_what_nobody_of_us_was_charged_with() {
        let counted = Reading { family_us: 500, ..Reading::default() };
        assert_eq!(had(OwnTasks::SameCpu, counted), Some(500_000));
        let stolen = Reading { stolen_ticks: Some(1), ..counted };
        assert_eq!(had(OwnTasks::SameCpu, stolen), Some(0), "the hypervisor is judged by itself");
    }
}
