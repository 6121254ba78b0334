//! A simulated system with known behaviour, for tests of a controller.

use super::{Controller, Policy};
use crate::index::PerformanceIndex;
use syscost_statistic::Random;

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

    /// The index after each of `blocks` blocks under control, from the steady state at the parameter `from`.
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
    let mut uniform = || ((random.next_bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (size, turn) = (uniform(), uniform());
    (-2.0 * size.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}
