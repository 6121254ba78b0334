//! Real-time control of performance: measure, condense into an index, compare with the goal, adjust, repeat.
//!
//! ```text
//!                 goal T
//!                   │
//! commands ─► system ─► index PI ─► error = PI − T ─► policy ─► control parameter ─┐
//!               ▲                                                                  │
//!               └──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The control parameter is the amount of background work that is allowed: more of it makes commands slower. Three
//! policies compute its next value from the error: [`Stepwise`] (successive approximation), [`Halving`] (binary search)
//! and [`Proportional`] (a step proportional to the error). For the last, on a linear plant, [`stability`] computes
//! which gains settle, which oscillate and which never settle. [`Plant`] simulates a linear plant with noise;
//! [`Transient`] describes the course of a run.
//!
//! [`Background`] is real background work: processes that are suspended and resumed by SIGSTOP and SIGCONT, which needs
//! no privileges. [`Interactive`] is a real server that they slow down.
//!
//! Source: slides 72 to 85 of the [module's](super) own; stability by the Jury criterion (E. I. Jury, 1964), jitter by
//! the variance of an ARMA(2, 1) process (Box and Jenkins, 1970).

mod background;
mod interactive;
mod plant;
mod policy;
pub mod stability;
mod transient;

pub use background::Background;
pub use interactive::Interactive;
pub use plant::Plant;
#[cfg(test)]
pub(super) use plant::standard_normal;
pub use policy::{Halving, Policy, Proportional, Stepwise};
pub use transient::Transient;

use super::index::PerformanceIndex;

/// The state of the controller after a block of commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The performance index.
    pub index: f64,
    /// The index minus the goal; positive if the system is too slow.
    pub error: f64,
    /// The new control parameter.
    pub parameter: f64,
}

/// A controller: index, goal and policy.
pub struct Controller<P> {
    index: PerformanceIndex,
    goal: f64,
    policy: P,
    limit: f64,
    parameter: f64,
}

impl<P: Policy> Controller<P> {
    /// Keeps `index` at `goal` by a parameter between 0 and `limit`, which it starts at.
    pub fn new(index: PerformanceIndex, goal: f64, policy: P, limit: f64) -> Self {
        Self { index, goal, policy, limit, parameter: limit }
    }

    /// Starts at another value of the parameter.
    pub fn with_initial_parameter(self, parameter: f64) -> Self {
        Self { parameter: parameter.clamp(0.0, self.limit), ..self }
    }

    /// The current control parameter.
    pub fn parameter(&self) -> f64 {
        self.parameter
    }

    /// Takes the response time of one command. At the end of a block it updates the parameter and returns the step.
    pub fn add_response(&mut self, response: f64) -> Option<Step> {
        let index = self.index.add_response(response)?;
        let error = index - self.goal;
        self.parameter = self.policy.next(self.parameter, error).clamp(0.0, self.limit);
        Some(Step { index, error, parameter: self.parameter })
    }
}
