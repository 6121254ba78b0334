//! `syscost report --export`: a run in the format of another tool.

use crate::error::Result;
use crate::record::Record;
use crate::render::foreign::{action_benchmark, bencher, junit, lava, open_metrics};
use clap::ValueEnum;

/// Who reads it.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Reader {
    /// JSON for github-action-benchmark, as `customSmallerIsBetter`
    ActionBenchmark,
    /// Bencher's metric format, JSON
    Bencher,
    /// A list of tests for a CI, XML
    Junit,
    /// Gauges for Prometheus and its relatives
    Openmetrics,
    /// Lines for `lava-test-case`, as Linaro's test definitions send them
    Lava,
}

/// The run as this reader takes it.
///
/// # Errors
/// A number is not finite.
pub(super) fn text(reader: Reader, record: &Record) -> Result<String> {
    match reader {
        Reader::ActionBenchmark => action_benchmark(record),
        Reader::Bencher => bencher(record),
        Reader::Junit => Ok(junit(record)),
        Reader::Lava => Ok(lava(record)),
        Reader::Openmetrics => Ok(open_metrics(record)),
    }
}
