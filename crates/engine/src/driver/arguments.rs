//! Criterion's command line. Criterion parses it too but keeps the result private, so the options that this crate needs
//! (which cases, how many samples, which baseline) are read here, with the same names and the same meaning.

use crate::error::{Error, Result};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;

/// What a bench target does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Measure and save.
    Measure,
    /// Run every case briefly, check its claims and save nothing: `--test`, or started without `--bench`.
    Test,
    /// Print the ids.
    List,
    /// Modes that only Criterion has: `--profile-time`, `--load-baseline`.
    Foreign,
}

/// The options of Criterion's command line that this crate needs.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// What the process does.
    pub mode: Mode,
    /// Regular expression over ids, or with `exact` one id.
    pub filter: Option<String>,
    /// `--exact`: whether `filter` and `skip` hold whole ids.
    pub exact: bool,
    /// `--ignored`: selects no case, because no case can be marked as ignored.
    pub none: bool,
    /// `--skip`: leaves out each case whose id contains one of these texts, or with `exact` equals one of them.
    pub skip: Vec<String>,
    /// `--sample-size`: number of samples of a case.
    pub samples: Option<usize>,
    /// `--measurement-time`, seconds.
    pub measurement_seconds: Option<f64>,
    /// `--warm-up-time`, seconds.
    pub warm_up_seconds: Option<f64>,
    /// Name of the baseline to save; `None` for `--discard-baseline` or a comparison.
    pub save: Option<String>,
    /// Name of the baseline to compare with.
    pub compare: Option<String>,
    /// Whether neither Criterion nor this crate may save anything.
    pub unsaved: bool,
    /// `--baseline-lenient`: whether a case without a baseline is measured and not compared.
    pub lenient: bool,
    /// Whether to show Criterion's own report: `--verbose`, or a comparison.
    pub loud: bool,
    /// `--output-format bencher`.
    pub bencher: bool,
    /// `--all`: whether a whole run ends with every table in place of one screen.
    pub all: bool,
    /// `--quick`: measure at smoke scale. Criterion's two samples would be too few for any claim.
    pub quick: bool,
    /// `--instructions`: count the instructions of an operation in place of its time, by `steps` or by `callgrind`.
    pub instructions: Option<String>,
    /// `-P`: number of processes that measure each case at the same time.
    pub copies: usize,
    /// Options by long name, and the filter, that are passed on to Criterion.
    criterion: Vec<(String, Option<OsString>)>,
}

/// Options of Criterion that take one of these words.
const WORDS: [(&str, &[&str]); 4] = [
    ("color", &["auto", "always", "never"]),
    ("format", &["pretty", "terse", "json", "junit"]),
    ("output-format", &["criterion", "bencher"]),
    ("plotting-backend", &["gnuplot", "plotters"]),
];
/// Options that take a number strictly between two bounds. Criterion would panic outside them, in the measuring process.
const NUMBERS: [(&str, f64, f64); 6] = [
    ("warm-up-time", 0.0, 1e6),
    ("measurement-time", 0.0, 1e6),
    ("noise-threshold", 0.0, f64::INFINITY),
    ("confidence-level", 0.0, 1.0),
    ("significance-level", 0.0, 1.0),
    ("profile-time", 0.99, 1e6),
];
/// Directories that Criterion makes beside those of the baselines.
const CRITERION_DIRECTORIES: [&str; 3] = ["new", "change", "report"];
const FLAGS: [&str; 5] = ["noplot", "bench", "nocapture", "show-output", "include-ignored"];
/// Options that Criterion lacks or interprets differently; those of libtest are in [`LIBTEST_FLAGS`].
const OWN_OPTIONS: [&str; 8] =
    ["all", "copies", "format", "instructions", "quick", "report-time", "terse", "unstable"];
/// Flags of the harness of `cargo test` (libtest) and of cargo-nextest, which Criterion does not know. Scripts and editors
/// pass them to every target, benches too. They are accepted and ignored, because cases never run in parallel or in another
/// order, and output is not captured.
const LIBTEST_FLAGS: [&str; 6] =
    ["shuffle", "ensure-time", "exclude-should-panic", "force-run-in-process", "fail-fast", "no-capture"];
