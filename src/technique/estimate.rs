//! The fraction of a program's time that a part of it takes, from a trace that has disturbed both.
//!
//! A probe around each call adds to the time that is measured inside, and adds more to the whole. The naive quotient
//! is therefore of two wrong numbers. What each probe costs can be measured, and how many there were is counted:
//! then both can be corrected. Or the whole is taken from a run without probes.
//!
//! A probe around nothing need not cost what it costs in a program: there it may overlap with the work around it, or be in
//! its way. More of it in the program tells ([`ProbeCost::in_place`]).
//!
//! The naive fraction is not always too small. A probe that is seen by itself for the share `i` of its cost pulls the
//! fraction towards `i`: up, where the part takes less of the time than that. See [`Perturbation::pull`].
//!
//! Source: Kraemer, slides 42 to 50.

/// What one probe costs, in any unit of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProbeCost {
    /// What the probe takes for time of the part: from the reading of the first clock to that of the second.
    pub inside: f64,
    /// What besides is lost to the whole.
    pub outside: f64,
}

impl ProbeCost {
    /// What a probe costs in the program that it stands in, from three runs of it: `once` with a probe a call, `twice`
    /// with a second one in each, and `read_again` with one reading of the clock more in each. Between the two readings
    /// of a probe stands one reading, and nothing else of it.
    pub fn in_place(once: &Traced, read_again: &Traced, twice: &Traced) -> Self {
        let calls = once.calls.max(1) as f64;
        let inside = ((read_again.part - once.part) / calls).max(0.0);
        let all = (twice.whole - once.whole) / calls;
        Self { inside, outside: (all - inside).max(0.0) }
    }
}

/// What a trace has measured of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traced {
    /// Time inside the part, by its probes.
    pub part: f64,
    /// Time of the whole, with the probes in it.
    pub whole: f64,
    /// How often the part was called: probes that were passed.
    pub calls: u64,
    /// What one call costs beyond what stands between the probes: the transfer of arguments, the jump and the way back.
    /// Nothing, where the probes stand around the call.
    pub call: f64,
}

/// The same fraction, estimated in three ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimates {
    /// Both times as they were measured.
    pub naive: f64,
    /// Both times less what the probes cost them, and the part's with what its calls cost.
    pub corrected: f64,
    /// The corrected time of the part over the time of a run without probes.
    pub of_uninstrumented: f64,
}

impl Traced {
    /// The three estimates, given the cost of a probe and the time of the whole without any.
    pub fn estimates(&self, probe: ProbeCost, uninstrumented: f64) -> Estimates {
        let calls = self.calls as f64;
        let part = self.part - calls * probe.inside + calls * self.call;
        let whole = self.whole - calls * (probe.inside + probe.outside);
        Estimates {
            naive: self.part / self.whole,
            corrected: part / whole,
            of_uninstrumented: part / uninstrumented,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 calls of 40 ns in a program of 100 µs; a call costs 2 ns of them. A probe costs 25 inside and 15 outside.
    const PROBE: ProbeCost = ProbeCost { inside: 25.0, outside: 15.0 };
    const TRACED: Traced =
        Traced { part: 38_000.0 + 25_000.0, whole: 100_000.0 + 40_000.0, calls: 1000, call: 2.0 };

    #[test]
    fn corrected_the_fraction_is_the_true_one() {
        let Estimates { naive, corrected, of_uninstrumented } = TRACED.estimates(PROBE, 100_000.0);
        assert_eq!((corrected, of_uninstrumented), (0.4, 0.4));
        assert_eq!(naive, 0.45);
    }

    #[test]
    fn more_of_a_probe_tells_what_it_costs_in_its_place() {
        let read_again = Traced { part: TRACED.part + 25_000.0, ..TRACED };
        let twice = Traced { whole: TRACED.whole + 40_000.0, ..TRACED };
        assert_eq!(ProbeCost::in_place(&TRACED, &read_again, &twice), PROBE);
        let never = Traced::default();
        assert_eq!(ProbeCost::in_place(&never, &never, &never), ProbeCost::default());
    }

    #[test]
    fn probes_pull_a_fraction_towards_the_share_that_they_see_of_themselves() {
        let mostly = Traced { part: 70_000.0 + 25_000.0, call: 0.0, ..TRACED };
        assert!(mostly.estimates(PROBE, 100_000.0).naive < 0.7);
    }

    #[test]
    fn a_probe_that_costs_nothing_changes_nothing() {
        let traced = Traced { part: 3.0, whole: 10.0, calls: 5, call: 0.0 };
        let same = traced.estimates(ProbeCost::default(), 10.0);
        assert_eq!(same, Estimates { naive: 0.3, corrected: 0.3, of_uninstrumented: 0.3 });
    }
}
