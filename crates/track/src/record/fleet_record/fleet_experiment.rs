//! The TOML file that describes an experiment, and the jobs of the experiment.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use syscost_engine::record::soundness::{Sound, check_that};
use syscost_engine::record::store::check_name;
use syscost_platform::error::{Error, Result};
use syscost_platform::{inert, plain_file};

/// The largest file of an experiment, bytes: enough for a hundred thousand names of hosts.
const LIMIT: u64 = 8 << 20;
/// The most jobs of an experiment.
const MOST_JOBS: usize = 5_000_000;

/// An experiment. Three of its fields are required: `name`, `hosts`, `kernels`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name, from which the name of its directory of records is made.
    pub name: String,
    /// The hosts, as the scheduler names them; `node[01-16]` is sixteen.
    pub hosts: Vec<String>,
    /// Kernel releases as `uname -r` prints them, or their beginnings. Behind an `@` stand words that the command line must contain.
    /// The other kernels are compared with the first.
    pub kernels: Vec<String>,
    /// Regular expression over ids; without one, all cases.
    #[serde(default)]
    pub cases: Option<String>,
    /// Jobs for each host and kernel, each of which should be a boot of its own.
    #[serde(default = "default_count")]
    pub repeats: u32,
    /// Fresh processes in each job; the floor of their figures is taken.
    #[serde(default = "default_count")]
    pub processes: u32,
    /// How much time a case is given: `smoke`, `default` or `full`.
    #[serde(default = "default_scale")]
    pub scale: String,
    /// Minutes after which a job without a record counts as lost.
    #[serde(default = "default_minutes")]
    pub minutes: u32,
}

fn default_count() -> u32 {
    3
}

fn default_minutes() -> u32 {
    30
}

fn default_scale() -> String {
    "default".into()
}

/// One measurement of one kernel on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job<'a> {
    /// The host.
    pub host: &'a str,
    /// The kernel, as the experiment names it.
    pub kernel: &'a str,
    /// The number of the repeat, from 1.
    pub repeat: u32,
}

impl Experiment {
    /// Reads and checks the file of an experiment.
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or a field is missing, unknown or out of its range.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = plain_file::read(path, LIMIT)?;
        let text =
            String::from_utf8(bytes).map_err(|_| content_error(path, "the text", "UTF-8", "other bytes"))?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let mut experiment: Self = toml::from_str(text).map_err(|error| syntax_error(path, text, &error))?;
        let given = std::mem::take(&mut experiment.hosts);
        for entry in &given {
            let hosts = expand_hosts(entry).ok_or_else(|| {
                content_error(path, "hosts", "a name, or a range such as node[01-16]", entry)
            })?;
            experiment.hosts.extend(hosts);
        }
        experiment.check_fields().map_err(|fault| fault.into_error(path, REMEDY))?;
        Ok(experiment)
    }

    fn check_fields(&self) -> Sound {
        let name = |field: &str, text: &str| {
            check_that(check_name(text, field).is_ok(), field, NAME, inert::neutralize_line(text, 200))
        };
        name("name", &self.name)?;
        for (field, texts) in [("hosts", &self.hosts), ("kernels", &self.kernels)] {
            check_that(!texts.is_empty(), field, "at least one", "none")?;
            let mut known = BTreeSet::new();
            for text in texts {
                name(field, text)?;
                check_that(known.insert(text), field, "each once", format_args!("{text} twice"))?;
            }
        }
        let numbers = [
            ("repeats", self.repeats, 100),
            ("processes", self.processes, 100),
            ("minutes", self.minutes, 7 * 24 * 60),
        ];
        for (field, number, most) in numbers {
            let is_possible = (1..=most).contains(&number);
            check_that(is_possible, field, format_args!("a number from 1 to {most}"), number)?;
        }
        let is_scale = ["smoke", "default", "full"].contains(&self.scale.as_str());
        check_that(is_scale, "scale", "smoke, default or full", inert::neutralize_line(&self.scale, 200))?;
        let jobs = self.hosts.len() * self.kernels.len() * self.repeats as usize;
        let field = "hosts × kernels × repeats";
        check_that(jobs <= MOST_JOBS, field, format_args!("at most {MOST_JOBS}"), jobs)
    }

    /// All jobs, host by host. Each repeat of a host has all kernels, in reversed order in every other repeat, so that a drift of the
    /// host affects all kernels alike.
    pub fn jobs(&self) -> impl Iterator<Item = Job<'_>> {
        self.hosts.iter().flat_map(move |host| self.jobs_of_host(host))
    }

    /// The jobs of one host.
    pub fn jobs_of_host<'a>(&'a self, host: &'a str) -> impl Iterator<Item = Job<'a>> {
        let count = self.kernels.len();
        (1..=self.repeats).flat_map(move |repeat| {
            let at = move |at: usize| if repeat % 2 == 1 { at } else { count - 1 - at };
            (0..count).map(move |place| Job { host, kernel: &self.kernels[at(place)], repeat })
        })
    }

    /// The job of this host, kernel and repeat.
    ///
    /// # Errors
    /// The experiment has no such host or kernel, or fewer repeats.
    pub fn find_job(&self, host: &str, kernel: &str, repeat: u32) -> Result<Job<'_>> {
        let host = self.find_host(host)?;
        let kernel = self.find_name("kernel", &self.kernels, kernel)?;
        if !(1..=self.repeats).contains(&repeat) {
            let most = self.repeats;
            return Err(Error::Usage(format!(
                "the experiment {} has the repeats 1 to {most}, not {repeat}",
                self.name
            )));
        }
        Ok(Job { host, kernel, repeat })
    }

    /// The host of this name.
    ///
    /// # Errors
    /// The experiment has no host of this name.
    pub fn find_host(&self, name: &str) -> Result<&str> {
        self.find_name("host", &self.hosts, name)
    }

    fn find_name<'a>(&self, what: &str, names: &'a [String], name: &str) -> Result<&'a str> {
        names.iter().find(|known| *known == name).map(String::as_str).ok_or_else(|| {
            let known = inert::neutralize_line(&names.join(", "), 200);
            Error::Usage(format!("the experiment {} has no {what} {name:?}: it has {known}", self.name))
        })
    }

    /// The default directory of its records, beside its file at `path`.
    pub fn default_store_directory(&self, path: &Path) -> PathBuf {
        path.with_file_name(format!("{}.fleet", self.name))
    }
}

