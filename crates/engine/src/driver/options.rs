//! Settings of a run that come from environment variables.

use super::arguments::Arguments;
use crate::case::{Group, Scale};
use crate::error::{Error, Result};
use crate::platform::perf_event::{Counter, Event};
use crate::record::quantity::{NANOSECONDS, is_time_unit};
use crate::trial::scratch;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const SCALE_VARIABLE: &str = "SYSCOST_SCALE";
pub(super) const DIRECTORY_VARIABLE: &str = "SYSCOST_DIR";
pub(super) const PEER_VARIABLE: &str = "SYSCOST_PEER";
pub(super) const PEER_TOKEN_VARIABLE: &str = "SYSCOST_PEER_TOKEN_FILE";
const TIME_VARIABLE: &str = "SYSCOST_TIME";
pub(super) const CASE_TIME_VARIABLE: &str = "SYSCOST_CASE_TIME";
const STRICT_VARIABLE: &str = "SYSCOST_STRICT";
pub(super) const OPERATIONS_VARIABLE: &str = "SYSCOST_OPERATIONS";
pub(super) const REPLICATIONS_VARIABLE: &str = "SYSCOST_REPLICATIONS";
/// Silence after which a case counts as hung: ten times the longest case at full scale.
const PATIENCE: Duration = Duration::from_secs(300);
/// Runs of a displaced case that Criterion needs at least.
pub const FEWEST_REPLICATIONS: u32 = 10;

/// Settings that are not on Criterion's command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// `SYSCOST_SCALE`: smoke, default or full.
    pub scale: Scale,
    /// `SYSCOST_MEASURE`: `ns`, `user-instructions`, or the name of a perf event to count instead.
    pub unit: String,
    /// `SYSCOST_EVENTS`: perf events that are counted beside the time, between commas.
    pub events: Vec<Event>,
    /// `SYSCOST_PREDICTIONS`: a TOML file of the user's own predictions.
    pub predictions: Option<PathBuf>,
    /// `SYSCOST_AGAINST`: published machines to show in columns of their own, such as `csc501,cse221`.
    pub against: Option<String>,
    /// `SYSCOST_DIR`: where the files of the file cases are made; `None` for the usual place.
    pub directory: Option<PathBuf>,
    /// Where Criterion's files go; `None` for [`criterion_home`](super::criterion_home).
    pub home: Option<PathBuf>,
    /// `SYSCOST_PEER`: `HOST:PORT` of the `syscost peer` that serves the remote cases.
    pub peer: Option<String>,
    /// `SYSCOST_PEER_TOKEN_FILE`: the file with the peer's token.
    pub peer_token_file: Option<PathBuf>,
    /// `SYSCOST_TIME`: the limit of the run, seconds, after which no case begins; `None` for no limit.
    pub seconds: Option<f64>,
    /// `SYSCOST_CASE_TIME`: seconds after which a case that has not ended is killed; `None` for five minutes.
    pub case_seconds: Option<f64>,
    /// `SYSCOST_OPERATIONS`: operations of a run of a displaced case whose id does not say them; `None` for as many as fill a
    /// length of time.
    pub operations: Option<u64>,
    /// `SYSCOST_REPLICATIONS`: undisturbed runs of a displaced case; `None` for those of the scale.
    pub replications: Option<u32>,
    /// `SYSCOST_STRICT`: the run ends with exit code 3 if a case is disturbed, unwitnessed or not settled.
    pub strict: bool,
    /// A run of which every case was skipped fails. A bench target does not: Cargo would not start those behind it.
    pub wants_a_number: bool,
    /// `--copies`: processes that measure each case at the same time, each on a CPU of its own.
    pub copies: usize,
    /// The session of this run, where several runs are made in one go.
    pub session: Option<String>,
    /// The whole suite that the measured groups are part of, so that a message can name another group of it; empty for the benches
    /// of another crate.
    pub known: &'static [Group],
}

