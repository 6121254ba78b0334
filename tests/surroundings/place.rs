//! A directory with everything that a run touches, the run in it, and its end.

use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use syscost_platform::testing::print_skipped;
use tempfile::TempDir;

/// The program `syscost`. In the tests of a tool it is the one beside the tool, which starts it: a whole `cargo test` builds both.
pub const SYSCOST: &str = {
    let tools = [
        (option_env!("CARGO_BIN_EXE_syscost-kernels"), "-kernels"),
        (option_env!("CARGO_BIN_EXE_syscost-monitor"), "-monitor"),
        (option_env!("CARGO_BIN_EXE_syscost-track"), "-track"),
    ];
    match (option_env!("CARGO_BIN_EXE_syscost"), tools) {
        (Some(path), _) => path,
        (
            None,
            [(Some(tool), suffix), _, _] | [_, (Some(tool), suffix), _] | [_, _, (Some(tool), suffix)],
        ) => tool.split_at(tool.len() - suffix.len()).0,
        _ => panic!("Cargo names no program for this test"),
    }
};
/// The time limit for a run or a wait. On a machine at rest none takes a tenth of it.
pub const PATIENCE: Duration = Duration::from_secs(240);
/// A filter for two groups with three cases: the smallest run in which one group can end and the other continue.
pub const TWO_GROUPS: &str = "known_work|call/u64/3";

/// The lock of the tests that run something: simultaneous runs would disturb one another, and a disturbed case fails its test.
static ALONE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program of the examples, beside the directory of this test: `target/PROFILE/examples/NAME`.
pub fn example(name: &str) -> Option<PathBuf> {
    let deps = std::env::current_exe().unwrap();
    let built = deps.parent()?.parent()?.join("examples").join(name);
    if !built.is_file() {
        print_skipped(&format!("the example `{name}` was not built; `cargo test` builds it"));
        return None;
    }
    Some(built)
}

/// A directory with Criterion's home, a temporary directory and the printed output, open to any user.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.temporary()).unwrap();
        for directory in [place.0.path(), &place.temporary()] {
            std::fs::set_permissions(directory, PermissionsExt::from_mode(0o777)).unwrap();
        }
        place
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn home(&self) -> PathBuf {
        self.0.path().join("criterion")
    }

    pub fn temporary(&self) -> PathBuf {
        self.0.path().join("temporary")
    }

    /// A program in this place, without the variables that the user who runs the tests may have set.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = listening(program.as_ref());
        for variable in ["MEASURE", "DIR", "PREDICTIONS", "GROUP", "PIPE", "CLOCK", "TIME", "STRICT"] {
            command.env_remove(format!("SYSCOST_{variable}"));
        }
        command.env_remove("COLUMNS").env("SYSCOST_SCALE", "smoke");
        command.env("CRITERION_HOME", self.home()).env("TMPDIR", self.temporary());
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// `syscost run` with these words.
    pub fn run(&self, words: &[&str]) -> Command {
        self.syscost(&[&["run"], words].concat())
    }

    /// `syscost` with these words.
    pub fn syscost(&self, words: &[&str]) -> Command {
        let mut command = self.program(SYSCOST);
        command.args(words);
        command
    }

    /// `syscost run` with these words, started by another program such as `taskset -c 0`.
    pub fn run_by(&self, starter: &[&str], words: &[&str]) -> Command {
        let mut command = self.program(starter[0]);
        command.args(&starter[1..]).args([SYSCOST, "run"]).args(words);
        command
    }

    /// `syscost run` with these words, under a limit of the shell such as `-n 16`.
    pub fn run_under(&self, limit: &str, words: &[&str]) -> Command {
        self.run_by(&["sh", "-c", &format!("ulimit {limit} && exec \"$@\""), "sh"], words)
    }

    /// A shell script in this place.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let script = self.0.path().join(name);
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        script
    }

    /// Starts the command, with both output streams in files, so that they can be read while it runs.
    pub fn begin(&self, mut command: Command) -> Running<'_> {
        self.come_first();
        let file = |name| std::fs::File::create(self.0.path().join(name)).unwrap();
        command.stdout(file("output")).stderr(file("error")).process_group(0);
        Running { place: self, child: command.spawn().unwrap() }
    }

    pub fn end(&self, command: Command) -> Ended {
        let _alone = alone();
        self.end_alone(command)
    }

    /// As [`Place::end`], for a caller that already holds the lock.
    pub fn end_alone(&self, command: Command) -> Ended {
        self.begin(command).end()
    }

    /// Runs the command, and repeats it if other tasks used the CPU, which fails a case whatever is tested.
    /// `None` on a machine that is never at rest.
    pub fn at_rest(&self, command: impl Fn() -> Command) -> Option<Ended> {
        for _ in 0..4 {
            let ended = self.end(command());
            if !ended.was_disturbed() {
                return Some(ended);
            }
        }
        print_skipped("others use this machine too much for a case to be measured");
        None
    }

    /// As [`Place::at_rest`], for a command that must succeed.
    pub fn succeeds(&self, command: impl Fn() -> Command) -> Option<Ended> {
        let ended = self.at_rest(command)?;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        Some(ended)
    }

    /// Gives this thread and its later children a nice value of -15, if that is allowed.
    fn come_first(&self) {
        let thread = nix::unistd::gettid().to_string();
        let _ = self.program("renice").args(["-n", "-15", "-p", &thread]).output();
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.0.path().join(name)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Every file below the home whose name ends with `ending`.
    pub fn files(&self, ending: &str) -> Vec<PathBuf> {
        files(&self.home(), ending)
    }

    /// The newest run as it was stored.
    pub fn record(&self) -> Value {
        let file = files(&self.home().join("syscost/runs"), ".json").pop().expect("a run was stored");
        let report =
            self.program(SYSCOST).arg("report").arg(file).args(["--format", "json"]).output().unwrap();
        serde_json::from_slice(&report.stdout).unwrap()
    }

    /// Asserts that no file is half-written, and that no process and no scratch file is left.
    pub fn is_tidy(&self) {
        all_parse(&self.home());
        let left: Vec<_> = crate::process::of(self).into_iter().map(crate::process::command_line).collect();
        assert!(left.is_empty(), "processes are left: {left:?}");
        let left: Vec<_> = std::fs::read_dir(self.temporary()).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A command of the program with default actions for SIGHUP and SIGINT. A shell in the background and `nohup` ignore these signals;
/// a run leaves them ignored, and the tests send them.
fn listening(program: &OsStr) -> Command {
    const HANGUP_AND_INTERRUPT: u64 = 0b11;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    if u64::from_str_radix(ignored.trim(), 16).unwrap() & HANGUP_AND_INTERRUPT == 0 {
        return Command::new(program);
    }
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=HUP,INT").arg(program);
    command
}

pub fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Asserts that every file of ours can be parsed, and that none is a leftover of a killed writer.
pub fn all_parse(directory: &Path) {
    for file in files(directory, "") {
        assert!(!file.file_name().unwrap().to_str().unwrap().starts_with('.'), "{} is left", file.display());
    }
    for file in files(directory, ".syscost") {
        if let Err(error) = syscost_analysis::record::bundle::read(&file) {
            panic!("{error}");
        }
    }
    for file in files(directory, ".json") {
        let bytes = std::fs::read(&file).unwrap();
        // A baseline has a line for each of its runs.
        let values: Result<Vec<Value>, _> =
            serde_json::Deserializer::from_slice(&bytes).into_iter().collect();
        assert!(values.as_ref().is_ok_and(|values| !values.is_empty()), "{}: {values:?}", file.display());
    }
}

pub struct Running<'a> {
    place: &'a Place,
    pub child: Child,
}

impl Running<'_> {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Waits until the program has printed these words.
    pub fn until_it_says(&mut self, words: &str) {
        let begun = Instant::now();
        while !self.place.read("output").contains(words) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && begun.elapsed() < PATIENCE, "{ended:?}: {}", self.place.read("error"));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills the program, and no other process.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn end(mut self) -> Ended {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                crate::process::kill_group(self.pid());
                panic!("it hangs: {} {}", self.place.read("output"), self.place.read("error"));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let ended =
            Ended { code: status.code(), output: self.place.read("output"), error: self.place.read("error") };
        for words in ["panicked at src", "RUST_BACKTRACE", "stack backtrace", "overflowed its stack"] {
            assert!(!ended.error.contains(words), "{ended:?}");
        }
        ended
    }
}

