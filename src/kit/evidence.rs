//! A subject that adds sentences of evidence to the report of another subject.

use crate::kit::contract::*;

/// A subject and the sentences to add to its report.
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

    /// Adds a sentence on why a claim could not be checked.
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
