//! Policies: they compute the next value of the control parameter from the error.

/// The reaction of a controller to an error.
pub trait Policy {
    /// The next value of the parameter. A positive error means too slow, and asks for less background work.
    fn next(&mut self, now: f64, error: f64) -> f64;
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    fn next(&mut self, now: f64, error: f64) -> f64 {
        (**self).next(now, error)
    }
}

/// Successive approximation: one step down while the system is too slow, one up while it is too fast by more than
/// `slack`.
///
/// Without slack it oscillates between two neighbouring values, one too slow and one too fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stepwise {
    /// The size of a step.
    pub step: f64,
    /// An index less than this below the goal is near enough.
    pub slack: f64,
}

impl Policy for Stepwise {
    fn next(&mut self, now: f64, error: f64) -> f64 {
        match error {
            _ if error > 0.0 => now - self.step,
            _ if error < -self.slack => now + self.step,
            _ => now,
        }
    }
}

/// Binary search over whole numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Halving {
    /// The largest value that was fast enough.
    low: f64,
    /// The smallest value that was too slow.
    high: f64,
    limit: f64,
    /// After the search has ended, an index this far below the goal starts a new one upwards.
    slack: f64,
}

impl Halving {
    /// A search between 0 and `limit`.
    pub fn new(limit: f64, slack: f64) -> Self {
        Self { low: 0.0, high: limit + 1.0, limit, slack }
    }
}

impl Policy for Halving {
    fn next(&mut self, now: f64, error: f64) -> f64 {
        if error > 0.0 {
            self.high = now;
            // A value that was fast enough no longer is: the load has changed, and the search restarts below.
            if self.low >= now {
                self.low = 0.0;
            }
        } else {
            self.low = now;
            if self.high - self.low <= 1.0 {
                if error >= -self.slack || now >= self.limit {
                    return now;
                }
                self.high = self.limit + 1.0;
            }
        }
        (0.5 * (self.low + self.high)).floor()
    }
}

/// A step against the error and proportional to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proportional {
    /// Change of the parameter for a unit of error.
    pub gain: f64,
}

impl Policy for Proportional {
    fn next(&mut self, now: f64, error: f64) -> f64 {
        now - self.gain * error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parameter after each block, on a machine where `fits` processes are just fast enough.
    fn walk(mut policy: impl Policy, from: f64, fits: f64, blocks: usize) -> Vec<f64> {
        let mut now = from;
        let next = |_| {
            // Half-way between the last that fits and the first that does not lies the goal.
            now = policy.next(now, now - fits - 0.5);
            now
        };
        (0..blocks).map(next).collect()
    }

    #[test]
    fn one_by_one_takes_a_block_for_each() {
        let policy = Stepwise { step: 1.0, slack: 1.0 };
        assert_eq!(walk(policy, 8.0, 3.0, 7), [7.0, 6.0, 5.0, 4.0, 3.0, 3.0, 3.0]);
        assert_eq!(walk(policy, 0.0, 3.0, 5), [1.0, 2.0, 3.0, 3.0, 3.0]);
    }

    #[test]
    fn without_slack_it_goes_to_and_fro_for_ever() {
        let policy = Stepwise { step: 1.0, slack: 0.0 };
        assert_eq!(walk(policy, 5.0, 3.0, 6), [4.0, 3.0, 4.0, 3.0, 4.0, 3.0]);
    }

    #[test]
    fn halving_takes_as_many_blocks_as_the_number_has_digits() {
        for limit in [7.0, 15.0, 1023.0_f64] {
            let digits = (limit + 1.0).log2() as usize;
            for fits in 0..=limit as u32 {
                let walked = walk(Halving::new(limit, 1.0), limit, f64::from(fits), digits + 3);
                assert!(walked[digits..].iter().all(|now| *now == f64::from(fits)), "{fits}: {walked:?}");
            }
        }
    }

    #[test]
    fn halving_follows_a_load_that_changes() {
        let mut policy = Halving::new(15.0, 1.0);
        let mut now = 15.0;
        for fits in [3.0, 9.0, 1.0, 15.0] {
            for _ in 0..20 {
                now = policy.next(now, now - fits - 0.5);
            }
            assert_eq!(now, fits);
        }
    }

    #[test]
    fn a_step_in_proportion_is_against_the_error() {
        assert_eq!(Proportional { gain: 0.5 }.next(4.0, 2.0), 3.0);
        assert_eq!(Proportional { gain: 0.5 }.next(4.0, -2.0), 5.0);
    }
}
