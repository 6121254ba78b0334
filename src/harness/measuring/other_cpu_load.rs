//! Load by other programs on other CPUs while memory-bound cases ran: one note per group.

use crate::record::Outcome;

/// Busy CPUs from which the load is worth a note. The driver and the kernel's own threads use less.
const LEAST: f64 = 0.2;

/// The load beside the cases so far.
#[derive(Default)]
pub(super) struct OtherCpuLoad {
    /// Cases for which the load is known.
    known: usize,
    /// Those of them with load.
    loaded: usize,
    /// The highest load beside a case, in CPUs, and that case.
    most: (f64, String),
}

impl OtherCpuLoad {
    /// Adds a case.
    pub(super) fn add(&mut self, id: &str, outcome: &Outcome) {
        let Outcome::Measured(measured) = outcome else { return };
        let Some(busy) = measured.contamination.busy_beside else { return };
        self.known += 1;
        if busy < LEAST {
            return;
        }
        self.loaded += 1;
        if busy > self.most.0 {
            self.most = (busy, id.to_owned());
        }
    }

    /// The note, if there was load.
    pub(super) fn note(&self) -> Option<String> {
        let (most, beside) = &self.most;
        (self.loaded > 0).then(|| {
            format!(
                "beside {} of {} cases that wait for memory others kept other CPUs busy, {most:.1} of them beside \
                 {beside}: they share the last cache and the memory; see who it is with `top`, stop it, and run again",
                self.loaded, self.known
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
        let mut load = OtherCpuLoad::default();
        load.add("a/quiet", &beside(Some(0.03)));
        load.add("a/call", &beside(None));
        load.add("a/skipped", &Outcome::Skipped("no".into()));
        assert_eq!(load.note(), None);
        load.add("a/read", &beside(Some(1.02)));
        load.add("a/write", &beside(Some(0.5)));
        let note = load.note().expect("a note");
        assert!(note.contains("2 of 3 cases") && note.contains("1.0 of them beside a/read"), "{note}");
    }
}
