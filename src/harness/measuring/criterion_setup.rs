//! Criterion, configured for a scale, with a measurement that stays accessible.

use super::Sampling;
use criterion::Criterion;
use criterion::measurement::{Measurement, ValueFormatter};
use std::cell::Cell;
use std::rc::Rc;

/// A new Criterion for one attempt at one case.
pub(super) fn configured<M: Measurement + 'static>(
    sampling: &Sampling,
    measurement: Shared<M>,
    home: &std::path::Path,
) -> Criterion<Shared<M>> {
    // Set here and not on a group, where it would override the command line.
    without_plots()
        .sample_size(sampling.samples)
        .warm_up_time(sampling.warm_up)
        .measurement_time(sampling.measurement)
        .nresamples(sampling.resamples)
        .with_measurement(measurement)
        .output_directory(home)
        .configure_from_args()
        // The driver has chosen the cases, by their own names.
        .with_filter("")
}

/// A measurement that Criterion and the harness share.
pub(super) struct Shared<M> {
    pub(super) of: Rc<M>,
    zeros: Rc<Cell<u32>>,
}

impl<M> Shared<M> {
    pub(super) fn new(of: M) -> Self {
        Self { of: Rc::new(of), zeros: Rc::default() }
    }

    /// How often Criterion has called [`Measurement::zero`]: once when the warm-up begins and once when sampling begins
    /// (criterion 0.8, `Function::warm_up` and `bench`). Nothing else distinguishes the two.
    pub(super) fn phase(&self) -> u32 {
        self.zeros.get()
    }
}

impl<M> Clone for Shared<M> {
    fn clone(&self) -> Self {
        Self { of: Rc::clone(&self.of), zeros: Rc::clone(&self.zeros) }
    }
}

impl<M: Measurement> Measurement for Shared<M> {
    type Intermediate = M::Intermediate;
    type Value = M::Value;
    fn start(&self) -> M::Intermediate {
        self.of.start()
    }
    fn end(&self, start: M::Intermediate) -> M::Value {
        self.of.end(start)
    }
    fn add(&self, a: &M::Value, b: &M::Value) -> M::Value {
        self.of.add(a, b)
    }
    fn zero(&self) -> M::Value {
        self.zeros.set(self.zeros.get() + 1);
        self.of.zero()
    }
    fn to_f64(&self, value: &M::Value) -> f64 {
        self.of.to_f64(value)
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        self.of.formatter()
    }
}

/// Criterion without what it would add to a run.
pub(super) fn without_plots() -> Criterion {
    Criterion::default().without_plots()
}
