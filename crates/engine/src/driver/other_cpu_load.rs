//! Load by other programs on other CPUs while memory-bound cases ran: one note per group.

use crate::record::GroupRun;

/// Busy CPUs from which the load is worth a note. The driver and the kernel's own threads use less.
const LEAST: f64 = 0.2;

/// The note, if there was load beside cases of this group.
pub(super) fn note(run: &GroupRun) -> Option<String> {
    let known: Vec<(&str, f64)> = run
        .cases
        .iter()
        .filter_map(|case| Some((case.id.as_str(), case.measured()?.contamination.busy_beside?)))
        .collect();
    let loaded = known.iter().filter(|(_, busy)| *busy >= LEAST).count();
    let (beside, most) = known.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (loaded > 0).then(|| {
        format!(
            "beside {loaded} of {} cases that wait for memory others kept other CPUs busy, {most:.1} of them beside \
             {beside}: they share the last cache and the memory; find the process with `top`, stop it, and run again",
            known.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CaseRecord, Contamination, Measured, Outcome, fixture_run};

    #[test]
    fn a_group_with_busy_neighbours_has_one_note_and_a_quiet_one_none() {
        let beside = |id: &str, busy_beside| {
            let contamination = Contamination { busy_beside, ..Contamination::default() };
            fixture_run::measured_case(id, Measured { contamination, ..Measured::default() })
        };
        let skipped = CaseRecord { outcome: Outcome::Skipped("no".into()), ..beside("a/skipped", Some(1.0)) };
        let cases = vec![beside("a/quiet", Some(0.03)), beside("a/call", None), skipped];
        let mut run = GroupRun { cases, ..GroupRun::default() };
        assert_eq!(note(&run), None);
        run.cases.extend([beside("a/read", Some(1.02)), beside("a/write", Some(0.5))]);
        let note = note(&run).expect("a note");
        assert!(note.contains("2 of 3 cases") && note.contains("1.0 of them beside a/read"), "{note}");
    }
}
