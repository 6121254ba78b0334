//! The subject of cases that touch pages: it prepares some pages untimed, touches them in one bracket, and counts
//! faults around it.

use crate::kit::contract::*;
use crate::kit::fault_count::{Faults, UNCOUNTED, counts_faults};

/// The number of faults that touches must have caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// One minor fault per touch and no major one.
    OneEach,
    /// One fault per touch, minor or major.
    OneEachOfAnyKind,
    /// At least one, and at most one per touch: a fault may map neighbouring pages.
    AtMostOneEach,
    /// One minor fault per touch, or none at all.
    AllOrNone,
}

impl Expected {
    /// Checks the faults of these touches against the expected number. A few extra faults may come from our own code and
    /// stack. Many extra faults, or unexpected major ones, mean that the kernel reclaims pages of this process.
    pub(super) fn judge(self, touches: u64, faults: Faults) -> Result<()> {
        let slack = touches / 20 + 2;
        let (minor, all) = (faults.minor, faults.total());
        let claimed = match self {
            Self::OneEach => minor >= touches,
            Self::OneEachOfAnyKind => all >= touches,
            Self::AtMostOneEach => minor >= 1,
            Self::AllOrNone => minor >= touches || minor <= slack,
        };
        let others = (self != Self::OneEachOfAnyKind && faults.major > 0) || all > touches + slack;
        let found = || format!("{touches} touches took {minor} minor and {} major faults", faults.major);
        let missing = || format!("{}, where {} claimed", found(), self.claimed_phrase());
        match (claimed, others) {
            (true, false) => Ok(()),
            // The kernel may make or take a huge page in the middle of a batch.
            (false, _) if self == Self::AllOrNone => Err(Error::Contradicted(missing())),
            (false, _) => Err(Error::Disproved(missing())),
            (true, true) => Err(Error::Disturbed(format!(
                "{}: some are of this process' own pages, which the kernel takes back where memory is short",
                found()
            ))),
        }
    }

    /// The claim of a case.
    pub(super) fn claim(self) -> &'static str {
        match self {
            Self::OneEach => "every touch was a minor fault, by the kernel's count around each timed part",
            Self::OneEachOfAnyKind => "every touch was a fault, by the kernel's count around each timed part",
            Self::AtMostOneEach => {
                "touches were faults, at most one each and at least one in each timed part, by the kernel's count"
            }
            Self::AllOrNone => {
                "in each timed part every touch was a minor fault or none was, by the kernel's count"
            }
        }
    }

    fn claimed_phrase(self) -> &'static str {
        match self {
            Self::OneEach => "a minor fault each was",
            Self::OneEachOfAnyKind => "a fault each was",
            Self::AtMostOneEach => "at least one and at most one each were",
            Self::AllOrNone => "one each or none was",
        }
    }
}

/// Touches of prepared pages.
pub struct Touches<P, T> {
    /// The most iterations that can be prepared at once.
    most: u64,
    /// Touches per iteration.
    each: u64,
    expected: Expected,
    /// Whether the kernel counts faults; if not, the claim is not judged.
    counted: bool,
    /// Prepares the pages of the given number of iterations.
    prepare: P,
    /// Touches the pages of the given number of iterations.
    touch: T,
    /// The faults in the brackets of the last run.
    last: Faults,
    /// Touches and faults of all runs.
    all: (u64, Faults),
}

impl<P, T> Touches<P, T> {
    /// One touch per iteration.
    pub fn new(most: usize, expected: Expected, prepare: P, touch: T) -> Self {
        let (last, all) = Default::default();
        Self { most: most as u64, each: 1, expected, counted: counts_faults(), prepare, touch, last, all }
    }

    /// Sets the number of touches per iteration.
    pub(super) fn with_touches_each(self, touches: usize) -> Self {
        Self { each: touches as u64, ..self }
    }
}

impl<P: FnMut(usize) -> Result<()>, T: FnMut(usize)> Subject for Touches<P, T> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let mut sum = Ticks(0);
        self.last = Faults::default();
        let mut left = iterations;
        while left > 0 {
            let now = left.min(self.most);
            (self.prepare)(now as usize)?;
            let before = Faults::count_so_far()?;
            sum += clock.time(|| (self.touch)(now as usize));
            let faults = Faults::count_so_far()?.since(before);
            if self.counted {
                self.expected.judge(now * self.each, faults)?;
            }
            self.last += faults;
            left -= now;
        }
        self.all.0 += iterations * self.each;
        self.all.1 += self.last;
        Ok(sum)
    }

    fn report(&self) -> Report {
        let (touches, faults) = self.all;
        Report {
            events: Some(self.last.total()),
            evidence: vec![fault_summary(touches, faults)],
            unchecked: if self.counted { Vec::new() } else { vec![UNCOUNTED.into()] },
            ..Report::default()
        }
    }
}

