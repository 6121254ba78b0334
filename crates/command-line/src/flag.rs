//! Flags that several commands share, each declared once.

use crate::error::{Error, Result};
use crate::page;
use crate::platform::cpu::cpu_class;
use crate::platform::host_address::resolve_host;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use syscost_analysis::record::paired::Paired;
use syscost_analysis::study::exact_count::{CountChange, changes_of_pairs};
use syscost_build::revision::Recipe;
use syscost_engine::Group;
use syscost_engine::case::Scale;
use syscost_engine::driver::{Arguments, Options, criterion_home, layout};
use syscost_engine::record::quantity::{CALLGRIND, INSTRUCTIONS};
use syscost_engine::render::table::Layout;
use syscost_engine::study::drawn_curve::bytes_of;

/// The cases to take.
#[derive(clap::Args)]
pub struct Filter {
    /// Regular expression over ids such as `call/u64/3`; without one, all cases
    filter: Option<String>,
    /// Take FILTER as a whole id and not as a regular expression
    #[arg(long, requires = "filter")]
    exact: bool,
}

impl Filter {
    /// The cases that match this regular expression; without one, all.
    pub fn new(filter: Option<String>) -> Self {
        Self { filter, exact: false }
    }

    /// Appends the filter to a Criterion command line. A `--` precedes it only if it looks like a flag, because the harness
    /// may append flags of its own.
    pub fn append_to(&self, mut line: Vec<OsString>) -> Vec<OsString> {
        let looks_like_a_flag = self.filter.as_ref().is_some_and(|filter| filter.starts_with('-'));
        line.extend(self.exact.then(|| "--exact".into()));
        line.extend(looks_like_a_flag.then(|| "--".into()));
        line.extend(self.filter.iter().map(OsString::from));
        line
    }

    /// Whether a filter was given.
    pub fn is_given(&self) -> bool {
        self.filter.is_some()
    }

    /// A function that tells whether an id matches, by the harness's rule.
    ///
    /// # Errors
    /// The filter is no regular expression.
    pub fn matcher(&self) -> Result<impl Fn(&str) -> bool + use<>> {
        Arguments::parse(self.append_to(vec!["--bench".into()]))?.matcher()
    }

    /// The error for a filter that no case matches; `None` without a filter.
    pub fn no_match_error(&self) -> Option<Error> {
        let filter = self.filter.as_ref()?;
        Some(Error::Usage(format!("no case matches {filter:?}; `syscost list` prints them all")))
    }
}

/// What to build of a revision.
#[derive(Clone, Default, clap::Args)]
pub struct BuildFlags {
    /// Bench target to build of a revision [default: the only one, or `suite`]
    #[arg(long, value_name = "NAME")]
    bench: Option<String>,
    /// Features of the package to build a revision with, by commas
    #[arg(long, value_name = "FEATURES")]
    features: Vec<String>,
    /// Build a revision with all features of the package
    #[arg(long)]
    all_features: bool,
    /// Build a revision without the default features of the package
    #[arg(long)]
    no_default_features: bool,
}

impl BuildFlags {
    /// How a revision is built.
    pub fn recipe(&self, is_aligned: bool) -> Recipe {
        Recipe { bench: self.bench.clone(), features: self.feature_words(), is_aligned }
    }

    /// The flags as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let bench = self.bench.iter().flat_map(|name| ["--bench".to_owned(), name.clone()]);
        bench.chain(self.feature_words()).collect()
    }

    fn feature_words(&self) -> Vec<String> {
        let named = self.features.iter().flat_map(|names| ["--features", names]);
        let all = self.all_features.then_some("--all-features");
        let bare = self.no_default_features.then_some("--no-default-features");
        named.chain(all).chain(bare).map(str::to_owned).collect()
    }

    /// Checks that a flag is given only if there is a revision to build.
    ///
    /// # Errors
    /// A flag is given, but there is no revision to build.
    pub fn check_revision(&self, is_there: bool) -> Result<()> {
        match self.words().first() {
            Some(flag) if !is_there => Err(Error::Usage(format!(
                "{flag} says how a revision is built, and no side is a revision: name one by its flag, or leave {flag} out"
            ))),
            _ => Ok(()),
        }
    }
}

