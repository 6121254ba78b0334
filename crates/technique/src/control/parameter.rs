//! What a controller changes.

use super::{Background, Batch};
use crate::multiprogramming::{Computer, MemoryGroup};
use syscost_platform::error::Result;

/// The least limit of a memory group, bytes: with less the kernel ends processes, since not even their stacks fit.
const LEAST_MEMORY: u64 = 1 << 20;

/// A control parameter of a system: an amount of work or memory.
pub trait ControlParameter {
    /// What it is, with its unit.
    fn name(&self) -> &'static str;

    /// Applies a value, rounded to what can be set.
    ///
    /// # Errors
    /// The kernel refuses the signal or the limit.
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
