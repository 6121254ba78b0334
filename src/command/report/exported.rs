//! `syscost report --export`: a run in the format of another tool.

use crate::driver::group_headlines;
use crate::error::{Error, Result};
use crate::platform::kernel_files::KernelFiles;
use crate::record::Record;
use crate::study::published::Reference;
use crate::suite::GROUPS;
use clap::ValueEnum;
use syscost_analysis::render::foreign::{
    action_benchmark_json, bencher_json, junit_xml, kcidb_report, lava_lines, open_metrics_text,
};
use syscost_analysis::render::format::indented_json;

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
    /// The headline figures as a reference for machines of this kind, as `fixtures/reference` holds them
    Reference,
}

/// The run as this reader takes it.
///
/// # Errors
/// A number is not finite, or the reader needs the name of a build and there is none.
pub fn export(reader: Reader, record: &Record, build: Option<&str>) -> Result<String> {
    match reader {
        Reader::ActionBenchmark => action_benchmark_json(record),
        Reader::Bencher => bencher_json(record),
        Reader::Junit => Ok(junit_xml(record)),
        Reader::Kcidb => kcidb_report(record, build.ok_or_else(missing_build_error)?),
        Reader::Lava => Ok(lava_lines(record)),
        Reader::Openmetrics => Ok(open_metrics_text(record, host_name(record).as_deref())),
        Reader::Reference => reference_json(record),
    }
}

/// The headline figures of a run, for the screen of other runs on machines of this kind.
fn reference_json(record: &Record) -> Result<String> {
    let reference = Reference::from_record(record, &group_headlines(GROUPS.iter()));
    let reference = reference.ok_or_else(|| {
        Error::Missing(
            "the microarchitecture of this processor has no name here, and nothing can be like it".into(),
        )
    })?;
    indented_json("the reference", &reference)
}

/// The name of this machine, if the run was made on it since it was started: a record names its boot and no host.
fn host_name(record: &Record) -> Option<String> {
    let files = KernelFiles::live();
    let boot = files.read_first_line("proc/sys/kernel/random/boot_id")?;
    files.read_first_line("proc/sys/kernel/hostname").filter(|_| record.boot == Some(boot))
}

fn missing_build_error() -> Error {
    Error::Usage(
        "KCIDB asks which build was tested: name it by --build ORIGIN:ID, as it was reported there".into(),
    )
}