/// Options of the same harnesses that take a value. Only `--skip` has an effect; see [`LIBTEST_FLAGS`].
const LIBTEST_OPTIONS: [&str; 4] = ["test-threads", "shuffle-seed", "logfile", "skip"];

impl Arguments {
    /// The arguments of this process.
    ///
    /// # Errors
    /// As [`Arguments::parse`].
    pub fn from_process() -> Result<Self> {
        Self::parse(std::env::args_os().skip(1).collect())
    }

    /// The text for `--help`, if this process is asked for it.
    pub fn process_help() -> Option<String> {
        requested_help(std::env::args_os().skip(1))
    }

    /// Parses a command line without the program name.
    ///
    /// # Errors
    /// An unknown option, a bad value, a baseline name that cannot be a directory.
    pub fn parse(raw: Vec<OsString>) -> Result<Self> {
        let mut command = criterion_command();
        let matches = command.try_get_matches_from_mut(raw);
        let matches = matches.map_err(|error| Error::Usage(error_sentence(&error)))?;
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        for name in ["save-baseline", "baseline", "baseline-lenient"].into_iter().filter_map(text) {
            check_baseline_name(&name)?;
        }
        let compare = text("baseline").or_else(|| text("baseline-lenient"));
        let discard = matches.get_flag("discard-baseline") || compare.is_some();
        Ok(Self {
            mode: mode_from_matches(&matches),
            filter: text("FILTER"),
            exact: matches.get_flag("exact"),
            none: matches.get_flag("ignored"),
            skip: matches.get_many::<String>("skip").into_iter().flatten().cloned().collect(),
            samples: matches.get_one::<usize>("sample-size").copied(),
            measurement_seconds: matches.get_one::<f64>("measurement-time").copied(),
            warm_up_seconds: matches.get_one::<f64>("warm-up-time").copied(),
            save: (!discard).then(|| text("save-baseline").unwrap_or_else(|| "base".into())),
            unsaved: false,
            lenient: text("baseline-lenient").is_some(),
            loud: matches.get_flag("verbose") || compare.is_some(),
            compare,
            bencher: text("output-format").is_some_and(|f| f == "bencher"),
            all: matches.get_flag("all"),
            quick: matches.get_flag("quick"),
            instructions: text("instructions"),
            copies: matches.get_one::<usize>("copies").copied().unwrap_or(1),
            criterion: criterion_options(&command, &matches),
        })
    }

    /// A copy of these arguments with which neither Criterion nor this crate saves anything.
    pub fn without_saving(&self) -> Self {
        let mut criterion = self.criterion.clone();
        criterion.retain(|(name, _)| name != "save-baseline" && name != "discard-baseline");
        if self.compare.is_none() {
            criterion.push(("discard-baseline".into(), None));
        }
        Self { criterion, save: None, unsaved: true, ..self.clone() }
    }

    /// The command line of a measuring process: `--baseline` becomes lenient, because Criterion would panic at a missing
    /// baseline, which the driver has reported already.
    pub fn for_measuring_process(&self) -> Vec<OsString> {
        let (filter, options): (Vec<_>, Vec<_>) =
            self.criterion.iter().partition(|(name, _)| name == "FILTER");
        let word = |(name, value): &(String, Option<OsString>)| {
            let is_lenient = name == "baseline" && self.mode != Mode::Foreign;
            let mut word = OsString::from(format!("--{name}{}", if is_lenient { "-lenient" } else { "" }));
            value.iter().for_each(|value| word.extend(["=".as_ref(), value.as_os_str()]));
            word
        };
        let filter = filter.into_iter().flat_map(|(_, filter)| filter);
        let filter = filter.flat_map(|filter| ["--".into(), filter.clone()]);
        options.into_iter().map(word).chain(filter).collect()
    }

    /// A predicate over ids: whether the case is selected.
    ///
    /// # Errors
    /// The filter is not a regular expression.
    pub fn matcher(&self) -> Result<impl Fn(&str) -> bool + use<>> {
        let (exact, none, skip) = (self.exact, self.none, self.skip.clone());
        let filter = self.filter.clone();
        let pattern = filter.as_ref().filter(|_| !exact).map(|f| regex::Regex::new(f)).transpose();
        let pattern = pattern.map_err(|e| {
            Error::Usage(format!(
                "the filter is not a regular expression: {e}; `--exact ID` takes an id as it is"
            ))
        })?;
        let is_skipped = move |id: &str| {
            skip.iter().any(|text| if exact { id == text } else { id.contains(text.as_str()) })
        };
        Ok(move |id: &str| match (&pattern, &filter) {
            _ if none || is_skipped(id) => false,
            (Some(pattern), _) => pattern.is_match(id),
            (None, Some(filter)) => id == filter,
            (None, None) => true,
        })
    }
}