/// The end of a run: its exit code and its output.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub output: String,
    pub error: String,
}

impl Ended {
    /// Asserts that the run ended with this code and printed these words.
    pub fn says(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for words in words {
            let said = self.output.contains(words) || self.error.contains(words);
            assert!(said || self.undisturbed().contains(words), "{words}: {self:?}");
        }
    }

    /// The output, with disturbed cases counted as measured, since disturbances are not the subject of the tests.
    fn undisturbed(&self) -> String {
        self.output.lines().map(|line| undisturbed(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }

    /// Asserts that the program refused in one sentence with these words, before it measured anything.
    pub fn refuses(&self, words: &[&str]) {
        self.says(2, words);
        assert!(self.output.is_empty() && self.error.starts_with("syscost: "), "{self:?}");
    }

    fn was_disturbed(&self) -> bool {
        const WORDS: [&str; 6] = [
            "other tasks had",
            "the hypervisor took",
            "time does not grow",
            "time is not proportional",
            "costs no more than the same loop",
            "the slope of small ones",
        ];
        let failed = self.output.lines().filter(|line| line.starts_with("FAILED"));
        failed.flat_map(|line| WORDS.iter().filter(|words| line.contains(**words))).next().is_some()
    }
}

/// Turns `2 measured, 0 skipped, 1 disturbed, 0 failed` into `3 measured, 0 skipped, 0 failed`; `None` for any other line.
fn undisturbed(line: &str) -> Option<String> {
    let [measured, skipped, disturbed, failed] =
        line.trim().split(", ").collect::<Vec<_>>().try_into().ok()?;
    let count = |part: &str, word: &str| part.strip_suffix(word)?.trim().parse::<usize>().ok();
    let sum = count(measured, "measured")? + count(disturbed, "disturbed")?;
    Some(format!("{sum} measured, {skipped}, {failed}"))
}

#[test]
fn a_disturbed_case_counts_as_measured_where_a_test_counts() {
    let line = "2 measured, 0 skipped, 1 disturbed, 0 failed";
    assert_eq!(undisturbed(line).as_deref(), Some("3 measured, 0 skipped, 0 failed"));
    assert_eq!(undisturbed("3 measured, 0 skipped, 0 failed"), None);
}

/// Waits until `ask` returns a value, and returns it. Panics with `otherwise` after [`PATIENCE`].
pub fn waited<T>(otherwise: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{otherwise}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `is_so` returns true. Panics with `otherwise` after [`PATIENCE`].
pub fn until(otherwise: &str, is_so: impl Fn() -> bool) {
    waited(otherwise, || is_so().then_some(()));
}
