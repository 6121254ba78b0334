//! What else happened on the CPUs of a case: other tasks, the hypervisor, a move.

use super::super::{Halt, Sample};
use crate::instrument::{Delta, Reading};

/// Share of the time that the hypervisor may take before the numbers say more about it than about us.
const STEAL: f64 = 0.25;
/// Share of the median sample's time that other tasks may have the CPU.
const OTHERS: f64 = 0.05;
/// Clock ticks a second in /proc/stat: `USER_HZ` is 100 on every architecture that this crate knows.
const USER_HZ: f64 = 100.0;

/// What must hold for all samples together: other tasks and the hypervisor left us the CPU.
pub(in crate::trial) fn surroundings(samples: &[Sample]) -> Result<String, Halt> {
    let others = others(samples);
    if others > OTHERS {
        return Err(Halt::Disturbed(format!(
            "other tasks had this CPU for {:.0} % of the median sample's time: stop them, or run again when they \
             have ended",
            100.0 * others
        )));
    }
    let stolen = stolen(samples);
    if stolen > STEAL {
        return Err(Halt::Disturbed(format!(
            "the hypervisor took {:.0} % of this CPU's time: run again when the host is quieter",
            100.0 * stolen
        )));
    }
    Ok(known(samples))
}

/// What the counters say of all samples together, and nothing of what the kernel does not tell.
fn known(samples: &[Sample]) -> String {
    let moved = samples.iter().filter(|s| s.delta.migrated).count();
    let told = |f: fn(&Reading) -> Option<u64>| samples.iter().all(|s| f(&s.delta.counted).is_some());
    let mut words = vec![match moved {
        0 => "stayed on one CPU".to_owned(),
        _ => format!("moved to another CPU in {moved} of {} samples", samples.len()),
    }];
    if told(|r| r.throttled) {
        words.push("not throttled".into());
    }
    if told(|r| r.waited_ns) {
        words.push(format!("other tasks had {:.1} % of the median sample", 100.0 * others(samples)));
    }
    if told(|r| r.stolen_ticks) {
        words.push(format!("the hypervisor took {:.0} % of all", 100.0 * stolen(samples)));
    }
    words.join(", ")
}

/// The share of the median sample's time that tasks which are no part of the case had. What is published is a
/// median: bursts that hit a few samples do not touch it, a neighbour that hits every other one does.
fn others(samples: &[Sample]) -> f64 {
    crate::statistic::median(&samples.iter().map(|sample| share(sample).clamp(0.0, 1.0)).collect::<Vec<_>>())
}

fn share(sample: &Sample) -> f64 {
    foreign_ns(&sample.delta, sample.elapsed_ns, sample.ran_ns) / sample.elapsed_ns.max(1.0)
}

/// Time that tasks which are no part of the case took from it, ns. Alone, what the thread was ready for and did
/// not get. Beside partners it waits for them too: then others had at most what neither it nor they ran, and no
/// more than all of them waited.
pub(in crate::trial) fn foreign_ns(delta: &Delta, elapsed_ns: f64, ran_ns: u64) -> f64 {
    let waited = delta.counted.waited_ns.unwrap_or(0);
    let Some(company) = delta.company else { return waited as f64 };
    let here = match company.ran_here_ns.filter(|_| company.here) {
        None => waited as f64,
        Some(ran) => {
            let all = (waited + company.waited_here_ns.unwrap_or(0)) as f64;
            all.min(elapsed_ns - (ran_ns + ran) as f64).max(0.0)
        }
    };
    here.max(company.waited_elsewhere_ns.unwrap_or(0) as f64)
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
    use crate::instrument::Attendance;

    /// A sample of 1 ms: what the thread ran and waited, and the same of its partners on its CPU.
    fn beside(ran: u64, waited: u64, partner_ran: u64, partner_waited: u64) -> Sample {
        let company = Attendance {
            here: true,
            ran_here_ns: Some(partner_ran),
            waited_here_ns: Some(partner_waited),
            ..Attendance::default()
        };
        let counted = Reading { waited_ns: Some(waited), ..Reading::default() };
        let delta = Delta { counted, company: Some(company), ..Delta::default() };
        Sample { iterations: 1, counted: 1, elapsed_ns: 1e6, ran_ns: ran, delta, rounds: 0 }
    }

    #[test]
    fn a_partner_on_the_same_cpu_is_no_disturbance() {
        assert!(surroundings(&[beside(500_000, 300_000, 490_000, 300_000)]).is_ok());
    }

    #[test]
    fn who_is_no_partner_is_one() {
        let disturbed = surroundings(&[beside(300_000, 400_000, 300_000, 400_000)]);
        let Err(Halt::Disturbed(sentence)) = disturbed else { panic!("believed") };
        assert!(sentence.contains("40 %"), "{sentence}");
    }

    #[test]
    fn a_cpu_that_slept_was_nobody_elses() {
        assert!(surroundings(&[beside(100_000, 10_000, 100_000, 10_000)]).is_ok());
    }

    #[test]
    fn a_partner_that_waits_elsewhere_is_noticed() {
        let mut sample = beside(500_000, 0, 0, 0);
        let company = Attendance { waited_elsewhere_ns: Some(300_000), ..Attendance::default() };
        sample.delta.company = Some(company);
        assert!(surroundings(&[sample]).is_err());
    }
}
