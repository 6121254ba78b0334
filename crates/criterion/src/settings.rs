//! `Criterion`, which declares benchmarks, with Criterion's settings.

use crate::operation::Operation;
use crate::{Bencher, session};
use criterion::measurement::{Measurement, WallTime};
use criterion::profiler::Profiler;
use criterion::{BenchmarkFilter, PlotConfiguration, PlottingBackend, SamplingMode, Throughput};
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

/// Defines settings of Criterion that are accepted without effect. Each notes its name, which is listed at the end of a run.
macro_rules! without_effect {
    (&mut; $( $name:ident(_: $type:ty); )+) => { $(
        #[doc = concat!("Accepted, without effect: Criterion's `", stringify!($name), "`.")]
        pub fn $name(&mut self, _: $type) -> &mut Self {
            $crate::session::note_setting(stringify!($name));
            self
        }
    )+ };
    ($( $name:ident($( $argument:pat => $type:ty ),*); )+) => { $(
        #[doc = concat!("Accepted, without effect: Criterion's `", stringify!($name), "`.")]
        #[must_use]
        pub fn $name(self, $( $argument: $type ),*) -> Self {
            $crate::session::note_setting(stringify!($name));
            self
        }
    )+ };
}

/// Declares benchmarks. Its settings are Criterion's. syscost and the command line determine how long a benchmark is
/// measured.
pub struct Criterion<M: Measurement = WallTime> {
    _measurement: M,
}

impl Default for Criterion {
    fn default() -> Self {
        session::start();
        Self { _measurement: WallTime }
    }
}

impl<M: Measurement + 'static> Criterion<M> {
    /// Sets another measurement. syscost's clock still measures time; `SYSCOST_MEASURE` counts events.
    pub fn with_measurement<M2: Measurement>(self, measurement: M2) -> Criterion<M2> {
        if std::any::type_name::<M2>() != std::any::type_name::<WallTime>() {
            session::note_setting("with_measurement");
        }
        Criterion { _measurement: measurement }
    }

    without_effect! {
        plotting_backend(_ => PlottingBackend);
        sample_size(_ => usize);
        warm_up_time(_ => Duration);
        measurement_time(_ => Duration);
        nresamples(_ => usize);
        noise_threshold(_ => f64);
        confidence_level(_ => f64);
        significance_level(_ => f64);
        with_plots();
        without_plots();
        save_baseline(_ => String);
        retain_baseline(_ => String, _ => bool);
        with_benchmark_filter(_ => BenchmarkFilter);
        with_output_color(_ => bool);
        output_directory(_ => &Path);
        profile_time(_ => Option<Duration>);
    }

    /// Accepted, without effect: Criterion's `with_profiler`.
    #[must_use]
    pub fn with_profiler<P: Profiler + 'static>(self, _: P) -> Self {
        session::note_setting("with_profiler");
        self
    }

    /// Accepted, without effect: Criterion's `with_filter`.
    #[must_use]
    pub fn with_filter<S: Into<String>>(self, _: S) -> Self {
        session::note_setting("with_filter");
        self
    }

    /// Does nothing, since the command line was read when the first `Criterion` was made.
    #[must_use]
    pub fn configure_from_args(self) -> Self {
        self
    }

    /// Measures everything that was declared, and prints the table. A hand-written `main` calls it last, as with Criterion.
    pub fn final_summary(&self) {
        session::finish(false);
    }

    /// Begins a group of benchmarks.
    pub fn benchmark_group<S: Into<String>>(&mut self, group_name: S) -> BenchmarkGroup<'_, M> {
        BenchmarkGroup::new(self, group_name.into())
    }

    /// A benchmark outside of any group.
    pub fn bench_function<F: FnMut(&mut Bencher<'_, M>)>(&mut self, id: &str, f: F) -> &mut Self {
        self.benchmark_group(id).bench_function(BenchmarkId { function: None, parameter: None }, f);
        self
    }

    /// Declares a benchmark outside of any group, which gets an input.
    ///
    /// # Panics
    /// If the id has no function, as with Criterion.
    pub fn bench_with_input<F, I>(&mut self, id: BenchmarkId, input: &I, f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>, &I),
    {
        let BenchmarkId { function, parameter } = id;
        let function = function
            .expect("BenchmarkId::from_parameter belongs into a benchmark_group; use BenchmarkId::new here");
        self.benchmark_group(function).bench_with_input(BenchmarkId { function: None, parameter }, input, f);
        self
    }
}

// Groups of benchmarks and their ids.

/// A group of benchmarks, whose ids begin with one name.
pub struct BenchmarkGroup<'a, M: Measurement = WallTime> {
    _criterion: &'a mut Criterion<M>,
    name: String,
    throughput: Option<Throughput>,
}

impl<'a, M: Measurement + 'static> BenchmarkGroup<'a, M> {
    pub(crate) fn new(criterion: &'a mut Criterion<M>, name: String) -> Self {
        Self { _criterion: criterion, name, throughput: None }
    }

    /// Sets the work of an iteration for the benchmarks that follow.
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

    /// Declares a benchmark of this group.
    pub fn bench_function<ID: IntoBenchmarkId, F>(&mut self, id: ID, mut f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>),
    {
        let id = id.into_benchmark_id();
        self.bench(&id, &mut f);
        self
    }

    /// Declares a benchmark of this group, which gets an input.
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
    /// The id of a function with a parameter.
    pub fn new<S: Into<String>, P: Display>(function_name: S, parameter: P) -> Self {
        Self { function: Some(function_name.into()), parameter: Some(parameter.to_string()) }
    }

    /// The id of a parameter, in a group with one function.
    pub fn from_parameter<P: Display>(parameter: P) -> Self {
        Self { function: None, parameter: Some(parameter.to_string()) }
    }
}

mod private {
    /// The types that Criterion accepts as an id.
    #[allow(unnameable_types, reason = "no other crate may implement it")]
    pub trait Sealed {}
    impl Sealed for super::BenchmarkId {}
    impl<S: Into<String>> Sealed for S {}
}

/// A type that can be the id of a benchmark: a [`BenchmarkId`], or the name of a function.
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
