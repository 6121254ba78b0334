//! Tests of `scripts/quiet` on an invented machine: it changes settings, restores them however it ends, and remembers them.
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use syscost_platform::testing::print_skipped;

const POLICY_0: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
const POLICY_1: &str = "sys/devices/system/cpu/cpufreq/policy1/scaling_governor";
const BOOST: &str = "sys/devices/system/cpu/cpufreq/boost";
const NO_TURBO: &str = "sys/devices/system/cpu/intel_pstate/no_turbo";
const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const NUMA: &str = "proc/sys/kernel/numa_balancing";
const WATCHDOG: &str = "proc/sys/kernel/nmi_watchdog";
const BOOT: &str = "proc/sys/kernel/random/boot_id";
const STATE: &str = "run/syscost-quiet.state";

/// The settings: file, value before, and quiet value.
const SETTINGS: [(&str, &str, &str); 5] = [
    (POLICY_0, "powersave", "performance"),
    (POLICY_1, "schedutil", "performance"),
    (BOOST, "1", "0"),
    (NUMA, "1", "0"),
    (WATCHDOG, "1", "0"),
];

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(machine.0.path().join("run")).unwrap();
        machine.write(BOOT, "first");
        SETTINGS.iter().for_each(|(file, before, _)| machine.write(file, before));
        machine
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.path().join(file)).unwrap().trim().to_owned()
    }

    fn has(&self, file: &str) -> bool {
        self.0.path().join(file).exists()
    }

    /// The script with these arguments, in the root of this machine.
    fn script(&self, arguments: &[&str]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/quiet");
        // An ignored signal is inherited, and the shell cannot trap it: SIGHUP under `nohup`, SIGINT in the background.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,INT,TERM").arg(script);
        command.args(arguments).current_dir(self.0.path());
        command.env("SYSCOST_SYS_ROOT", self.0.path()).env_remove("XDG_RUNTIME_DIR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn quiet(&self, arguments: &[&str]) -> Output {
        self.script(arguments).output().unwrap()
    }

    /// Starts the script with a long command. Returns once the command has begun and the machine is quiet.
    fn quiet_and_waiting(&self) -> Child {
        let child = self.script(&["sh", "-c", "touch begun; exec sleep 40"]).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        while !self.has("begun") {
            assert!(Instant::now() < patience, "the command never began");
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    }

    fn assert_quiet(&self) {
        SETTINGS.iter().for_each(|(file, _, quiet)| assert_eq!(&self.read(file), quiet, "{file}"));
    }

    fn assert_as_before(&self) {
        SETTINGS.iter().for_each(|(file, before, _)| assert_eq!(&self.read(file), before, "{file}"));
        assert!(!self.has(STATE), "the state is still there");
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn signalled(machine: &Machine, signal: Signal) -> Output {
    let child = machine.quiet_and_waiting();
    machine.assert_quiet();
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn the_command_runs_on_a_quiet_machine_and_all_is_put_back() {
    let machine = Machine::new();
    let output = machine.quiet(&["cat", POLICY_0, POLICY_1, BOOST, NUMA, WATCHDOG]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "performance\nperformance\n0\n0\n0\n");
    machine.assert_as_before();
}

#[test]
fn it_says_what_it_changed() {
    let machine = Machine::new();
    let said = said(&machine.quiet(&["true"]));
    assert!(said.contains("policy0/scaling_governor: powersave → performance"), "{said}");
    assert!(said.contains("policy0/scaling_governor: back to powersave"), "{said}");
}

#[test]
fn the_exit_code_of_a_failing_command_is_passed_on() {
    let machine = Machine::new();
    assert_eq!(machine.quiet(&["sh", "-c", "exit 7"]).status.code(), Some(7));
    machine.assert_as_before();
    assert_eq!(machine.quiet(&["./no-such-command"]).status.code(), Some(127));
    machine.assert_as_before();
}

#[test]
fn the_command_alone_comes_first_if_it_may() {
    let machine = Machine::new();
    let niceness = || String::from_utf8(Command::new("nice").output().unwrap().stdout).unwrap();
    let before = niceness();
    let output = machine.quiet(&["--nice", "nice"]);
    assert!(output.status.success(), "{}", said(&output));
    let reached = String::from_utf8_lossy(&output.stdout).into_owned();
    let sentence = format!("niceness of the command: {} → -20", before.trim());
    if said(&output).contains("stays") {
        println!("skipped in part: this user may not lower a niceness");
        assert_eq!(reached, before);
    } else {
        assert!(reached.trim() == "-20" && said(&output).contains(&sentence), "{}", said(&output));
    }
    assert_eq!(niceness(), before);
    assert_eq!(machine.quiet(&["nice"]).stdout, before.as_bytes(), "only where it is asked for");
    machine.assert_as_before();
    assert_eq!(machine.quiet(&["--nice"]).status.code(), Some(2));
}

#[test]
fn the_command_keeps_its_standard_input() {
    let machine = Machine::new();
    let input = std::fs::File::open(machine.0.path().join(BOOT)).unwrap();
    let output = machine.script(&["cat"]).stdin(input).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "first\n");
}

#[test]
fn an_interruption_ends_the_command_and_puts_all_back() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let machine = Machine::new();
        let begun = Instant::now();
        let output = signalled(&machine, signal);
        assert_eq!(output.status.code(), Some(128 + signal as i32), "{signal}: {}", said(&output));
        assert!(begun.elapsed() < Duration::from_secs(30), "{signal}: the command was not interrupted");
        machine.assert_as_before();
    }
}

#[test]
fn a_killed_run_must_be_undone_before_the_next_one() {
    let machine = Machine::new();
    signalled_without_waiting_for_the_command(&machine);
    let refused = machine.quiet(&["touch", "ran"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("scaling_governor: was powersave"), "{}", said(&refused));
    assert!(said(&refused).contains("scripts/quiet --restore") && !machine.has("ran"));
    machine.assert_quiet();
    assert!(machine.quiet(&["--restore"]).status.success());
    machine.assert_as_before();
    assert!(machine.quiet(&["true"]).status.success());
}

/// Kills the script, so that it can do nothing more. Its command lives on, and holds the pipes open.
fn signalled_without_waiting_for_the_command(machine: &Machine) {
    let mut child = machine.quiet_and_waiting();
    child.kill().unwrap();
    child.wait().unwrap();
    machine.assert_quiet();
}

#[test]
fn the_state_of_an_earlier_boot_is_discarded() {
    let machine = Machine::new();
    signalled_without_waiting_for_the_command(&machine);
    machine.write(BOOT, "second");
    machine.write(POLICY_0, "ondemand");
    assert!(machine.quiet(&["--restore"]).status.success());
    assert_eq!(machine.read(POLICY_0), "ondemand");
    assert!(!machine.has(STATE));
}

#[test]
fn a_second_run_is_refused_while_the_first_lasts() {
    let machine = Machine::new();
    let mut first = machine.quiet_and_waiting();
    for arguments in [["--", "true"].as_slice(), &["--restore"]] {
        let second = machine.quiet(arguments);
        assert_eq!(second.status.code(), Some(2), "{arguments:?}: {}", said(&second));
        machine.assert_quiet();
    }
    kill(Pid::from_raw(i32::try_from(first.id()).unwrap()), Signal::SIGTERM).unwrap();
    first.wait().unwrap();
    machine.assert_as_before();
}

#[test]
fn a_state_file_cannot_name_a_file_that_is_no_setting() {
    let machine = Machine::new();
    let other = machine.0.path().join("other");
    machine.write("other", "untouched");
    machine.write(STATE, &format!("boot\tfirst\nwas\t{}\tchanged", other.display()));
    assert!(machine.quiet(&["--restore"]).status.success());
    assert_eq!(machine.read("other"), "untouched");
}

#[test]
fn nothing_to_put_back_is_no_error() {
    let output = Machine::new().quiet(&["--restore"]);
    assert!(output.status.success() && said(&output).contains("nothing to put back"));
}

#[test]
fn the_choice_in_brackets_is_the_value_that_is_put_back() {
    let machine = Machine::new();
    machine.write(HUGE_PAGES, "[always] madvise never");
    machine.quiet(&["true"]);
    assert_eq!(machine.read(HUGE_PAGES), "always");
}

#[test]
fn intel_forbids_turbo_where_others_allow_boost() {
    let machine = Machine::new();
    machine.write(NO_TURBO, "0");
    let output = machine.quiet(&["cat", NO_TURBO]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n");
    assert_eq!(machine.read(NO_TURBO), "0");
}

#[test]
fn a_setting_that_cannot_be_read_is_reported_and_not_changed() {
    let machine = Machine::new();
    let watchdog = machine.0.path().join("proc/sys/kernel/soft_watchdog");
    std::os::unix::fs::symlink("/dev/null", watchdog).unwrap();
    let output = machine.quiet(&["true"]);
    assert!(said(&output).contains("soft_watchdog: left alone"), "{}", said(&output));
    machine.assert_as_before();
}

#[test]
fn a_setting_that_cannot_be_written_is_reported_with_the_reason() {
    if nix::unistd::geteuid().is_root() {
        return print_skipped("root may write a file whatever its mode says");
    }
    let machine = Machine::new();
    let path = machine.0.path().join(NUMA);
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
    let output = machine.quiet(&["true"]);
    assert!(output.status.success());
    assert!(said(&output).contains("numa_balancing: stays 1: not writable, needs root"), "{}", said(&output));
    machine.assert_as_before();
}

#[test]
fn status_shows_and_changes_nothing() {
    let machine = Machine::new();
    let output = machine.quiet(&["--status"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("policy0/scaling_governor: powersave (quiet: performance"), "{shown}");
    assert!(shown.contains("nothing to put back"), "{shown}");
    machine.assert_as_before();
}

#[test]
fn without_a_command_it_prints_its_manual() {
    let output = Machine::new().quiet(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("scripts/quiet --restore"));
}
