//! `syscost report --export`: a run in the format of another tool.

use crate::error::{Error, Result};
use crate::record::Record;
use crate::render::foreign::{action_benchmark, bencher, junit, kcidb, lava, open_metrics};
use clap::ValueEnum;

/// The service that reads it.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Reader {
    /// JSON for github-action-benchmark, as `customSmallerIsBetter`
    ActionBenchmark,
    /// Bencher's metric format, JSON
    Bencher,
    /// A list of tests for a CI, XML
    Junit,
    /// Tests for the kernel community's database KCIDB, JSON by its schema 5; needs --build
    Kcidb,
    /// Gauges for Prometheus and its relatives
    Openmetrics,
    /// Lines for `lava-test-case`, as Linaro's test definitions send them
    Lava,
}

/// The run as this reader takes it.
///
/// # Errors
/// A number is not finite, or the reader needs the name of a build and there is none.
pub fn export(reader: Reader, record: &Record, build: Option<&str>) -> Result<String> {
    match reader {
        Reader::ActionBenchmark => action_benchmark(record),
        Reader::Bencher => bencher(record),
        Reader::Junit => Ok(junit(record)),
        Reader::Kcidb => kcidb(record, build.ok_or_else(unnamed)?),
        Reader::Lava => Ok(lava(record)),
        Reader::Openmetrics => Ok(open_metrics(record)),
    }
}

fn unnamed() -> Error {
    Error::Usage(
        "KCIDB asks which build was tested: name it by --build ORIGIN:ID, as it was reported there".into(),
    )
}