impl Options {
    /// Reads the variables above. An empty variable counts as unset.
    ///
    /// # Errors
    /// A variable that must be text is not UTF-8, or the scale is unknown.
    pub fn from_environment() -> Result<Self> {
        let given = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let variable = |name| match given(name).map(OsString::into_string) {
            Some(Err(value)) => Err(Error::Usage(format!("{name} is {value:?}: expected text in UTF-8"))),
            Some(Ok(value)) => Ok(Some(value)),
            None => Ok(None),
        };
        let scale = match variable(SCALE_VARIABLE)? {
            None => Scale::Default,
            Some(name) => Scale::named(&name).ok_or_else(|| {
                Error::Usage(format!("{SCALE_VARIABLE} is {name:?}: expected smoke, default or full"))
            })?,
        };
        Ok(Self {
            scale,
            unit: variable("SYSCOST_MEASURE")?.unwrap_or_else(|| NANOSECONDS.into()),
            events: variable("SYSCOST_EVENTS")?
                .map(|names| parse_events(&names))
                .transpose()?
                .unwrap_or_default(),
            predictions: given("SYSCOST_PREDICTIONS").map(PathBuf::from),
            against: variable("SYSCOST_AGAINST")?,
            directory: given(DIRECTORY_VARIABLE).map(PathBuf::from),
            home: None,
            peer: variable(PEER_VARIABLE)?,
            peer_token_file: given(PEER_TOKEN_VARIABLE).map(PathBuf::from),
            seconds: variable(TIME_VARIABLE)?
                .map(|text| parse_time_limit(TIME_VARIABLE, &text))
                .transpose()?,
            case_seconds: variable(CASE_TIME_VARIABLE)?
                .map(|text| parse_time_limit(CASE_TIME_VARIABLE, &text))
                .transpose()?,
            operations: variable(OPERATIONS_VARIABLE)?
                .map(|text| parse_count(OPERATIONS_VARIABLE, &text, 1))
                .transpose()?,
            replications: variable(REPLICATIONS_VARIABLE)?
                .map(|text| parse_count(REPLICATIONS_VARIABLE, &text, FEWEST_REPLICATIONS))
                .transpose()?,
            strict: given(STRICT_VARIABLE).is_some_and(|value| value != "0"),
            wants_a_number: false,
            copies: 1,
            session: None,
            known: &[],
        })
    }

    /// The directory in which scratch directories are made.
    pub fn scratch_parent(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(scratch::default_parent)
    }

    /// [`PATIENCE`], longer by ten times the sampling time that the user asked for, since a disturbed case is repeated. A day if
    /// the user asked for a number of operations or runs, whose length is unknown. The user may set it.
    pub(super) fn silence_limit(&self, arguments: &Arguments) -> Duration {
        if let Some(seconds) = self.case_seconds {
            return Duration::from_secs_f64(seconds);
        }
        if self.operations.is_some() || self.replications.is_some() {
            return Duration::from_secs(86_400);
        }
        let asked: f64 = [arguments.warm_up_seconds, arguments.measurement_seconds].iter().flatten().sum();
        PATIENCE + Duration::from_secs_f64(10.0 * asked)
    }

    /// Whether time is measured, and not an event counted.
    pub fn measures_time(&self) -> bool {
        is_time_unit(&self.unit)
    }
}

/// Events by their names, which stand between commas, each once.
///
/// # Errors
/// There is no event of one of the names.
pub fn parse_events(names: &str) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let event = Event::from_name(name).map_err(Error::Usage)?;
        if !events.contains(&event) {
            events.push(event);
        }
    }
    Ok(events)
}

/// A time in seconds.
///
/// # Errors
/// It is no number from 0 to a day.
fn parse_time_limit(variable: &str, text: &str) -> Result<f64> {
    let number = text.parse().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    number.ok_or_else(|| Error::Usage(format!("{variable} is {text:?}: expected seconds, from 0 to 86400")))
}

/// A whole number.
///
/// # Errors
/// It is none, or less than `least`.
fn parse_count<N: std::str::FromStr + PartialOrd + std::fmt::Display>(
    variable: &str,
    text: &str,
    least: N,
) -> Result<N> {
    let number = text.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| {
        Error::Usage(format!("{variable} is {text:?}: expected a whole number, {least} or more"))
    })
}

/// Opens a counter of this thread for the perf event of this name.
///
/// # Errors
/// [`Error::Usage`]: the name is unknown (the sentence lists the known ones), or the machine or the kernel cannot
/// count it.
pub fn open_counter(name: &str) -> Result<Counter> {
    let event = Event::from_name(name).map_err(Error::Usage)?;
    Counter::open(event).map_err(|error| Error::Usage(event.refusal_message(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_whole_number_and_not_too_small() {
        assert_eq!(parse_count("SYSCOST_OPERATIONS", "10000", 1u64).expect("a count"), 10_000);
        for bad in ["0", "9", "-10", "1e4", "many"] {
            let sentence = parse_count("SYSCOST_REPLICATIONS", bad, 10u32).expect_err(bad).to_string();
            assert!(sentence.contains(&format!("SYSCOST_REPLICATIONS is {bad:?}")), "{sentence}");
            assert!(sentence.contains("10 or more"), "{sentence}");
        }
    }

    #[test]
    fn events_are_named_between_commas_and_taken_once() {
        let found = parse_events("page-faults, context-switches,,page-faults").expect("known");
        assert_eq!(
            found.iter().map(|event| event.name).collect::<Vec<_>>(),
            ["page-faults", "context-switches"]
        );
        assert!(parse_events("").expect("none").is_empty());
        let sentence = parse_events("page-faults,unicorns").expect_err("unknown").to_string();
        assert!(sentence.contains("no event unicorns; there are cpu-cycles"), "{sentence}");
    }
}