/// How to measure.
#[derive(Default, clap::Args)]
pub struct Measuring {
    /// How much time to take: smoke (seconds, numbers not worth keeping), default, full
    #[arg(long, value_parser = scale_parser())]
    scale: Option<Scale>,
    /// What to count: ns, or a perf event such as page-faults
    #[arg(long, value_name = "EVENT")]
    measure: Option<String>,
    /// Count the instructions of an operation in user space, and not its time: exact, and without a PMU. By single steps, or by
    /// callgrind, which is faster and needs Valgrind
    #[arg(long, value_name = "HOW", value_parser = counting_parser(), num_args = 0..=1, require_equals = true,
        default_missing_value = "steps", conflicts_with = "measure")]
    instructions: Option<&'static str>,
    /// Where the files of the file cases are made: a directory on the disk, or on the mounted remote file system,
    /// that is to be measured [default: $SYSCOST_DIR, or the temporary directory, or a disk where that is memory]
    #[arg(long = "dir", value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The CPU to measure on: its number, or a class of a hybrid processor, as `syscost doctor` names them [default: $SYSCOST_CPU,
    /// or the highest of the fastest class that is free]
    #[arg(long, value_name = "CPU")]
    cpu: Option<String>,
    /// The machine at the other end of network cases: its name or its address. `syscost peer` is started there by ssh
    #[arg(long, value_name = "[USER@]HOST")]
    peer: Option<String>,
    /// What starts `syscost peer` on that machine, in place of ssh: `docker exec -i NAME syscost peer`
    #[arg(long, value_name = "CMD")]
    peer_command: Option<String>,
}

/// A parser of the way to count instructions. It returns the name of the unit.
fn counting_parser() -> impl TypedValueParser<Value = &'static str> {
    PossibleValuesParser::new(["steps", "callgrind"])
        .map(|how| if how == "steps" { INSTRUCTIONS } else { CALLGRIND })
}

/// A parser of scales, which a shell can complete.
pub fn scale_parser() -> impl TypedValueParser<Value = Scale> {
    let unknown = || Error::Usage("expected smoke, default or full".into());
    PossibleValuesParser::new(["smoke", "default", "full"])
        .try_map(move |name| Scale::named(&name).ok_or_else(unknown))
}

/// Parses a duration in seconds.
///
/// # Errors
/// The text is no number from 0.01 to the seconds of a day.
pub fn parse_seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds from 0.01 to a day".into()),
    }
}

/// Parses a size in bytes.
///
/// # Errors
/// The text is no number with a unit.
pub fn parse_size(text: &str) -> std::result::Result<u64, String> {
    bytes_of(text).ok_or_else(|| "expected a number and its unit, as in 512MiB or 1.5GiB".into())
}

impl Measuring {
    /// The flags with this scale; all others come from the environment.
    pub fn at_scale(scale: Scale) -> Self {
        Self { scale: Some(scale), ..Self::default() }
    }

    /// The options by the flags, or by the environment variables for flags that are not given. `known` are the groups of
    /// this program.
    ///
    /// # Errors
    /// A variable's value is wrong, or the peer has no address.
    pub fn options(&self, known: &'static [Group]) -> Result<Options> {
        if let Some(choice) = &self.cpu {
            cpu_class::fix_choice(choice)?;
        }
        let environment = Options::from_environment()?;
        let scale = self.scale.unwrap_or(environment.scale);
        let counted = self.instructions.map(str::to_owned);
        let unit = counted.or_else(|| self.measure.clone()).unwrap_or(environment.unit);
        let directory = self.directory.clone().or_else(|| environment.directory.clone());
        if let Some(host) = &self.peer {
            resolve_host(host).map_err(|why| Error::Usage(format!("--peer {host}: {why}")))?;
        }
        let peer = self.peer.clone().or_else(|| environment.peer.clone());
        let peer_command = self.peer_command.clone().or_else(|| environment.peer_command.clone());
        Ok(Options { scale, unit, directory, peer, peer_command, known, ..environment })
    }
}

/// How many allocations a case may add.
#[derive(clap::Args)]
pub struct AllocationLimit {
    /// Fail if a case makes more than N allocations an iteration more, counted exactly, 0 for any; the bench declares
    /// `syscost::alloc::Counting` as its allocator
    #[arg(long, value_name = "N")]
    max_more_allocations: Option<u32>,
}

impl AllocationLimit {
    /// Whether allocations are compared.
    pub fn is_given(&self) -> bool {
        self.max_more_allocations.is_some()
    }

