//! The record of one job: a figure for each case. It is small, so that the records of ten thousand machines fit in one comparison.
//! The full runs stay on the machine that measured them.

use super::Job;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syscost_engine::environment::Fingerprint;
use syscost_engine::record::soundness::{Sound, check_that, is_valid_name};
use syscost_engine::record::store::parse;
use syscost_platform::error::{Error, Result};
use syscost_platform::inert;

/// The version of the layout.
pub const LAYOUT: u32 = 1;
/// The most cases of a record.
const MOST_CASES: usize = 20_000;
/// The longest reason of a case without a figure, characters.
const LONGEST: usize = 2_000;
const REMEDY: &str = "it was damaged, edited or is of another version: measure the job again";

/// The record of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Layout version, [`LAYOUT`].
    pub fleet_job: u32,
    /// `syscost` and its version.
    pub tool: String,
    /// Name of the experiment.
    pub experiment: String,
    /// The host, as the experiment names it.
    pub host: String,
    /// The kernel, as the experiment names it.
    pub kernel: String,
    /// The number of the repeat, from 1.
    pub repeat: u32,
    /// The kernel's own name of this boot; empty if it has none.
    pub boot: String,
    /// The time at which the job began, Unix seconds.
    pub started: u64,
    /// The scale: `smoke`, `default` or `full`.
    pub scale: String,
    /// The machine and the running kernel.
    pub fingerprint: Fingerprint,
    /// The cases with a figure.
    pub cases: Vec<Figure>,
    /// The cases without a figure, by id, with the reasons.
    pub without: BTreeMap<String, String>,
}

/// The figure of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// `group/variant/parameter`.
    pub id: String,
    /// The version of the group.
    pub version: String,
    /// The clock by which it was measured.
    pub clock: String,
    /// The floor of the processes' quiet figures, ns.
    pub ns: f64,
    /// The core's frequency to which the figure applies, Hz; `None` if it was not inferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
}

impl JobRecord {
    /// The job that the record states.
    pub fn job(&self) -> Job<'_> {
        Job { host: &self.host, kernel: &self.kernel, repeat: self.repeat }
    }

    /// The record as JSON with a seal, a checksum of the content.
    ///
    /// # Errors
    /// The record cannot be written as JSON.
    pub fn sealed_bytes(&self, path: &Path) -> Result<Vec<u8>> {
        let json = serde_json::to_vec(self).map_err(|e| Error::file(path, "writing as JSON", e.into()))?;
        Ok(parse::add_seal(&json))
    }

    /// Reads a record and checks its seal, layout, names and numbers: a record from another host is not trusted.
    ///
    /// # Errors
    /// The record is not sound: the error names the field.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        if !bytes.starts_with(b"{\"sealed\"") || !parse::is_seal_valid(bytes) {
            return Err(content_error(path, "seal", "the checksum of what the file holds", "another"));
        }
        let record: Self = serde_json::from_slice(bytes)
            .map_err(|e| content_error(path, "the text", "the record of a job", &e.to_string()))?;
        if record.fleet_job != LAYOUT {
            let expected = format!("layout {LAYOUT}");
            return Err(content_error(path, "fleet_job", &expected, &record.fleet_job.to_string()));
        }
        record.check_fields().map_err(|fault| fault.into_error(path, REMEDY))?;
        Ok(record)
    }

    /// Checks that every field has a possible value.
    fn check_fields(&self) -> Sound {
        let name = |field: &str, text: &str| {
            check_that(is_valid_name(text), field, "a name", inert::neutralize_line(text, 200))
        };
        let texts = [
            ("tool", &self.tool),
            ("experiment", &self.experiment),
            ("host", &self.host),
            ("kernel", &self.kernel),
            ("scale", &self.scale),
        ];
        texts.into_iter().try_for_each(|(field, text)| name(field, text))?;
        if !self.boot.is_empty() {
            name("boot", &self.boot)?;
        }
        let count = self.cases.len() + self.without.len();
        check_that(count <= MOST_CASES, "cases", format_args!("at most {MOST_CASES}"), count)?;
        name("fingerprint.kernel_release", self.fingerprint.kernel_release.as_deref().unwrap_or(""))?;
        let mut known = BTreeSet::new();
        for Figure { id, version, clock, ns, core_hz } in &self.cases {
            name("cases.id", id)?;
            name("cases.version", version)?;
            name("cases.clock", clock)?;
            let is_positive = |value: f64| value > 0.0 && value.is_finite();
            let is_time = is_positive(*ns) && core_hz.is_none_or(is_positive);
            check_that(is_time, format_args!("cases.{id}"), "a time above 0", ns)?;
            check_that(known.insert(id), format_args!("cases.{id}"), "each case once", "twice")?;
        }
        for text in self.without.iter().flat_map(|(id, why)| [id, why]) {
            let is_plain = !text.contains(inert::is_hostile) && text.len() <= 4 * LONGEST;
            check_that(is_plain, "without", "plain sentences", inert::neutralize_line(text, 200))?;
        }
        Ok(())
    }
}

