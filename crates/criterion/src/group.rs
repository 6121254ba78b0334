//! Groups of benchmarks and their ids.

use crate::operation::Operation;
use crate::settings::without_effect;
use crate::{Bencher, Criterion, session};
use criterion::measurement::{Measurement, WallTime};
use criterion::{PlotConfiguration, SamplingMode, Throughput};
use std::fmt::Display;
use std::time::Duration;

/// Benchmarks whose ids begin with one name.
pub struct BenchmarkGroup<'a, M: Measurement = WallTime> {
    _criterion: &'a mut Criterion<M>,
    name: String,
    throughput: Option<Throughput>,
}

impl<'a, M: Measurement + 'static> BenchmarkGroup<'a, M> {
    pub(crate) fn new(criterion: &'a mut Criterion<M>, name: String) -> Self {
        Self { _criterion: criterion, name, throughput: None }
    }

    /// Sets what an iteration of the benchmarks that follow processes.
    pub fn throughput(&mut self, throughput: Throughput) -> &mut Self {
        self.throughput = Some(throughput);
        self
    }

    without_effect! {
        &mut;
        sample_size(_: usize);
        warm_up_time(_: Duration);
        measurement_time(_: Duration);
        nresamples(_: usize);
        noise_threshold(_: f64);
        confidence_level(_: f64);
        significance_level(_: f64);
        plot_config(_: PlotConfiguration);
        sampling_mode(_: SamplingMode);
    }

    /// A benchmark of this group.
    pub fn bench_function<ID: IntoBenchmarkId, F>(&mut self, id: ID, mut f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>),
    {
        let id = id.into_benchmark_id();
        self.bench(&id, &mut f);
        self
    }

    /// A benchmark of this group that is given an input.
    pub fn bench_with_input<ID: IntoBenchmarkId, F, I>(&mut self, id: ID, input: &I, mut f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>, &I),
        I: ?Sized,
    {
        let id = id.into_benchmark_id();
        self.bench(&id, &mut |bencher| f(bencher, input));
        self
    }

    fn bench(&mut self, id: &BenchmarkId, f: &mut dyn FnMut(&mut Bencher<'_, M>)) {
        let parts = [Some(&self.name), id.function.as_ref(), id.parameter.as_ref()];
        let full = parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("/");
        session::offer(&full, self.throughput.as_ref(), Operation::new(f));
    }

    /// Ends the group.
    pub fn finish(self) {}
}

/// The id of a benchmark inside its group: a function, a parameter, or both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BenchmarkId {
    pub(crate) function: Option<String>,
    pub(crate) parameter: Option<String>,
}

impl BenchmarkId {
    /// A function and a parameter.
    pub fn new<S: Into<String>, P: Display>(function_name: S, parameter: P) -> Self {
        Self { function: Some(function_name.into()), parameter: Some(parameter.to_string()) }
    }

    /// A parameter of the group's only function.
    pub fn from_parameter<P: Display>(parameter: P) -> Self {
        Self { function: None, parameter: Some(parameter.to_string()) }
    }
}

mod private {
    /// What Criterion lets be an id.
    #[allow(unnameable_types, reason = "no other crate may implement it")]
    pub trait Sealed {}
    impl Sealed for super::BenchmarkId {}
    impl<S: Into<String>> Sealed for S {}
}

/// What can be the id of a benchmark: a [`BenchmarkId`], or the name of a function.
pub trait IntoBenchmarkId: private::Sealed {
    /// The id.
    fn into_benchmark_id(self) -> BenchmarkId;
}

impl IntoBenchmarkId for BenchmarkId {
    fn into_benchmark_id(self) -> BenchmarkId {
        self
    }
}

impl<S: Into<String>> IntoBenchmarkId for S {
    fn into_benchmark_id(self) -> BenchmarkId {
        BenchmarkId { function: Some(self.into()), parameter: None }
    }
}
