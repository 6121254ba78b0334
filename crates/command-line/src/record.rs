//! `syscost record`: measures the same cases in several fresh processes and writes one portable file. The unit of a
//! comparison is the process, and a single process does not show how far two processes differ.

use crate::error::{Error, Result};
use crate::flag::{Filter, Home, Measuring};
use crate::page;
use crate::platform::signal;
use crate::restore::warn_of_outstanding;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use syscost_analysis::record::bundle::{Bundle, write_new};
use syscost_engine::Group;
use syscost_engine::driver::{Arguments, Options, Session};
use syscost_engine::exit::Exit;
use syscost_engine::pair::side::case_ids;
use syscost_engine::record::quantity::fresh_run_name;
use syscost_engine::record::store::{Store, check_creatable, check_name};
use syscost_engine::record::{Outcome, Record};
use syscost_engine::study::standout::nothing_measured;

/// The most failed cases that are named one by one; the rest are counted.
const MOST_NAMED: usize = 10;

/// Measure in several fresh processes, and record them in one file
///
/// Measures the matching cases several times over, every time in fresh processes, and writes one file that a
/// comparison needs no other for. Neither Criterion's files nor earlier runs are touched. Interrupted, it keeps
/// the processes that were finished. In a pipe: the file, the numbers of cases measured, of processes, and of
/// cases skipped and failed, and the file's size in bytes, between tabs.
#[derive(clap::Args)]
#[command(
    after_help = "What is not given is taken from SYSCOST_SCALE and SYSCOST_MEASURE, as with `cargo bench`."
)]
pub struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Name of the record [default: the moment at which it began]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// One more record of this session, NAME.1, NAME.2 and so on: NAME then means all of them
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "output"])]
    session: Option<String>,
    /// How many times to measure every case, each time in a fresh process
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    processes: u32,
    /// Make one record after another of the session until N minutes are over. Ended or interrupted, it goes on when it is started again
    #[arg(long, value_name = "N", requires = "session", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    minutes: Option<u32>,
    #[command(flatten)]
    measuring: Measuring,
    /// Write to this file, and not among the records that `syscost baseline list` names
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    home: Home,
}

/// Measures these cases of `groups` now and keeps them in a record named by the time. Returns its path, or `None` if a signal
/// arrived before the first process had finished.
///
/// # Errors
/// No case matches, an option is wrong, or the record cannot be written.
pub fn measure_record(
    filter: &Filter,
    measuring: &Measuring,
    home: &Home,
    processes: u32,
    groups: &'static [Group],
) -> Result<Option<PathBuf>> {
    let (began, session) = fresh_run_name();
    let path = Store::at(&home.directory()).record_path(&session)?;
    check_creatable(&path)?;
    let records: Vec<_> = begin_session(filter, measuring, home, &session, processes, groups)?.collect();
    if records.is_empty() {
        return Ok(None);
    }
    write_new(&path, &Bundle::from_records(&session, began, records)?)?;
    page::write_to_stderr(&format!("kept as {}", path.display()));
    Ok(Some(path))
}

/// Runs `syscost record` over these groups.
///
/// # Errors
/// No case matches, an option is wrong, or no record can be written.
pub fn run(args: &Args, groups: &'static [Group]) -> Result<ExitCode> {
    let ends = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * u64::from(minutes)));
    let mut code = ExitCode::SUCCESS;
    loop {
        // If a case fails in one record, the session goes on, and its exit code reports the failure.
        let (last, has_numbers) = record_once(args, groups)?;
        code = if last == ExitCode::SUCCESS { code } else { last };
        if ends.is_none_or(|ends| Instant::now() >= ends) || signal::pending().is_some() || !has_numbers {
            return Ok(code);
        }
    }
}

/// Makes one record. Returns its exit code, and whether anything was measured.
fn record_once(args: &Args, groups: &'static [Group]) -> Result<(ExitCode, bool)> {
    let measured = args.measure(groups)?;
    let finished = measured.as_ref().map_or(0, |(_, bundle)| bundle.records.len());
    let (code, has_numbers) = match measured {
        Some((target, bundle)) => target.write(bundle)?,
        None => (ExitCode::SUCCESS, false),
    };
    Ok((interrupted_exit(finished, args.processes).unwrap_or(code), has_numbers))
}