impl Job<'_> {
    /// Why a kernel with this release and command line is not the one that the job asks for; `None` if it is.
    pub fn kernel_mismatch(&self, release: &str, command_line: &str) -> Option<String> {
        let (wanted, words) = self.kernel.split_once('@').unwrap_or((self.kernel, ""));
        let is_release = release
            .strip_prefix(wanted)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+', '~', '_']));
        if !is_release {
            return Some(format!("{} asks for the kernel {wanted}, and {release} is running", self.host));
        }
        let given = || command_line.split_whitespace();
        let missing = words.split_whitespace().find(|word| !given().any(|known| is_same_word(known, word)));
        missing.map(|word| {
            format!(
                "{} asks for {word} on the kernel's command line, where there is: {command_line}",
                self.host
            )
        })
    }
}

/// Whether `known`, a word of the kernel's command line, is `word`. A fingerprint may have omitted its value: `root=…`.
fn is_same_word(known: &str, word: &str) -> bool {
    known.strip_suffix('…').map_or(known == word, |key| key.ends_with('=') && word.starts_with(key))
}

const REMEDY: &str = "`syscost help machines` shows an experiment with all its fields";
/// The valid names of a host, a kernel or an experiment, as errors describe them.
const NAME: &str = "a name that can be that of a file";

fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> Error {
    let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    content_error(path, &format!("line {line}"), "an experiment", error.message())
}

fn content_error(path: &Path, field: &str, expected: &str, found: &str) -> Error {
    Error::invalid_content(path, field, expected, inert::neutralize_line(found, 200), REMEDY)
}

// Ranges of hosts as schedulers write them: `node[01-04,07]` is five hosts.

/// The hosts that one entry stands for; `None` if its brackets contain no range of numbers, or a backward one.
fn expand_hosts(entry: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = entry.split_once('[') else { return Some(vec![entry.to_owned()]) };
    let (inner, after) = rest.split_once(']')?;
    let ranges = inner.split(',').map(expand_range).collect::<Option<Vec<_>>>()?;
    Some(ranges.into_iter().flatten().map(|number| format!("{before}{number}{after}")).collect())
}