/// The options on the command line that Criterion knows, by long name, with their values.
fn criterion_options(command: &Command, matches: &ArgMatches) -> Vec<(String, Option<OsString>)> {
    let is_foreign =
        |id: &str| [&OWN_OPTIONS[..], &LIBTEST_FLAGS, &LIBTEST_OPTIONS].iter().any(|ids| ids.contains(&id));
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let arguments = command.get_arguments().filter(|argument| {
        let id = argument.get_id().as_str();
        !is_foreign(id) && is_given(id)
    });
    let option = |argument: &Arg| {
        let id = argument.get_id().as_str();
        let value = matches.get_raw(id).and_then(|mut values| values.next()).map(OsString::from);
        (id.to_owned(), value.filter(|_| argument.get_action().takes_values()))
    };
    arguments.map(option).collect()
}

fn requested_help(raw: impl Iterator<Item = OsString>) -> Option<String> {
    let answer = criterion_command().try_get_matches_from(raw).err()?;
    (answer.kind() == ErrorKind::DisplayHelp).then(|| answer.to_string().trim_end().to_owned())
}

/// clap's error as a sentence. Its advice to pass an unknown option as a value is dropped, because no id looks like an option.
fn error_sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.trim_start_matches("error: ").lines();
    let mut kept: Vec<&str> = lines.filter(|line| !line.trim().starts_with("tip: to pass ")).collect();
    kept.dedup_by(|a, b| a.is_empty() && b.is_empty());
    kept.join("\n").trim_end().to_owned()
}

/// Refuses a baseline name that Criterion, which does not check names, would mix with its own directories, or that is no file name.
fn check_baseline_name(name: &str) -> Result<()> {
    if CRITERION_DIRECTORIES.contains(&name) {
        return Err(Error::Usage(format!(
            "`{name}` cannot name a baseline: Criterion keeps its own files there"
        )));
    }
    crate::record::store::json_file_name(name, "baseline").map(drop)
}

/// A parser of numbers strictly between two bounds.
fn number_between(
    least: f64,
    most: f64,
) -> impl Fn(&str) -> std::result::Result<f64, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|&number: &f64| number > least && number < most);
        number.ok_or_else(|| format!("expected a number above {least} and below {most}"))
    }
}

fn number_at_least(
    least: usize,
) -> impl Fn(&str) -> std::result::Result<usize, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|&number: &usize| number >= least);
        number.ok_or_else(|| format!("expected a whole number of {least} or more"))
    }
}

/// The mode of a bench target by its flags; without `--bench`, Cargo runs the target as a test.
fn mode_from_matches(matches: &ArgMatches) -> Mode {
    let foreign = matches.contains_id("profile-time") || matches.contains_id("load-baseline");
    if matches.get_flag("list") {
        Mode::List
    } else if matches.get_flag("test") || !matches.get_flag("bench") {
        Mode::Test
    } else if foreign {
        Mode::Foreign
    } else {
        Mode::Measure
    }
}

