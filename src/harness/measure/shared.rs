//! Criterion as a case is given it: configured for the scale, and with a measurement that we still see.

use super::super::measurement::Counted;
use super::Sampling;
use criterion::Criterion;
use std::rc::Rc;

/// A Criterion of its own for one attempt at one case.
pub(super) fn configured<M: Counted>(
    sampling: &Sampling,
    measurement: Shared<M>,
    home: &std::path::Path,
) -> Criterion<Shared<M>> {
    // The defaults of this scale come first: what is set on a group would beat the command line.
    Criterion::default()
        .without_plots()
        .sample_size(sampling.samples)
        .warm_up_time(sampling.warm_up)
        .measurement_time(sampling.measurement)
        .nresamples(sampling.resamples)
        .with_measurement(measurement)
        .output_directory(home)
        .configure_from_args()
}

/// A measurement that Criterion owns and we still see.
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