impl Args {
    /// Parses these words as the flags for one more process of a session.
    ///
    /// # Errors
    /// A word is no flag of this command, or is a flag that the session sets itself; or no case matches.
    pub fn for_session(name: &str, home: &Path, words: &[String], groups: &'static [Group]) -> Result<Self> {
        #[derive(clap::Parser)]
        #[command(name = "syscost record", disable_help_flag = true)]
        struct Alone {
            #[command(flatten)]
            args: Args,
        }
        let own = ["--session", name, "--processes", "1"].map(OsString::from);
        let own = own.into_iter().chain(["--home".into(), home.into()]);
        let line = std::iter::once("syscost record".into()).chain(own).chain(words.iter().map(Into::into));
        let parsed = <Alone as clap::Parser>::try_parse_from(line);
        let args = parsed.map_err(|e| Error::Usage(bad_words_message(words, &e.to_string())))?.args;
        if args.minutes.is_some() {
            return Err(Error::Usage(bad_words_message(words, "--minutes would make further records")));
        }
        let is_meant = args.filter.matcher()?;
        if case_ids(groups).iter().any(|id| is_meant(id)) {
            args.measuring.options(groups).map(|_| args)
        } else {
            Err(args.filter.no_match_error().unwrap_or_else(|| Error::Usage("there is no case".into())))
        }
    }

    /// Measures one process. Returns the name of its record, or `None` if a signal arrived before the process had finished.
    ///
    /// # Errors
    /// The measurement cannot start, or the record cannot be written.
    pub fn record_next_process(&self, groups: &'static [Group]) -> Result<Option<String>> {
        let Some((mut target, mut bundle)) = self.measure(groups)? else { return Ok(None) };
        target.write_to_path(&mut bundle)?;
        Sum::from_records(&bundle.records).warn_of_failures();
        Ok(Some(target.name))
    }

    /// Measures all processes; `None` if a signal arrived before the first had finished.
    fn measure(&self, groups: &'static [Group]) -> Result<Option<(Target, Bundle)>> {
        let (began, session) = fresh_run_name();
        let target = Target::from_args(self, &session)?;
        let Self { filter, measuring, home, processes, .. } = self;
        let processes = begin_session(filter, measuring, home, &session, *processes, groups)?;
        check_creatable(&target.path)?;
        let records: Vec<_> = processes.collect();
        if records.is_empty() {
            return Ok(None);
        }
        let bundle = Bundle::from_records(&target.name, began, records)?;
        Ok(Some((target, bundle)))
    }
}

/// The message that a session cannot give these words to this command, with the first line of the parser's message.
fn bad_words_message(words: &[String], said: &str) -> String {
    let first = said.lines().next().unwrap_or_default();
    format!(
        "`{}` is for `syscost record`: {}; --session, --processes, --minutes and --home are those of the session itself",
        words.join(" "),
        first.trim_start_matches("error: ")
    )
}

/// An iterator over the processes of the session. Each advance measures in one process.
fn begin_session(
    filter: &Filter,
    measuring: &Measuring,
    home: &Home,
    session: &str,
    processes: u32,
    groups: &'static [Group],
) -> Result<Session<'static>> {
    let arguments = Arguments::parse(filter.append_to(vec!["--bench".into()]))?;
    let options =
        Options { session: Some(session.into()), home: home.given.clone(), ..measuring.options(groups)? };
    warn_of_outstanding(&home.directory());
    Session::plan(groups, &arguments, &options, processes as usize, false)
}

/// After a signal, prints how many processes were finished and returns the exit code; `None` without a signal.
fn interrupted_exit(finished: usize, wanted: u32) -> Option<ExitCode> {
    let signal = signal::pending()?;
    let kept = match finished {
        0 => "no process had finished, and nothing is recorded".to_owned(),
        _ => format!("{finished} of {wanted} processes had finished, and are recorded"),
    };
    page::warn(&format!("interrupted by {signal}: {kept}"));
    Some(Exit::Signal(signal).into())
}

/// The place for the record, and the places to try if it cannot be written there.
struct Target {
    name: String,
    path: PathBuf,
    instead: Vec<PathBuf>,
    /// The store, and the session that the record continues.
    session: Option<(Store, String)>,
}