/// Claim: each iteration took at least one fault. The counters cover the whole sample, so they include the faults
/// of preparing the pages.
pub(super) fn check_fault_each(delta: &Delta, iterations: u64) -> Judged {
    let faults = delta.counted.minor_faults + delta.counted.major_faults;
    ensure(faults >= iterations, || {
        format!("{faults} faults in {iterations} iterations: not every one touched a fresh page")
    })?;
    Ok(format!("{faults} faults in {iterations} iterations, with what prepares them"))
}

/// The evidence of these touches and their faults.
fn fault_summary(touches: u64, faults: Faults) -> String {
    let each = faults.total() as f64 / touches.max(1) as f64;
    format!("{touches} touches took {} minor and {} major faults, {each:.4} each", faults.minor, faults.major)
}

/// The counts of single touches: those that count, and those discarded as another kind of fault.
#[derive(Default)]
pub(super) struct Tally {
    /// Touches that count, and their faults.
    touches: u64,
    pub(super) faults: Faults,
    /// Faults of the last run.
    pub(super) last: u64,
    left_out: u64,
}

impl Tally {
    pub(super) fn count(&mut self, touches: u64, faults: Faults) -> Counts {
        self.touches += touches;
        self.faults += faults;
        self.last += faults.total();
        Counts::Yes
    }

    /// Counts a touch as discarded, because it was another kind of fault.
    ///
    /// # Errors
    /// A sentence, if too many touches are discarded.
    pub(super) fn leave_out(&mut self, faults: Faults) -> std::result::Result<Counts, String> {
        self.left_out += 1;
        if self.left_out <= 16 + self.touches {
            return Ok(Counts::Again);
        }
        let (left, all, Faults { minor, major }) = (self.left_out, self.left_out + self.touches, faults);
        Err(format!(
            "{left} of {all} touches were not the fault that they had to be (the last: {minor} minor, {major} major)"
        ))
    }

    pub(super) fn report(&self) -> Report {
        let mut evidence = vec![fault_summary(self.touches, self.faults)];
        if self.left_out > 0 {
            evidence.push(format!("{} touches were something else, and left out", self.left_out));
        }
        Report { events: Some(self.last), evidence, ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::kit::runnable::test_clock;

    /// The kind of the error of a thousand touches with these faults.
    fn judged(expected: Expected, minor: u64, major: u64) -> Option<Kind> {
        expected.judge(1000, Faults { minor, major }).err().map(|error| error.kind())
    }

    #[test]
    fn missing_faults_disprove_the_claim_and_extra_faults_are_a_disturbance() {
        use Expected::{AllOrNone, AtMostOneEach, OneEach, OneEachOfAnyKind};
        for (expected, held, missing, more) in [
            (OneEach, (1000, 0), (63, 940), [(1100, 0), (1000, 1)]),
            (OneEachOfAnyKind, (400, 600), (400, 500), [(400, 700), (1100, 0)]),
            (AtMostOneEach, (63, 0), (0, 1000), [(1100, 0), (63, 1)]),
            (AllOrNone, (1001, 0), (500, 0), [(1100, 0), (1000, 1)]),
        ] {
            assert_eq!(judged(expected, held.0, held.1), None, "{expected:?}");
            let kind = if expected == AllOrNone { Kind::Disturbed } else { Kind::Disproved };
            assert_eq!(judged(expected, missing.0, missing.1), Some(kind), "{expected:?}");
            for (minor, major) in more {
                assert_eq!(
                    judged(expected, minor, major),
                    Some(Kind::Disturbed),
                    "{expected:?}: {minor}, {major}"
                );
            }
        }
        assert_eq!(judged(AllOrNone, 0, 0), None);
    }

    #[test]
    fn a_batch_with_fewer_faults_than_iterations_is_rejected() {
        let mut delta = Delta::default();
        delta.counted.minor_faults = 99;
        assert!(check_fault_each(&delta, 100).is_err());
        delta.counted.major_faults = 1;
        assert!(check_fault_each(&delta, 100).is_ok());
    }

    #[test]
    fn without_fault_counts_no_claim_is_rejected() {
        let new = || Touches::new(8, Expected::OneEach, |_| Ok(()), |_| ());
        let mut uncounted = Touches { counted: false, ..new() };
        uncounted.run(64, &test_clock()).expect("believed");
        assert_eq!(uncounted.report().unchecked, [UNCOUNTED]);
        assert!(new().report().unchecked.is_empty());
    }

    #[test]
    fn touches_that_are_no_faults_end_the_run_with_a_sentence() {
        let mut cached = Touches::new(8, Expected::OneEach, |_| Ok(()), |_| ());
        let Err(error) = cached.run(64, &test_clock()) else { panic!("believed") };
        let sentence = error.to_string();
        assert!(
            sentence.contains("8 touches took 0 minor") && sentence.contains("a minor fault each"),
            "{sentence}"
        );
    }
}
