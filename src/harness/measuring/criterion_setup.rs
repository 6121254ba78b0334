//! Criterion, configured for a scale, with a measurement that stays accessible.

use super::{Counted, Sampling};
use criterion::Criterion;
use std::rc::Rc;

/// A new Criterion for one attempt at one case.
pub(super) fn configured<M: Counted>(
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
}

/// A measurement that Criterion and the harness share.
pub(super) struct Shared<M>(pub(super) Rc<M>);

impl<M: Counted> criterion::measurement::Measurement for Shared<M> {
    type Intermediate = M::Intermediate;
    type Value = M::Value;
    fn start(&self) -> M::Intermediate {
        self.0.start()
    }
    fn end(&self, start: M::Intermediate) -> M::Value {
        self.0.end(start)
    }
    fn add(&self, a: &M::Value, b: &M::Value) -> M::Value {
        self.0.add(a, b)
    }
    fn zero(&self) -> M::Value {
        self.0.zero()
    }
    fn to_f64(&self, value: &M::Value) -> f64 {
        self.0.to_f64(value)
    }
    fn formatter(&self) -> &dyn criterion::measurement::ValueFormatter {
        self.0.formatter()
    }
}

/// Criterion without what it would add to a run.
pub(super) fn without_plots() -> Criterion {
    Criterion::default().without_plots()
}
