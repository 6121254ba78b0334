//! Settings of a run that come from environment variables.

use super::arguments::Arguments;
use crate::case::{Group, Scale};
use crate::error::{Error, Result};
use crate::platform::perf_event::{Counter, Event};
use crate::platform::process::own_program_file;
use crate::record::quantity::{NANOSECONDS, is_time_unit};
use crate::trial::scratch;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SCALE_VARIABLE: &str = "SYSCOST_SCALE";
pub(super) const DIRECTORY_VARIABLE: &str = "SYSCOST_DIR";
pub(super) const PEER_VARIABLE: &str = "SYSCOST_PEER";
pub(super) const PEER_COMMAND_VARIABLE: &str = "SYSCOST_PEER_COMMAND";
pub(super) const CASE_TIME_VARIABLE: &str = "SYSCOST_CASE_TIME";
/// Silence after which a case counts as hung: ten times the longest case at full scale.
const SILENCE_LIMIT: Duration = Duration::from_secs(300);
/// The fewest runs of a displaced case that Criterion accepts.
pub const FEWEST_REPLICATIONS: u32 = 10;

/// Settings that are not on Criterion's command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// `SYSCOST_SCALE`: smoke, default or full.
    pub scale: Scale,
    /// `SYSCOST_MEASURE`: `ns`, `user-instructions`, or the name of a perf event to count instead.
    pub unit: String,
    /// `SYSCOST_EVENTS`: perf events that are counted in addition to the time, separated by commas.
    pub events: Vec<Event>,
    /// `SYSCOST_PREDICTIONS`: a TOML file of the user's own predictions.
    pub predictions: Option<PathBuf>,
    /// `SYSCOST_DIR`: where the files of the file cases are made; `None` for the usual place.
    pub directory: Option<PathBuf>,
    /// Where Criterion's files go; `None` for [`criterion_home`](super::criterion_home).
    pub home: Option<PathBuf>,
    /// `SYSCOST_PEER`: the machine at the other end of network cases.
    pub peer: Option<String>,
    /// `SYSCOST_PEER_COMMAND`: what starts `syscost peer` there; `None` for ssh.
    pub peer_command: Option<String>,
    /// `SYSCOST_TIME`: the limit of the run, seconds, after which no case begins; `None` for no limit.
    pub seconds: Option<f64>,
    /// `SYSCOST_CASE_TIME`: seconds after which a case that has not ended is killed; `None` for five minutes.
    pub case_seconds: Option<f64>,
    /// Operations per run of a displaced case, unless its id states a number; `None` for as many as fill a set
    /// length of time.
    pub operations: Option<u64>,
    /// Undisturbed runs of a displaced case; `None` for those of the scale.
    pub replications: Option<u32>,
    /// `SYSCOST_STRICT`: the run ends with exit code 3 if a case is disturbed, unwitnessed or not settled.
    pub strict: bool,
    /// Whether a run fails if all of its cases were skipped. False in a bench target: Cargo starts no target after one that failed.
    pub wants_a_number: bool,
    /// `--copies`: processes that measure each case at the same time, each on a CPU of its own.
    pub copies: usize,
    /// The session of this run, if one command makes several runs.
    pub session: Option<String>,
    /// The whole suite to which the measured groups belong, so that messages can name its other groups; empty for the benches
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
        let seconds = |name| variable(name)?.map(|text: String| parse_time_limit(name, &text)).transpose();
        let scale = match variable(SCALE_VARIABLE)? {
            None => Scale::Default,
            Some(name) => Scale::named(&name).ok_or_else(|| {
                Error::Usage(format!("{SCALE_VARIABLE} is {name:?}: expected smoke, default or full"))
            })?,
        };
        Ok(Self {
            scale,
            unit: variable("SYSCOST_MEASURE")?.unwrap_or_else(|| NANOSECONDS.into()),
            events: parse_events(&variable("SYSCOST_EVENTS")?.unwrap_or_default())?,
            predictions: given("SYSCOST_PREDICTIONS").map(PathBuf::from),
            directory: given(DIRECTORY_VARIABLE).map(PathBuf::from),
            home: None,
            peer: variable(PEER_VARIABLE)?,
            peer_command: variable(PEER_COMMAND_VARIABLE)?,
            seconds: seconds("SYSCOST_TIME")?,
            case_seconds: seconds(CASE_TIME_VARIABLE)?,
            operations: None,
            replications: None,
            strict: given("SYSCOST_STRICT").is_some_and(|value| value != "0"),
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

    /// The silence after which a case counts as hung, unless the user sets it: [`SILENCE_LIMIT`] plus ten times the sampling time
    /// that the user asked for, since a disturbed case is repeated. A day if the user asked for a number of operations or runs.
    pub(super) fn silence_limit(&self, arguments: &Arguments) -> Duration {
        if let Some(seconds) = self.case_seconds {
            return Duration::from_secs_f64(seconds);
        }
        if self.operations.is_some() || self.replications.is_some() {
            return Duration::from_secs(86_400);
        }
        let asked: f64 = [arguments.warm_up_seconds, arguments.measurement_seconds].iter().flatten().sum();
        SILENCE_LIMIT + Duration::from_secs_f64(10.0 * asked)
    }

    /// Whether the run measures time; otherwise it counts an event.
    pub fn measures_time(&self) -> bool {
        is_time_unit(&self.unit)
    }
}

/// Parses a comma-separated list of event names. A repeated name counts once.
///
/// # Errors
/// No event has one of the names.
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

/// Parses a time limit in seconds.
///
/// # Errors
/// The text is not a number from 0 to 86400, a day.
fn parse_time_limit(variable: &str, text: &str) -> Result<f64> {
    let number = text.parse().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    number.ok_or_else(|| Error::Usage(format!("{variable} is {text:?}: expected seconds, from 0 to 86400")))
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

// When a run began, and the limit after which none of its cases begins (`--time`, `SYSCOST_TIME`).

/// The beginning and the limit of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    pub(super) began: Instant,
    /// Time after which no case begins.
    pub(super) limit: Option<Duration>,
}

impl TimeLimit {
    /// The limit of a run that begins now.
    pub(super) fn starting_now(limit: Option<Duration>) -> Self {
        Self { began: Instant::now(), limit }
    }

    /// Whether no case may begin any more.
    pub(super) fn is_over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// Time until no case may begin any more; `None` without a limit.
    pub(super) fn left(&self) -> Option<Duration> {
        self.limit.map(|limit| limit.saturating_sub(self.began.elapsed()))
    }

    /// A sentence on how many of the planned cases had not begun when the limit was reached, if any.
    pub(super) fn not_begun_sentence(&self, planned: usize, begun: usize) -> Option<String> {
        let limit = self.limit.filter(|_| self.is_over() && begun < planned)?.as_secs_f64();
        let left = planned - begun;
        Some(format!(
            "the limit of {limit} s was over before {left} of {planned} cases had begun: a larger --time or SYSCOST_TIME measures them"
        ))
    }
}

// The directories of Criterion's files and of the records beside them.

/// `$CRITERION_HOME`, else `criterion` in Cargo's target directory, else `target/criterion` here. Criterion finds the
/// same place by asking Cargo for its metadata, which takes a second. The program `syscost`, which serves many crates, prefers
/// `target` in the current directory if runs are stored there.
pub fn criterion_home() -> PathBuf {
    let from_environment = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let target = || {
        from_environment("CARGO_TARGET_DIR")
            .or_else(|| {
                own_program_file()
                    .ok()
                    .and_then(|exe| local_target_directory(&exe).or_else(|| target_directory_of(&exe)))
            })
            .unwrap_or_else(|| PathBuf::from("target"))
    };
    from_environment("CRITERION_HOME").unwrap_or_else(|| target().join("criterion"))
}

/// `target` in the current directory, if this process is the program and not a bench, and runs are stored there.
fn local_target_directory(exe: &Path) -> Option<PathBuf> {
    let is_program = exe.file_name().is_some_and(|name| name == "syscost");
    let target = PathBuf::from("target");
    (is_program && target.join("criterion/syscost").is_dir()).then_some(target)
}

/// The target directory in which an executable was built: Cargo marks its root with `CACHEDIR.TAG`.
fn target_directory_of(exe: &Path) -> Option<PathBuf> {
    exe.ancestors().skip(1).find(|dir| dir.join("CACHEDIR.TAG").is_file()).map(Path::to_path_buf)
}

/// The directory for values of this unit: `home` itself for nanoseconds, `home-UNIT` beside it for others, so that no
/// tool compares a count with a time.
pub(super) fn home_for_unit(unit: &str, home: &Path) -> PathBuf {
    if unit == NANOSECONDS {
        return home.to_path_buf();
    }
    let name = home.file_name().map_or_else(|| "criterion".into(), |n| n.to_string_lossy().into_owned());
    home.with_file_name(format!("{name}-{unit}"))
}

/// The directory for values of this many copies: `home` itself for one, `home-N-copies` beside it for several.
pub(super) fn home_for_copies(copies: usize, home: &Path) -> PathBuf {
    if copies > 1 { home_for_unit(&format!("{copies}-copies"), home) } else { home.to_path_buf() }
}

/// This directory and the existing ones beside it for other units and for several copies.
pub fn homes_of_all_units(home: &Path) -> Vec<PathBuf> {
    let events = crate::platform::perf_event::EVENTS.iter().map(|event| event.name);
    use crate::record::quantity::{CALLGRIND, DISPLACED, INSTRUCTIONS};
    let others = events.chain([DISPLACED, INSTRUCTIONS, CALLGRIND]).map(|unit| home_for_unit(unit, home));
    let copies = (2..=crate::platform::cpu::initial_cpus().len()).map(|copies| home_for_copies(copies, home));
    let others = others.chain(copies).filter(|other| other.is_dir());
    std::iter::once(home.to_path_buf()).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_are_separated_by_commas_and_each_counts_once() {
        let found = parse_events("page-faults, context-switches,,page-faults").expect("known");
        assert_eq!(
            found.iter().map(|event| event.name).collect::<Vec<_>>(),
            ["page-faults", "context-switches"]
        );
        assert!(parse_events("").expect("none").is_empty());
        let sentence = parse_events("page-faults,unicorns").expect_err("unknown").to_string();
        assert!(sentence.contains("no event unicorns; there are cpu-cycles"), "{sentence}");
    }

    #[test]
    fn no_case_begins_after_the_limit_and_the_remaining_ones_are_counted() {
        let limits = [None, Some(Duration::MAX), Some(Duration::ZERO)];
        let [none, far, over] = limits.map(TimeLimit::starting_now);
        assert_eq!([none, far, over].map(|limit| limit.is_over()), [false, false, true]);
        assert_eq!(
            [none, far, over].map(|limit| limit.not_begun_sentence(5, 3).is_some()),
            [false, false, true]
        );
        assert!(
            over.not_begun_sentence(5, 3)
                .is_some_and(|message| message.contains("of 0 s was over before 2 of 5"))
        );
        assert_eq!(over.not_begun_sentence(5, 5), None);
    }

    #[test]
    fn a_test_binary_finds_its_target_directory() {
        let exe = std::env::current_exe().expect("an executable");
        let target = target_directory_of(&exe).expect("built by Cargo");
        assert!(exe.starts_with(&target), "{}", target.display());
    }

    #[test]
    fn several_copies_have_another_home_than_one() {
        let home = Path::new("target/criterion");
        assert_eq!(home_for_copies(1, home), home);
        assert_eq!(home_for_copies(16, home), Path::new("target/criterion-16-copies"));
    }

    #[test]
    fn other_units_have_another_home_than_nanoseconds() {
        let home = Path::new("target/criterion");
        assert_eq!(home_for_unit("ns", home), home);
        assert_eq!(home_for_unit("page-faults", home), Path::new("target/criterion-page-faults"));
    }
}
