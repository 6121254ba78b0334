//! Cases that wait for memory and were measured while others used other CPUs: one note tells of all of a group.

use crate::record::Outcome;

/// Of one CPU, what others may keep busy before it is said. The driver of a run and the kernel's own threads have less.
const BUSY: f64 = 0.2;

/// Those of them so far.
#[derive(Default)]
pub(super) struct Busy {
    /// Cases of which it is known, and those that had company.
    known: usize,
    busy: usize,
    /// The most CPUs that were busy beside one, and beside which.
    most: (f64, String),
}

impl Busy {
    /// Takes note of a case.
    pub(super) fn look(&mut self, id: &str, outcome: &Outcome) {
        let Outcome::Measured(measured) = outcome else { return };
        let Some(busy) = measured.contamination.busy_beside else { return };
        self.known += 1;
        if busy < BUSY {
            return;
        }
        self.busy += 1;
        if busy > self.most.0 {
            self.most = (busy, id.to_owned());
        }
    }

    /// What must be said at the end.
    pub(super) fn note(&self) -> Option<String> {
        let (most, beside) = &self.most;
        (self.busy > 0).then(|| {
            format!(
                "beside {} of {} cases that wait for memory others kept other CPUs busy, {most:.1} of them beside \
                 {beside}: they share the last cache and the memory; see who it is with `top`, stop it, and run again",
                self.busy, self.known
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Contamination, Measured};

    #[test]
    fn a_group_with_busy_neighbours_has_one_note_and_a_quiet_one_none() {
        let beside = |busy_beside| {
            let contamination = Contamination { busy_beside, ..Contamination::default() };
            Outcome::Measured(Box::new(Measured { contamination, ..Measured::default() }))
        };
        let mut busy = Busy::default();
        busy.look("a/quiet", &beside(Some(0.03)));
        busy.look("a/call", &beside(None));
        busy.look("a/skipped", &Outcome::Skipped("no".into()));
        assert_eq!(busy.note(), None);
        busy.look("a/read", &beside(Some(1.02)));
        busy.look("a/write", &beside(Some(0.5)));
        let note = busy.note().expect("a note");
        assert!(note.contains("2 of 3 cases") && note.contains("1.0 of them beside a/read"), "{note}");
    }
}
