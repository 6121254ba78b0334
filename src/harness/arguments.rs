//! Criterion's command line, read a second time. Criterion parses it for itself and keeps what it found
//! private; what the harness must know (which cases, how many samples, which baseline) is read here, with
//! the same names and the same meaning.

use crate::{Error, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;

/// What the process is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Measure and save.
    Measure,
    /// Every case once, claims on, nothing saved: `--test`, or started without `--bench`.
    Test,
    /// Print the ids.
    List,
    /// Leave it to Criterion: `--profile-time`, `--load-baseline`.
    Foreign,
}

/// What of Criterion's command line the harness must know.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// What to do.
    pub mode: Mode,
    /// Regular expression over ids; with `exact` a whole id.
    pub filter: Option<String>,
    /// Whether the filter is a whole id.
    pub exact: bool,
    /// `--ignored`: no case of ours is ever ignored.
    pub none: bool,
    /// `--sample-size`.
    pub samples: Option<usize>,
    /// Where results are saved; `None` for `--discard-baseline` or a comparison.
    pub save: Option<String>,
    /// What results are compared with.
    pub compare: Option<String>,
    /// Nothing may be saved, neither by Criterion nor by us.
    pub unsaved: bool,
    /// Whether a missing baseline is no error.
    pub lenient: bool,
    /// Whether Criterion's own report is wanted on the terminal.
    pub loud: bool,
    /// `--output-format bencher`.
    pub bencher: bool,
    /// All of it, to be passed on.
    pub raw: Vec<OsString>,
}

/// Options of Criterion that take a value, and flags, that need no reading but must be understood.
const VALUES: [&str; 9] = [
    "color",
    "format",
    "warm-up-time",
    "measurement-time",
    "nresamples",
    "noise-threshold",
    "confidence-level",
    "significance-level",
    "plotting-backend",
];
const FLAGS: [&str; 5] = ["noplot", "bench", "nocapture", "show-output", "include-ignored"];

impl Arguments {
    /// Those of this process.
    pub fn of_process() -> Result<Self> {
        Self::parse(std::env::args_os().skip(1).collect())
    }

    /// Reads a command line without its program name.
    pub fn parse(raw: Vec<OsString>) -> Result<Self> {
        let matches = command().try_get_matches_from(&raw);
        let matches = matches.map_err(|e| Error::Usage(e.to_string().trim_end().to_owned()))?;
        if matches.get_flag("quick") {
            return Err(Error::Usage(
                "--quick takes two samples, which no claim can be built on; use SYSCOST_SCALE=smoke".into(),
            ));
        }
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let compare = text("baseline").or_else(|| text("baseline-lenient"));
        let discard = matches.get_flag("discard-baseline") || compare.is_some();
        Ok(Self {
            mode: mode(&matches),
            filter: text("FILTER"),
            exact: matches.get_flag("exact"),
            none: matches.get_flag("ignored"),
            samples: matches.get_one::<usize>("sample-size").copied(),
            save: (!discard).then(|| text("save-baseline").unwrap_or_else(|| "base".into())),
            unsaved: false,
            lenient: text("baseline-lenient").is_some(),
            loud: matches.get_flag("verbose") || compare.is_some(),
            compare,
            bencher: text("output-format").is_some_and(|f| f == "bencher"),
            raw,
        })
    }

    /// The same, with nothing saved: for a disk that is full.
    pub fn without_saving(&self) -> Self {
        let mut raw = self.raw.clone();
        while let Some(at) = raw.iter().position(|word| word == "--save-baseline" || word == "-s") {
            raw.drain(at..(at + 2).min(raw.len()));
        }
        raw.retain(|word| !word.to_string_lossy().starts_with("--save-baseline="));
        if self.compare.is_none() {
            raw.insert(0, "--discard-baseline".into()); // a `--` may stand further on
        }
        Self { raw, save: None, unsaved: true, ..self.clone() }
    }

    /// Whether a case of this id is asked for.
    pub fn matcher(&self) -> Result<impl Fn(&str) -> bool + use<>> {
        let (exact, none) = (self.exact, self.none);
        let filter = self.filter.clone();
        let pattern = filter.as_ref().filter(|_| !exact).map(|f| regex::Regex::new(f)).transpose();
        let pattern = pattern.map_err(|e| {
            Error::Usage(format!(
                "the filter is not a regular expression: {e}; `--exact ID` takes an id as it is"
            ))
        })?;
        Ok(move |id: &str| match (&pattern, &filter) {
            _ if none => false,
            (Some(pattern), _) => pattern.is_match(id),
            (None, Some(filter)) => id == filter,
            (None, None) => true,
        })
    }
}

fn mode(matches: &ArgMatches) -> Mode {
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

fn command() -> Command {
    let value = |name: &'static str| Arg::new(name).long(name);
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    Command::new("a bench target of syscost")
        .no_binary_name(true)
        .about("Measures with Criterion; takes Criterion's options. SYSCOST_SCALE=smoke|default|full.")
        .arg(Arg::new("FILTER").index(1).help("Regular expression over ids such as call/u64/3"))
        .args(VALUES.map(value))
        .args(FLAGS.map(flag))
        .args(["discard-baseline", "list", "ignored", "exact", "quick", "test", "quiet"].map(flag))
        .arg(flag("verbose").short('v'))
        .arg(value("save-baseline").short('s'))
        .arg(value("baseline").short('b'))
        .args(["baseline-lenient", "load-baseline", "profile-time", "output-format"].map(value))
        .arg(value("sample-size").value_parser(clap::value_parser!(usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Arguments {
        Arguments::parse(line.split_ascii_whitespace().map(OsString::from).collect()).expect("a good line")
    }

    #[test]
    fn the_mode_is_criterions() {
        assert_eq!(parsed("--bench").mode, Mode::Measure);
        assert_eq!(parsed("").mode, Mode::Test);
        assert_eq!(parsed("--bench --test").mode, Mode::Test);
        assert_eq!(parsed("--bench --list --format terse").mode, Mode::List);
        assert_eq!(parsed("--bench --profile-time 5").mode, Mode::Foreign);
    }

    #[test]
    fn a_plain_run_saves_under_criterions_name() {
        assert_eq!(parsed("--bench").save.as_deref(), Some("base"));
        assert_eq!(parsed("--bench -s a").save.as_deref(), Some("a"));
        assert_eq!(parsed("--bench -b a").save, None);
        assert_eq!(parsed("--bench -b a").compare.as_deref(), Some("a"));
    }

    #[test]
    fn a_run_that_may_not_save_says_so_to_criterion() {
        for line in ["--bench -s a", "--bench --save-baseline a", "--bench --save-baseline=a", "--bench"] {
            assert_eq!(parsed(line).without_saving().raw, ["--discard-baseline", "--bench"], "{line}");
        }
        assert_eq!(parsed("--bench -b a").without_saving().raw, ["--bench", "-b", "a"]);
    }

    #[test]
    fn filters_are_expressions_unless_exact() {
        assert!(parsed("u64/.$ --bench").matcher().expect("regex")("call/u64/3"));
        assert!(!parsed("call/u64 --exact").matcher().expect("id")("call/u64/3"));
        assert!(!parsed("--ignored").matcher().expect("none")("call/u64/3"));
        let error = parsed("( --bench").matcher().err().expect("unbalanced").to_string();
        assert!(error.contains("regular expression"), "{error}");
    }

    #[test]
    fn an_unknown_option_is_refused_in_a_sentence() {
        let error = Arguments::parse(vec!["--bogus".into()]).expect_err("unknown").to_string();
        assert!(error.contains("--bogus"), "{error}");
    }
}
