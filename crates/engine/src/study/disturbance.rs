//! Whether other work on the machine could have disturbed the cases of a run.

use crate::record::{CaseRecord, Meanwhile};

/// The shortest case that is judged, seconds. In a shorter one, ticks of 10 ms are too coarse for a share.
const SHORTEST_SECONDS: f64 = 0.2;
/// CPUs that other tasks may use before this is reported: more than on an idle machine.
const OTHERS_CPUS: f64 = 0.1;
/// CPUs that the hypervisor may take before this is reported.
const STOLEN_CPUS: f64 = 0.02;
/// Bytes per second that disks or networks may move for others before this is reported.
const MOVED_PER_SECOND: f64 = MIB;
/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// A kind of disturbance: its sentence, its value, and the value above which it is reported.
type Kind = (&'static str, fn(&Meanwhile) -> f64, f64);

const KINDS: [Kind; 4] = [
    ("others used up to {} CPUs", |m| m.others_seconds / m.seconds, OTHERS_CPUS),
    ("the hypervisor took up to {} CPUs", |m| m.stolen_seconds / m.seconds, STOLEN_CPUS),
    (
        "disks moved up to {} MiB/s for others",
        |m| (m.others_disk_read + m.others_disk_written) as f64 / m.seconds,
        MOVED_PER_SECOND,
    ),
    ("networks moved up to {} MiB/s", |m| m.network_bytes as f64 / m.seconds, MOVED_PER_SECOND),
];

/// A sentence on all other work on the machine while one case ran.
pub fn disturbance_summary(meanwhile: &Meanwhile) -> String {
    let seconds = meanwhile.seconds;
    let each = |value: f64| if seconds > 0.0 { value / seconds } else { 0.0 };
    let mib = |bytes: u64| bytes as f64 / MIB;
    let faults =
        meanwhile.others_faults.map_or(String::new(), |faults| format!(", {faults} page faults of others"));
    format!(
        "in {seconds:.2} s others used {:.2} CPUs and the hypervisor took {:.2}; {} interrupts{faults}; for others \
         disks read {:.2} and wrote {:.2} MiB; networks moved {:.2} MiB; free memory was {:.0} and then {:.0} MiB",
        each(meanwhile.others_seconds),
        each(meanwhile.stolen_seconds),
        meanwhile.interrupts,
        mib(meanwhile.others_disk_read),
        mib(meanwhile.others_disk_written),
        mib(meanwhile.network_bytes),
        mib(meanwhile.free_bytes.0),
        mib(meanwhile.free_bytes.1),
    )
}

/// One sentence about these cases, if other work on the machine was above a limit in one of them.
pub fn disturbance_sentence<'a>(cases: impl Iterator<Item = &'a CaseRecord>) -> Option<String> {
    let known = cases.filter_map(|case| Some((case.id.as_str(), case.measured()?.meanwhile.as_ref()?)));
    disturbance_line(&known.collect::<Vec<_>>())
}

fn disturbance_line(cases: &[(&str, &Meanwhile)]) -> Option<String> {
    let long = cases.iter().filter(|(_, meanwhile)| meanwhile.seconds >= SHORTEST_SECONDS);
    let parts = KINDS.iter().filter_map(|(words, figure, much)| {
        let found: Vec<_> =
            long.clone().map(|(id, m)| (*id, figure(m))).filter(|(_, value)| value > much).collect();
        let (id, most) = found.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let most = if *much == MOVED_PER_SECOND { most / MIB } else { *most };
        let among =
            if found.len() > 1 { format!(", and much in {} cases", found.len()) } else { String::new() };
        Some(format!("{} ({id}{among})", words.replace("{}", &format!("{most:.2}"))))
    });
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| format!("meanwhile on the machine: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_activity_above_a_limit_is_reported_with_the_worst_case() {
        let quiet = Meanwhile { seconds: 1.0, others_seconds: 0.05, ..Meanwhile::default() };
        let busy = Meanwhile { seconds: 2.0, others_seconds: 1.5, ..Meanwhile::default() };
        let moved = Meanwhile {
            seconds: 1.0,
            others_disk_read: 5 << 20,
            others_seconds: 0.3,
            ..Meanwhile::default()
        };
        assert_eq!(disturbance_line(&[("a", &quiet)]), None);
        let line = disturbance_line(&[("a", &quiet), ("b", &busy), ("c", &moved)]).expect("notable");
        assert_eq!(
            line,
            "meanwhile on the machine: others used up to 0.75 CPUs (b, and much in 2 cases); disks moved up to 5.00 \
             MiB/s for others (c)"
        );
    }

    #[test]
    fn the_summary_of_one_case_lists_all_activity() {
        let activity = Meanwhile {
            seconds: 2.0,
            others_seconds: 1.5,
            others_faults: Some(7),
            free_bytes: (8 << 20, 6 << 20),
            ..Meanwhile::default()
        };
        let words = disturbance_summary(&activity);
        for part in ["in 2.00 s", "others used 0.75 CPUs", "7 page faults of others", "was 8 and then 6 MiB"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(
            disturbance_summary(&Meanwhile::default()).contains("others used 0.00 CPUs"),
            "of no time nothing is divided"
        );
    }

    #[test]
    fn a_short_case_is_not_judged() {
        let short = Meanwhile { seconds: 0.05, others_seconds: 0.05, ..Meanwhile::default() };
        assert_eq!(disturbance_line(&[("a", &short)]), None);
    }
}
