//! A subject with evidence of its own besides what its inner one reports.

use crate::kit::contract::*;

/// A subject and its further evidence.
pub struct WithEvidence<S> {
    inner: S,
    evidence: Vec<String>,
    unchecked: Vec<String>,
}

impl<S: Subject> WithEvidence<S> {
    /// Adds these sentences to those of `inner`.
    pub fn new(inner: S, evidence: impl IntoIterator<Item = String>) -> Self {
        Self { inner, evidence: evidence.into_iter().collect(), unchecked: Vec::new() }
    }

    /// Says besides why a claim could not be asked.
    pub fn with_unchecked(mut self, why: &str) -> Self {
        self.unchecked.push(why.into());
        self
    }
}

impl<S: Subject> Subject for WithEvidence<S> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.inner.run(iterations, clock)
    }

    fn report(&self) -> Report {
        let mut report = self.inner.report();
        report.evidence.extend(self.evidence.iter().cloned());
        report.unchecked.extend(self.unchecked.iter().cloned());
        report
    }
}
