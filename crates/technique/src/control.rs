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
//! The control parameter is an amount of work or of memory: the larger it is, the slower are commands. A [`ControlParameter`]
//! applies its value to one of four systems:
//!
//! | parameter | effect of a lower value |
//! |---|---|
//! | [`Background`] | suspends background processes |
//! | [`Batch`] | suspends jobs of users, and accepts no other meanwhile |
//! | [`Computer`] | suspends jobs that page: the degree of multiprogramming |
//! | [`MemoryGroup`] | takes pages away from a group of processes |
//!
//! Three policies compute the next value from the error: [`Stepwise`] (successive approximation), [`Halving`] (binary
//! search) and [`Proportional`] (a step proportional to the error). For the last, on a linear plant, [`stability`]
//! computes which gains settle, which oscillate and which never settle. [`Plant`] simulates a linear plant with noise;
//! [`Transient`] describes the course of a run. [`Interactive`] is a real server that other processes slow down.
//!
//! Processes are suspended and resumed by SIGSTOP and SIGCONT, which needs no privileges for children.
//!
//! Source: slides 72 to 85 of the [module's](super) slides; stability by the Jury criterion (E. I. Jury, 1964), jitter by
//! the variance of an ARMA(2, 1) process (Box and Jenkins, 1970).

mod background;
mod policy;
pub mod stability;

use super::index::{PerformanceIndex, Transaction};
use crate::multiprogramming::{Computer, MemoryGroup};
use syscost_platform::error::Result;

pub use background::{Background, Batch, Interactive};
#[cfg(test)]
pub(super) use policy::standard_normal;
pub use policy::{Halving, Plant, Policy, Proportional, Stepwise, Transient};

/// The state of the controller after a block of commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The performance index.
    pub index: f64,
    /// The index minus the goal; for throughput, the goal minus the index. Positive if the system is too slow or uses too
    /// much memory.
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
    /// A controller that keeps `index` at `goal` by a parameter between 0 and `limit`. The parameter starts at `limit`.
    pub fn new(index: PerformanceIndex, goal: f64, policy: P, limit: f64) -> Self {
        Self { index, goal, policy, limit, parameter: limit }
    }

    /// The same controller with another initial value of the parameter.
    pub fn with_initial_parameter(self, parameter: f64) -> Self {
        Self { parameter: parameter.clamp(0.0, self.limit), ..self }
    }

    /// The current control parameter.
    pub fn parameter(&self) -> f64 {
        self.parameter
    }

    /// Takes the measurement of one command. At the end of a block it updates the parameter and returns the step; otherwise
    /// it returns `None`.
    pub fn add_transaction(&mut self, transaction: &Transaction) -> Option<Step> {
        let index = self.index.add_transaction(transaction)?;
        Some(self.step(index))
    }

    /// Like [`add_transaction`](Self::add_transaction), but takes one value as in [`PerformanceIndex::add_response`].
    pub fn add_response(&mut self, response: f64) -> Option<Step> {
        let index = self.index.add_response(response)?;
        Some(self.step(index))
    }

    fn step(&mut self, index: f64) -> Step {
        let error = self.index.quantity().error(index, self.goal);
        self.parameter = self.policy.next(self.parameter, error).clamp(0.0, self.limit);
        Step { index, error, parameter: self.parameter }
    }
}

/// The smallest limit of a memory group, bytes. With less, the kernel ends processes, since not even their stacks fit.
const LEAST_MEMORY: u64 = 1 << 20;

/// A control parameter of a system: an amount of work or memory.
pub trait ControlParameter {
    /// The parameter's name, with its unit.
    fn name(&self) -> &'static str;

    /// Applies a value, rounded to one that can be set.
    ///
    /// # Errors
    /// An error where the kernel refuses the signal or the limit.
    fn apply(&mut self, value: f64) -> Result<()>;
}

impl ControlParameter for Background {
    fn name(&self) -> &'static str {
        "background processes that run"
    }

    fn apply(&mut self, value: f64) -> Result<()> {
        self.run_first(value.round() as usize)
    }
}

impl ControlParameter for Batch {
    fn name(&self) -> &'static str {
        "batch jobs that may run"
    }

    fn apply(&mut self, value: f64) -> Result<()> {
        self.allow(value.round() as usize)
    }
}

impl ControlParameter for Computer {
    fn name(&self) -> &'static str {
        "degree of multiprogramming"
    }

    fn apply(&mut self, value: f64) -> Result<()> {
        self.run_first(value.round() as usize)
    }
}

impl ControlParameter for MemoryGroup {
    fn name(&self) -> &'static str {
        "memory limit, bytes"
    }

    fn apply(&mut self, value: f64) -> Result<()> {
        self.set_limit((value as u64).max(LEAST_MEMORY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Quantity;
    use std::time::Duration;

    /// The controller allows less work where responses are too long, and where answers are too far apart.
    #[test]
    fn a_low_throughput_and_a_long_response_both_ask_for_less() {
        let slow = Duration::from_millis(500);
        let transaction = Transaction { response: slow, since_last: slow, resident: 0 };
        for (quantity, goal, error) in
            [(Quantity::ResponseTime, 0.25, 0.25), (Quantity::Throughput, 4.0, 2.0)]
        {
            let index = PerformanceIndex::new(1, 0.0).expect("a block").with_quantity(quantity);
            let policy = Stepwise { step: 1.0, slack: 0.0 };
            let mut controller = Controller::new(index, goal, policy, 8.0);
            let step = controller.add_transaction(&transaction).expect("a block of one");
            assert_eq!((step.error, step.parameter), (error, 7.0), "{quantity:?}");
        }
    }
}