/// A sentence as a record stores it: on one line, without control characters.
pub fn inert_line(text: &str) -> String {
    inert::neutralize_line(text, LONGEST)
}

fn content_error(path: &Path, field: &str, expected: &str, found: &str) -> Error {
    Error::invalid_content(path, field, expected, inert::neutralize_line(found, 200), REMEDY)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A sound record of two cases.
    pub(in crate::record::fleet_record) fn sample_record(host: &str, kernel: &str, repeat: u32) -> JobRecord {
        let figure = |id: &str, ns| Figure {
            id: id.into(),
            version: "1".into(),
            clock: "tsc".into(),
            ns,
            core_hz: None,
        };
        JobRecord {
            fleet_job: LAYOUT,
            tool: "syscost 0.1.0".into(),
            experiment: "fork".into(),
            host: host.into(),
            kernel: kernel.into(),
            repeat,
            boot: format!("boot-of-{host}-{kernel}-{repeat}"),
            started: 1_800_000_000 + u64::from(repeat),
            scale: "smoke".into(),
            fingerprint: Fingerprint { kernel_release: Some(kernel.into()), ..Fingerprint::default() },
            cases: vec![figure("syscall/getppid", 117.0), figure("fork/vfork", 40_000.0)],
            without: BTreeMap::new(),
        }
    }

    fn seal_and_parse(record: &JobRecord) -> Result<JobRecord> {
        let path = Path::new("1.json");
        JobRecord::parse(path, &record.sealed_bytes(path)?)
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_flipped_bit_is_found() {
        let record = sample_record("n1", "6.1", 1);
        assert_eq!(seal_and_parse(&record).unwrap(), record);
        let bytes = record.sealed_bytes(Path::new("1.json")).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(JobRecord::parse(Path::new("1.json"), &damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn an_impossible_record_is_refused_with_its_field() {
        type Change = fn(&mut JobRecord);
        let cases: [(Change, &str); 8] = [
            (|r| r.host = "../n1\u{1b}".into(), "host"),
            (|r| r.cases[0].ns = -1.0, "cases.syscall/getppid"),
            (|r| r.cases[1].id = "syscall/getppid".into(), "each case once"),
            (|r| r.cases[1].id = "a\nb".into(), "cases.id"),
            (|r| r.fleet_job = 2, "layout 1"),
            (|r| r.cases[0].core_hz = Some(0.0), "a time above 0"),
            (|r| r.fingerprint.kernel_release = None, "kernel_release"),
            (|r| drop(r.without.insert("x".into(), "\u{202e}".into())), "without"),
        ];
        for (change, said) in cases {
            let mut record = sample_record("n1", "6.1", 1);
            change(&mut record);
            let error = seal_and_parse(&record).expect_err(said).to_string();
            assert!(error.contains(said) && !error.contains('\u{1b}'), "{error}");
        }
    }
}
