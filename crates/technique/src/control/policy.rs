//! Three parts of a control loop. Policies compute the next value of the control parameter from the error. A simulated system
//! with known behaviour tests a controller. A transient describes a run under control: settling time, overshoot, jitter.

use super::Controller;
use crate::index::PerformanceIndex;
use syscost_statistic::{Random, standard_deviation};

/// The reaction of a controller to an error.
pub trait Policy {
    /// The next value of the parameter, given its current value `now`. A positive error means that the system is too slow,
    /// and lowers the parameter.
    fn next(&mut self, now: f64, error: f64) -> f64;
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    fn next(&mut self, now: f64, error: f64) -> f64 {
        (**self).next(now, error)
    }
}

/// Successive approximation: one step down while the system is too slow, one step up while the index is more than `slack`
/// below the goal.
///
/// Without slack it oscillates between two neighbouring values, one too slow and one too fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stepwise {
    /// The size of a step.
    pub step: f64,
    /// An index that is less than this below the goal counts as reaching it.
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
    /// After the search has ended, an index more than this below the goal starts a new search upwards.
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
            // This value was fast enough earlier and no longer is: the load has changed, and the search restarts from 0.
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
    /// The change of the parameter per unit of error.
    pub gain: f64,
}

impl Policy for Proportional {
    fn next(&mut self, now: f64, error: f64) -> f64 {
        now - self.gain * error
    }
}

/// A system whose response time is a linear function of the control parameter plus normally distributed noise.
#[derive(Clone, Debug)]
pub struct Plant {
    base: f64,
    slope: f64,
    deviation: f64,
    random: Random,
}

impl Plant {
    /// response = base + slope·parameter, with noise of standard deviation `deviation`. For processes that share one
    /// CPU equally, a command of c seconds takes c·(1 + parameter): base and slope are both c.
    pub fn new(base: f64, slope: f64, deviation: f64, seed: u64) -> Self {
        Self { base, slope, deviation, random: Random::new(seed) }
    }

    /// The response time of one command at this value of the parameter.
    pub fn response(&mut self, parameter: f64) -> f64 {
        self.base + self.slope * parameter + self.deviation * standard_normal(&mut self.random)
    }

    /// The index after each of `blocks` blocks under control. The run begins in the steady state at the parameter `from`.
    #[allow(clippy::too_many_arguments, reason = "they are the loop's, one each")]
    pub fn simulate_control(
        &mut self,
        block: u32,
        damping: f64,
        goal: f64,
        policy: impl Policy,
        limit: f64,
        from: f64,
        blocks: usize,
    ) -> Vec<f64> {
        let steady = self.base + self.slope * from;
        let Ok(index) = PerformanceIndex::new(block, damping) else { return Vec::new() };
        let index = index.with_initial_value(steady);
        let mut controller = Controller::new(index, goal, policy, limit).with_initial_parameter(from);
        let mut series = Vec::with_capacity(blocks);
        while series.len() < blocks {
            let response = self.response(controller.parameter());
            series.extend(controller.add_response(response).map(|step| step.index));
        }
        series
    }
}

/// A standard normal random number (Box and Muller, 1958).
pub(crate) fn standard_normal(random: &mut Random) -> f64 {
    let (size, turn) = (random.unit(), random.unit());
    (-2.0 * size.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}

/// Blocks at the end of a run that must lie in the band for the run to count as settled.
const STAYS: usize = 3;

/// The course of an index towards its goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transient {
    /// Blocks until the index enters the band around the goal for good; `None` if it does not stay there.
    pub settled: Option<usize>,
    /// The largest deviation beyond the goal, as a share of the initial distance.
    pub overshoot: f64,
    /// Standard deviation of the index after it has settled; of the second half of the run if it has not settled.
    pub jitter: f64,
}

impl Transient {
    /// The course of `series`, the index after each block, with a band of ±`band` around `goal`. The first value determines
    /// from which side the index approaches the goal.
    pub fn from_series(series: &[f64], goal: f64, band: f64) -> Self {
        let way = series.first().map_or(0.0, |first| first - goal);
        let beyond = series.iter().map(|index| -(index - goal) / way).fold(0.0, f64::max);
        let inside = series.iter().rev().take_while(|index| (*index - goal).abs() <= band).count();
        // An oscillation that happens to end in the band has not settled.
        let settled = (inside >= STAYS.min(series.len()).max(1)).then(|| series.len() - inside);
        let rest = &series[settled.unwrap_or(series.len() / 2)..];
        let jitter = if rest.len() > 1 { standard_deviation(rest) } else { 0.0 };
        Self { settled, overshoot: if way == 0.0 { 0.0 } else { beyond }, jitter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parameter after each block, on a machine where `fits` processes are just fast enough.
    fn walk(mut policy: impl Policy, from: f64, fits: f64, blocks: usize) -> Vec<f64> {
        let mut now = from;
        let next = |_| {
            // The goal lies half-way between the last value that fits and the first value that does not fit.
            now = policy.next(now, now - fits - 0.5);
            now
        };
        (0..blocks).map(next).collect()
    }

    #[test]
    fn stepwise_moves_one_step_per_block() {
        let policy = Stepwise { step: 1.0, slack: 1.0 };
        assert_eq!(walk(policy, 8.0, 3.0, 7), [7.0, 6.0, 5.0, 4.0, 3.0, 3.0, 3.0]);
        assert_eq!(walk(policy, 0.0, 3.0, 5), [1.0, 2.0, 3.0, 3.0, 3.0]);
    }

    #[test]
    fn without_slack_stepwise_oscillates_for_ever() {
        let policy = Stepwise { step: 1.0, slack: 0.0 };
        assert_eq!(walk(policy, 5.0, 3.0, 6), [4.0, 3.0, 4.0, 3.0, 4.0, 3.0]);
    }

    #[test]
    fn halving_takes_as_many_blocks_as_the_limit_has_binary_digits() {
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
    fn a_proportional_step_is_opposite_to_the_error() {
        assert_eq!(Proportional { gain: 0.5 }.next(4.0, 2.0), 3.0);
        assert_eq!(Proportional { gain: 0.5 }.next(4.0, -2.0), 5.0);
    }

    #[test]
    fn settling_time_overshoot_and_jitter_are_computed() {
        let transient = Transient::from_series(&[20.0, 12.0, 8.0, 9.5, 10.5, 9.5, 10.5], 10.0, 1.0);
        assert_eq!(transient.settled, Some(3));
        assert!((transient.overshoot - 0.2).abs() < 1e-12, "{transient:?}");
        assert!((transient.jitter - standard_deviation(&[9.5, 10.5, 9.5, 10.5])).abs() < 1e-12);
    }

    #[test]
    fn an_index_that_leaves_the_band_again_has_not_settled() {
        let transient = Transient::from_series(&[20.0, 10.0, 20.0, 10.0, 20.0], 10.0, 1.0);
        assert_eq!((transient.settled, transient.overshoot), (None, 0.0));
        assert!(transient.jitter > 4.0);
        let by_chance = Transient::from_series(&[20.0, 10.0, 20.0, 10.0], 10.0, 1.0);
        assert_eq!(by_chance.settled, None);
    }

    #[test]
    fn an_empty_series_has_an_empty_transient() {
        let empty = Transient { settled: None, overshoot: 0.0, jitter: 0.0 };
        assert_eq!(Transient::from_series(&[], 1.0, 1.0), empty);
    }
}