    /// The changes that exceed the limit; none without a limit.
    ///
    /// # Errors
    /// A limit is given, but no case has a count on both sides.
    pub fn exceeded(&self, mut changes: Vec<CountChange>) -> Result<Vec<CountChange>> {
        let Some(limit) = self.max_more_allocations else { return Ok(Vec::new()) };
        if changes.is_empty() {
            return Err(Error::Missing(
                "no case has its allocations counted on both sides: the benches must declare `syscost::alloc::Counting` as their \
                 global allocator (`syscost help counts`)"
                    .into(),
            ));
        }
        changes.retain(|change| change.least_growth() > f64::from(limit));
        Ok(changes)
    }
}

/// How much more of a count a case may have: `NAME=N` or `NAME=P%`.
#[derive(Clone, Debug, PartialEq)]
pub struct CountLimit {
    name: String,
    /// A number, or a share of what it was.
    limit: std::result::Result<f64, f64>,
}

impl CountLimit {
    /// Parses it.
    ///
    /// # Errors
    /// It has no name, or its limit is no number of at least 0.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::Usage(format!(
                "{text:?} is no limit of a count: expected a name and a number or a share, such as system-calls=0 or \
                 peak-memory-kib=2%"
            ))
        };
        let (name, limit) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        let number = |text: &str| {
            let number = text.trim().parse::<f64>().ok();
            number.filter(|n| (0.0..f64::INFINITY).contains(n)).ok_or_else(wrong)
        };
        let limit = match limit.strip_suffix('%') {
            Some(share) => Err(number(share)? / 100.0),
            None => Ok(number(limit)?),
        };
        Ok(Self { name: name.trim().to_owned(), limit })
    }

    /// The changes of this count that exceed the limit.
    ///
    /// # Errors
    /// No case has this count on both sides.
    pub fn exceeded(&self, paired: &Paired) -> Result<Vec<CountChange>> {
        let mut changes = changes_of_pairs(&self.name, paired);
        if changes.is_empty() {
            let known = paired.cases.iter().flat_map(|case| case.counts.iter().flatten());
            let names: BTreeSet<_> = known.map(|count| count.name.as_str()).collect();
            let names = Vec::from_iter(names).join(", ");
            return Err(Error::Missing(format!(
                "no case has {} counted on both sides; counted here: {names}",
                self.name
            )));
        }
        changes.retain(|change| {
            change.least_growth() > self.limit.unwrap_or_else(|share| share * change.old.high)
        });
        Ok(changes)
    }
}

/// Where runs are kept.
#[derive(clap::Args)]
pub struct Home {
    /// Directory of Criterion's files, with the runs in `syscost/` below it [default: $CRITERION_HOME, or
    /// `criterion` in Cargo's target directory]
    #[arg(long = "home", value_name = "DIR")]
    pub given: Option<PathBuf>,
}

impl Home {
    /// The path of the directory. It is absolute if the current directory is known.
    pub fn directory(&self) -> PathBuf {
        let home = self.given.clone().unwrap_or_else(criterion_home);
        // The homes of other units lie beside the last component of the path, which a relative path may lack.
        std::path::absolute(&home).unwrap_or(home)
    }
}

/// Format of a table.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
#[allow(missing_docs)] // clap would print them as help
pub enum Format {
    Terminal,
    Markdown,
    Json,
    Csv,
}

/// Rows of a comparison.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Only {
    /// Faster or slower
    Changed,
    /// All: `ab` counts those that are the same where there are more than 40 rows
    All,
}

/// Whether the output is for a program.
#[derive(clap::Args)]
pub struct Form {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Form {
    /// Writes JSON if `--json` is given, rows if the output is a pipe, and otherwise text for people.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write<T: Serialize>(
        &self,
        json: impl FnOnce() -> T,
        rows: impl FnOnce() -> String,
        screen: impl FnOnce(Layout) -> String,
    ) -> Result<()> {
        match page::is_piped() {
            _ if self.json => page::write_json(&json()),
            true => page::write(&rows()),
            false => page::write(&screen(layout())),
        }
    }
}

/// The arguments of a command parsed from this line, for tests.
pub fn parse_line<A: clap::Args>(line: &str) -> std::result::Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("syscost").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(line.split_ascii_whitespace())?)
}