impl Target {
    fn from_args(args: &Args, session: &str) -> Result<Self> {
        let store = Store::at(&args.home.directory());
        let stem = args.output.as_ref().and_then(|file| file.file_stem()?.to_str());
        let stem = stem.filter(|stem| check_name(stem, "record").is_ok());
        let next = args.session.as_deref().map(|name| store.next_session_name(name)).transpose()?;
        let name = next.as_deref().or(args.name.as_deref()).or(stem).unwrap_or(session).to_owned();
        let kept = store.record_path(&name)?;
        let path = args.output.clone().unwrap_or(kept);
        let instead =
            vec![store.record_path(session)?, std::env::temp_dir().join(format!("{session}.syscost"))];
        let session = args.session.clone().map(|name| (store, name));
        Ok(Self { name, path, instead, session })
    }

    /// Writes the record to the first place where that succeeds, because it cannot be measured again, and prints its path.
    /// Returns the exit code, and whether anything was measured.
    fn write(mut self, mut bundle: Bundle) -> Result<(ExitCode, bool)> {
        let mut refused = false;
        for path in std::iter::once(self.path.clone()).chain(self.instead.clone()) {
            let written = if path == self.path {
                self.write_to_path(&mut bundle)
            } else {
                write_new(&path, &bundle).map(|size| (path, size))
            };
            match written {
                Err(error) => {
                    page::warn(&error);
                    refused = true;
                }
                Ok((path, size)) => {
                    let sum = Sum::from_records(&bundle.records);
                    page::write(&sum.render(&path, size))?;
                    sum.warn_of_failures();
                    let without = nothing_measured(&bundle.records);
                    without.iter().for_each(|without| page::warn(&without.sentence()));
                    let code = Exit::failed_if(refused || !sum.failed.is_empty() || without.is_some());
                    return Ok((code.into(), sum.measured > 0));
                }
            }
        }
        page::warn(&"it can be written nowhere: what was measured is lost");
        Ok((ExitCode::FAILURE, false))
    }

    /// Writes the record to its path. If another process has taken its number in the session meanwhile, it gets the next
    /// number.
    ///
    /// # Errors
    /// The name is taken, or the file cannot be written.
    fn write_to_path(&mut self, bundle: &mut Bundle) -> Result<(PathBuf, u64)> {
        loop {
            match (write_new(&self.path, bundle), &self.session) {
                (Err(_), Some((store, session))) if self.path.exists() => {
                    self.name = store.next_session_name(session)?;
                    self.path = store.record_path(&self.name)?;
                    bundle.head.name.clone_from(&self.name);
                }
                (written, _) => return written.map(|size| (self.path.clone(), size)),
            }
        }
    }
}

/// The numbers of cases by outcome, summed over all processes.
struct Sum {
    measured: usize,
    skipped: usize,
    processes: usize,
    /// For the id of each failed case, the number of processes in which it failed, and the first message.
    failed: BTreeMap<String, (usize, String)>,
}

impl Sum {
    fn from_records(records: &[Record]) -> Self {
        let mut failed = BTreeMap::new();
        let mut measured: BTreeMap<&str, bool> = BTreeMap::new();
        for (_, case) in records.iter().flat_map(Record::cases) {
            *measured.entry(&case.id).or_default() |= case.measured().is_some();
            if let Outcome::Failed(sentence) = &case.outcome {
                failed.entry(case.id.clone()).or_insert_with(|| (0, sentence.clone())).0 += 1;
            }
        }
        let skipped =
            measured.iter().filter(|(id, measured)| !**measured && !failed.contains_key(**id)).count();
        let measured = measured.values().filter(|measured| **measured).count();
        Self { measured, skipped, processes: records.len(), failed }
    }

    fn render(&self, path: &Path, size: u64) -> String {
        let Self { measured, skipped, processes, failed } = self;
        let (path, failed) = (path.display(), failed.len());
        if page::is_piped() {
            let counts = [measured, processes, skipped, &failed].map(ToString::to_string);
            return page::tabbed_rows(&[
                [vec![path.to_string()], counts.to_vec(), vec![size.to_string()]].concat()
            ]);
        }
        let (cases, kib) = (page::count_with_noun(*measured, "case", "cases"), size.div_ceil(1024));
        let processes = page::count_with_noun(*processes, "process", "processes");
        format!("{path}\n{cases} × {processes}, {skipped} skipped, {failed} failed, {kib} KiB\n")
    }

    fn warn_of_failures(&self) {
        for (id, (times, sentence)) in self.failed.iter().take(MOST_NAMED) {
            page::warn(&format!("{id} failed in {times} of {} processes: {sentence}", self.processes));
        }
        if let Some(more) = self.failed.len().checked_sub(MOST_NAMED).filter(|&more| more > 0) {
            page::warn(&format!("and {more} cases more failed"));
        }
    }
}
