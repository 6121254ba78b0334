//! `Criterion`: where benchmarks are declared, with the settings that Criterion has.

use crate::{Bencher, BenchmarkGroup, BenchmarkId, session};
use criterion::measurement::{Measurement, WallTime};
use criterion::profiler::Profiler;
use criterion::{BenchmarkFilter, PlottingBackend};
use std::path::Path;
use std::time::Duration;

/// Settings of Criterion that are accepted and change nothing. Each notes its name, which is listed at the end of a run.
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
pub(crate) use without_effect;

/// Where benchmarks are declared. Its settings are Criterion's; how long a benchmark is measured is syscost's matter and the
/// command line's.
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
    /// Sets another measurement. Time is measured all the same, by syscost's clock; `SYSCOST_MEASURE` counts events.
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

    /// Does nothing: the command line was read when the first `Criterion` was made.
    #[must_use]
    pub fn configure_from_args(self) -> Self {
        self
    }

    /// Measures everything that was declared, and prints the table. A `main` of one's own calls it last, as with Criterion.
    pub fn final_summary(&self) {
        session::finish(false);
    }

    /// A group of benchmarks.
    pub fn benchmark_group<S: Into<String>>(&mut self, group_name: S) -> BenchmarkGroup<'_, M> {
        BenchmarkGroup::new(self, group_name.into())
    }

    /// A benchmark outside of any group.
    pub fn bench_function<F>(&mut self, id: &str, f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>),
    {
        self.benchmark_group(id).bench_function(BenchmarkId { function: None, parameter: None }, f);
        self
    }

    /// A benchmark outside of any group that is given an input.
    ///
    /// # Panics
    /// The id has no function, as with Criterion.
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
