//! Entry points of bench targets, and measurements for a Criterion bench.
//!
//! A bench target calls [`main`] with its own groups, or [`group`] and [`suite`] for those of this crate.

use crate::error::Error;
use crate::suite;
use std::process::ExitCode;
pub use syscost_engine::harness::{CycleTime, EventCount, main};
#[doc(hidden)]
pub use syscost_engine::harness::{InPlace, Offer, Work, failed_exit, main_of_suite, size_as_run};

/// The `main` of a bench target for one group of this crate.
pub fn group(name: &str) -> ExitCode {
    match suite::find_group(name) {
        Some(group) => main_of_suite(std::slice::from_ref(group), suite::GROUPS),
        None => failed_exit(&Error::Usage(format!("there is no group {name}"))).into(),
    }
}

/// The `main` of the bench target that is named like a group of this crate.
#[doc(hidden)]
#[macro_export]
macro_rules! bench_group {
    () => {
        fn main() -> std::process::ExitCode {
            $crate::harness::group(env!("CARGO_CRATE_NAME"))
        }
    };
}

/// The `main` of a bench target for all groups of this crate.
pub fn suite() -> ExitCode {
    main_of_suite(suite::GROUPS, suite::GROUPS)
}
