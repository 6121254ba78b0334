//! The fraction of a program's time that is spent in a part of it, estimated from a trace that has perturbed both.
//!
//! A probe around each call adds to the measured time of the part, and more to that of the whole, so that their quotient is
//! wrong. The measured cost of a probe and the number of probes correct both times. Alternatively, the time of the whole is
//! taken from a run without probes.
//!
//! The cost of a probe around an empty body may differ from its cost in a program, where it overlaps with other
//! instructions or delays them. [`ProbeCost::from_traced_runs`] measures the cost in the program, by additional probes.
//!
//! The naive fraction is not always too small: it is pulled towards the share `inside / (inside + outside)` of the
//! probe's cost that falls into the measured part, and is too large if the true fraction is less than that.
//!
//! Source: Kraemer, slides 42 to 50.

/// The cost of one probe, in any unit of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProbeCost {
    /// The part of the cost that is measured as time of the part: between the two readings of the clock.
    pub inside: f64,
    /// The rest of the cost, which only the time of the whole contains.
    pub outside: f64,
}

impl ProbeCost {
    /// The cost in the traced program, from three runs: `once` with one probe for each call, `twice` with a second one,
    /// and `read_again` with one additional reading of the clock. The measured part contains the cost of one reading.
    pub fn from_traced_runs(once: &Traced, read_again: &Traced, twice: &Traced) -> Self {
        let calls = once.calls.max(1) as f64;
        let inside = ((read_again.part - once.part) / calls).max(0.0);
        let all = (twice.whole - once.whole) / calls;
        Self { inside, outside: (all - inside).max(0.0) }
    }
}

/// The trace of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traced {
    /// Measured time of the part.
    pub part: f64,
    /// Measured time of the whole, including the probes.
    pub whole: f64,
    /// The number of calls of the part, each with one probe.
    pub calls: u64,
    /// The cost of one call that lies outside of the probe: passing arguments, jump and return. Zero for a probe around the
    /// call.
    pub call: f64,
}

/// Three estimates of the same fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimates {
    /// The quotient of both times as measured.
    pub naive: f64,
    /// The quotient of both times after the cost of the probes is subtracted and that of the calls is added.
    pub corrected: f64,
    /// The corrected time of the part divided by the time of a run without probes.
    pub of_uninstrumented: f64,
}

impl Traced {
    /// The three estimates, from the cost of a probe and the time of a run without probes.
    pub fn estimate_fraction(&self, probe: ProbeCost, uninstrumented: f64) -> Estimates {
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

    /// 1000 calls of 40 ns in a program of 100 µs; the call itself takes 2 of the 40 ns. A probe costs 25 ns inside and 15 ns
    /// outside.
    const PROBE: ProbeCost = ProbeCost { inside: 25.0, outside: 15.0 };
    const TRACED: Traced =
        Traced { part: 38_000.0 + 25_000.0, whole: 100_000.0 + 40_000.0, calls: 1000, call: 2.0 };

    #[test]
    fn the_corrected_fraction_is_the_true_one() {
        let Estimates { naive, corrected, of_uninstrumented } = TRACED.estimate_fraction(PROBE, 100_000.0);
        assert_eq!((corrected, of_uninstrumented), (0.4, 0.4));
        assert_eq!(naive, 0.45);
    }

    #[test]
    fn additional_probes_measure_the_cost_of_one_in_the_program() {
        let read_again = Traced { part: TRACED.part + 25_000.0, ..TRACED };
        let twice = Traced { whole: TRACED.whole + 40_000.0, ..TRACED };
        assert_eq!(ProbeCost::from_traced_runs(&TRACED, &read_again, &twice), PROBE);
        let never = Traced::default();
        assert_eq!(ProbeCost::from_traced_runs(&never, &never, &never), ProbeCost::default());
    }

    #[test]
    fn probes_pull_the_naive_fraction_towards_their_inside_share() {
        let mostly = Traced { part: 70_000.0 + 25_000.0, call: 0.0, ..TRACED };
        assert!(mostly.estimate_fraction(PROBE, 100_000.0).naive < 0.7);
    }

    #[test]
    fn a_probe_without_cost_leaves_all_estimates_equal() {
        let traced = Traced { part: 3.0, whole: 10.0, calls: 5, call: 0.0 };
        let same = traced.estimate_fraction(ProbeCost::default(), 10.0);
        assert_eq!(same, Estimates { naive: 0.3, corrected: 0.3, of_uninstrumented: 0.3 });
    }
}
