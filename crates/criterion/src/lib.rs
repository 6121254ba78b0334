//! Criterion's interface over `syscost`: an existing bench changes by one line of `Cargo.toml` and no line of its source.
//!
//! ```toml
//! [dev-dependencies]
//! criterion = { package = "syscost-criterion", git = "…" }
//! ```
//!
//! The bench then runs in several fresh processes and ends with syscost's table (*quiet*, *next run*). Its claims are
//! checked: time grows with the iterations, no more time is reported than passed, a later iteration does as much as an early
//! one, and an iteration executes more than the same loop without the operation. A disproved benchmark gets a sentence and no
//! number.
//!
//! Names have Criterion's meaning, so Criterion's documentation applies. Settings that are accepted without effect are listed
//! by name at the end of a run.

#![deny(unsafe_code)]

#[cfg(feature = "async")]
mod async_bencher;
mod bencher;
mod empty_loop;
mod operation;
mod session;
mod settings;
mod work;

#[cfg(feature = "async")]
pub use async_bencher::AsyncBencher;
pub use bencher::Bencher;
#[cfg(feature = "async")]
pub use criterion::async_executor;
pub use criterion::measurement;
pub use criterion::profiler;
pub use criterion::{
    AxisScale, BatchSize, BenchmarkFilter, PlotConfiguration, PlottingBackend, SamplingMode, Throughput,
};
#[doc(hidden)]
pub use session::run_groups;
pub use settings::Criterion;
pub use settings::{BenchmarkGroup, BenchmarkId, IntoBenchmarkId};
pub use syscost_engine::alloc;

/// Hides a value from the optimiser, as [`std::hint::black_box`] does.
pub fn black_box<T>(value: T) -> T {
    std::hint::black_box(value)
}

/// Runs these functions and then all benchmarks, as Criterion's function of this name does.
#[doc(hidden)]
pub fn runner(benches: &[&dyn Fn()]) {
    benches.iter().for_each(|bench| bench());
    Criterion::default().configure_from_args().final_summary();
}

/// Defines a function that runs these benchmark functions, as Criterion's macro of this name does, in both forms.
#[macro_export]
macro_rules! criterion_group {
    (name = $name:ident; config = $config:expr; targets = $( $target:path ),+ $(,)*) => {
        /// Runs the benchmarks of this group.
        pub fn $name() {
            let mut criterion: $crate::Criterion<_> = $config.configure_from_args();
            $( $target(&mut criterion); )+
        }
    };
    ($name:ident, $( $target:path ),+ $(,)*) => {
        $crate::criterion_group! {
            name = $name;
            config = $crate::Criterion::default();
            targets = $( $target ),+
        }
    };
}

/// Defines the `main` that runs these groups, as Criterion's macro of this name does.
#[macro_export]
macro_rules! criterion_main {
    ( $( $group:path ),+ $(,)* ) => {
        fn main() {
            $crate::run_groups(::core::module_path!(), &[ $( &|| { $group(); } ),+ ]);
        }
    };
}