/// The numbers of a range, with leading zeros up to the width of the first number: `08-10` is `08`, `09`, `10`.
fn expand_range(range: &str) -> Option<Vec<String>> {
    const MOST: u32 = 100_000;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let (from, to) = (number(first)?, number(last)?);
    let is_range = from <= to && to - from < MOST;
    is_range.then(|| (from..=to).map(|number| format!("{number:0width$}", width = first.len())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "name = \"fork\"\nhosts = [\"n[1-2]\", \"big\"]\nkernels = [\"6.1\", \"6.12@pti=on\"]\nrepeats = 2\n";

    fn parse(text: &str) -> Result<Experiment> {
        Experiment::parse(Path::new("fork.toml"), text)
    }

    #[test]
    fn the_order_of_kernels_is_reversed_in_every_other_repeat() {
        let experiment = parse(TEXT).unwrap();
        let jobs: Vec<_> = experiment.jobs().map(|job| (job.host, job.kernel, job.repeat)).collect();
        assert_eq!(jobs.len(), 3 * 2 * 2);
        let one = [("n1", "6.1", 1), ("n1", "6.12@pti=on", 1), ("n1", "6.12@pti=on", 2), ("n1", "6.1", 2)];
        assert_eq!(jobs[..4], one);
        assert_eq!((experiment.processes, experiment.minutes, &*experiment.scale), (3, 30, "default"));
    }

    #[test]
    fn a_wrong_field_is_named_with_what_was_expected() {
        let cases = [
            ("repeats = 2", "repeats = 0", "repeats: expected a number from 1 to 100, found 0"),
            ("repeats = 2", "repeat = 2", "line 4: expected an experiment, found unknown field `repeat`"),
            ("\"big\"", "\"n1\"", "hosts: expected each once, found n1 twice"),
            ("\"big\"", "\"../big\"", "hosts: expected a name that can be that of a file, found ../big"),
            ("n[1-2]", "n[2-1]", "hosts: expected a name, or a range"),
            ("name = \"fork\"\n", "", "missing field `name`"),
            ("repeats = 2", "scale = \"huge\"", "scale: expected smoke, default or full, found huge"),
            ("[\"n[1-2]\", \"big\"]", "[]", "hosts: expected at least one, found none"),
        ];
        for (before, after, said) in cases {
            assert!(TEXT.contains(before));
            let error = parse(&TEXT.replace(before, after)).expect_err(after).to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_kernel_that_does_not_match_the_job_is_reported() {
        let job = |kernel| Job { host: "n1", kernel, repeat: 1 };
        assert_eq!(job("6.1").kernel_mismatch("6.1.0-47-cloud-amd64", ""), None);
        assert_eq!(job("6.1.0-47-cloud-amd64").kernel_mismatch("6.1.0-47-cloud-amd64", ""), None);
        assert!(job("6.1").kernel_mismatch("6.12.9", "").unwrap().contains("6.12.9 is running"));
        assert_eq!(job("6.12@pti=on quiet").kernel_mismatch("6.12.9", "quiet ro pti=on"), None);
        assert_eq!(
            job("6.12@root=/dev/vda").kernel_mismatch("6.12.9", "root=… ro"),
            None,
            "left out of the fingerprint"
        );
        assert!(
            job("6.12@pti=on").kernel_mismatch("6.12.9", "ro pti=only").unwrap().contains("asks for pti=on")
        );
    }

    #[test]
    fn a_job_is_found_by_its_names() {
        let experiment = parse(TEXT).unwrap();
        assert_eq!(experiment.find_job("big", "6.1", 2).unwrap().host, "big");
        for (host, kernel, repeat, said) in
            [("n9", "6.1", 1, "no host \"n9\""), ("n1", "5", 1, "no kernel"), ("n1", "6.1", 3, "not 3")]
        {
            assert!(experiment.find_job(host, kernel, repeat).unwrap_err().to_string().contains(said));
        }
    }

    #[test]
    fn a_range_keeps_its_leading_zeros() {
        assert_eq!(expand_hosts("n[08-10,2]x").unwrap(), ["n08x", "n09x", "n10x", "n2x"]);
        assert_eq!(expand_hosts("host").unwrap(), ["host"]);
    }

    #[test]
    fn invalid_ranges_of_hosts_are_refused() {
        for wrong in ["n[", "n[]", "n[3-1]", "n[a-b]", "n[1-+2]", "n[0-4294967295]", "n[1-2"] {
            assert_eq!(expand_hosts(wrong), None, "{wrong}");
        }
    }
}