fn criterion_command() -> Command {
    let value = |name: &'static str| Arg::new(name).long(name);
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    Command::new("cargo bench --")
        .no_binary_name(true)
        .override_usage("cargo bench -- [OPTIONS] [FILTER]")
        .about("Measures with Criterion, and takes Criterion's options")
        .after_help(AFTER_HELP)
        .arg(Arg::new("FILTER").index(1))
        .args(
            WORDS.map(|(name, words)| {
                value(name).value_parser(clap::builder::PossibleValuesParser::new(words))
            }),
        )
        .args(NUMBERS.map(|(name, least, most)| value(name).value_parser(number_between(least, most))))
        .args(FLAGS.map(flag))
        .args(["all", "discard-baseline", "list", "ignored", "exact", "quick", "test"].map(flag))
        .args(LIBTEST_FLAGS.map(flag))
        .args(LIBTEST_OPTIONS.map(|name| value(name).action(ArgAction::Append)))
        .arg(value("report-time").num_args(0..=1).require_equals(true))
        .arg(Arg::new("unstable").short('Z').action(ArgAction::Append))
        .arg(
            value("instructions")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("steps")
                .value_parser(clap::builder::PossibleValuesParser::new(["steps", "callgrind"])),
        )
        .arg(flag("quiet"))
        .arg(Arg::new("terse").short('q').action(ArgAction::SetTrue))
        .arg(flag("verbose").short('v'))
        .arg(value("save-baseline").short('s'))
        .arg(value("baseline").short('b'))
        .arg(value("baseline-lenient"))
        .arg(value("load-baseline").requires("baseline"))
        .arg(value("copies").short('P').value_parser(number_at_least(1)))
        .arg(value("sample-size").value_parser(number_at_least(10)))
        .arg(value("nresamples").value_parser(number_at_least(1)))
        .mut_arg("color", |color| color.short('c'))
        .mut_arg("noplot", |noplot| noplot.short('n'))
        .mut_args(describe_argument)
}

fn describe_argument(argument: Arg) -> Arg {
    match HELP.iter().find(|(name, ..)| argument.get_id() == name) {
        None => argument.hide(true),
        Some((_, "", help)) => argument.help(help),
        Some((_, value, help)) => argument.value_name(value).help(help),
    }
}

#[cfg(test)]
mod tests;

// The texts of the help for `cargo bench --`.

/// Options in the help: name, placeholder of the value, description. All others are hidden.
const HELP: [(&str, &str, &str); 17] = [
    ("FILTER", "FILTER", "Regular expression over ids such as call/u64/3"),
    ("all", "", "End a whole run with every table, and not with one screen"),
    ("exact", "", "Take FILTER as a whole id"),
    (
        "instructions",
        "HOW",
        "Count the instructions of an operation, and not its time: exact, no PMU; =callgrind is faster",
    ),
    ("copies", "N", "Measure each case by N processes at the same time, each on a CPU of its own"),
    ("skip", "TEXT", "Leave out the cases whose ids contain this text"),
    ("save-baseline", "NAME", "Save what is measured under this name [default: base]"),
    ("baseline", "NAME", "Compare with what was saved under this name, which every case must have"),
    ("baseline-lenient", "NAME", "The same, and cases that it lacks are only measured"),
    ("test", "", "Run every case briefly, claims on, and save nothing"),
    ("list", "", "Print the ids"),
    ("quick", "", "Measure at smoke scale: brief, numbers not worth keeping"),
    ("sample-size", "N", "Samples a case, at least 10"),
    ("measurement-time", "SECONDS", "How long to sample a case"),
    ("warm-up-time", "SECONDS", "How long to run a case before it is sampled"),
    ("output-format", "FORMAT", "Criterion's own lines, or those that benchmark trackers read"),
    ("verbose", "", "Show Criterion's own report as well"),
];
/// Below the options: the variables that a run reads.
const AFTER_HELP: &str = "\
Environment:
  SYSCOST_SCALE        smoke (brief, numbers not worth keeping), default or full
  SYSCOST_TIME         limit, seconds: no case begins after it; none otherwise; with less than 0.15 s a case a whole run
                       measures its headline cases alone
  SYSCOST_CASE_TIME    seconds after which a case that has not ended is killed, so that the next one begins [300]
  SYSCOST_STRICT       1: exit code 3 if a case is disturbed, unwitnessed or not settled
  SYSCOST_MEASURE      ns, user-instructions (as --instructions), callgrind-instructions, or a perf event to count instead
  SYSCOST_EVENTS       perf events to count beside the time, such as page-faults,context-switches
  SYSCOST_CPU          the CPU to measure on: a number, or a class of a hybrid processor [the fastest class]
  SYSCOST_DIR          where the files of the file cases are made [temporary directory; a disk if that is memory]
  SYSCOST_PREDICTIONS  a TOML file of your own predictions
  SYSCOST_PEER         the machine at the other end of network cases, where `syscost peer` is started by ssh
  SYSCOST_PEER_COMMAND what starts `syscost peer` there instead of ssh
  SYSCOST_CLOCK        monotonic-raw: the kernel's clock instead of the processor's counter";
