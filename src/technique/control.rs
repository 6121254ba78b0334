//! Control of performance in real time: measure, reduce, compare with the goal, adjust, again.
//!
//! ```text
//!                 goal T
//!                   │
//! commands ─► system ─► index PI ─► error = PI − T ─► policy ─► control parameter ─┐
//!               ▲                                                                  │
//!               └──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The control parameter says how much background work is allowed: more of it makes commands slower. Three policies
//! turn an error into its next value: [`Stepwise`] (successive approximation: suspend one, look, suspend the next),
//! [`Halving`] (binary search: suspend many, let some go on again) and [`Proportional`] (a step as large as the error
//! asks for). [`stability`] says for the last, on a plant that is a straight line, which gains settle, which ring
//! and which never settle; [`Plant`] is such a line with scatter, and [`Transient`] what a run of either was like.
//!
//! [`Background`] is real: processes that are suspended and resumed by SIGSTOP and SIGCONT, for which nobody needs a
//! privilege; [`Interactive`] is a real server whose commands they make slow.
//!
//! Source: slides 72 to 85 of the [module's](super) own; stability by the Jury criterion (E. I. Jury, 1964), jitter by the
//! variance of an ARMA(2, 1) process (Box and Jenkins, 1970).

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
pub(super) use plant::normal;
pub use policy::{Halving, Policy, Proportional, Stepwise};
pub use transient::Transient;

use super::index::PerformanceIndex;

/// What the controller saw at the end of a block, and did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The index.
    pub index: f64,
    /// The index less the goal: above zero it is too slow.
    pub error: f64,
    /// The control parameter from here on.
    pub parameter: f64,
}

/// The index, the goal and the policy together.
pub struct Controller<P> {
    index: PerformanceIndex,
    goal: f64,
    policy: P,
    limit: f64,
    parameter: f64,
}

impl<P: Policy> Controller<P> {
    /// Holds `index` at `goal` by a parameter between 0 and `limit`, where it begins.
    pub fn new(index: PerformanceIndex, goal: f64, policy: P, limit: f64) -> Self {
        Self { index, goal, policy, limit, parameter: limit }
    }

    /// The same, beginning at another value of the parameter.
    pub fn beginning_at(self, parameter: f64) -> Self {
        Self { parameter: parameter.clamp(0.0, self.limit), ..self }
    }

    /// The control parameter now.
    pub fn parameter(&self) -> f64 {
        self.parameter
    }

    /// One command's response. At the end of a block the parameter moves.
    pub fn command(&mut self, response: f64) -> Option<Step> {
        let index = self.index.take(response)?;
        let error = index - self.goal;
        self.parameter = self.policy.next(self.parameter, error).clamp(0.0, self.limit);
        Some(Step { index, error, parameter: self.parameter })
    }
}
