//! Several processes are steered at one logical time, or none of them is.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a member says what it has collected")]

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use syscost_platform::error::Error;
use syscost_technique::event_register::variable;
use syscost_technique::steering::{DetailLevel, Manager, Request, Settings, SteeredMonitor};

/// Variables of a member's environment: the manager's address, the member's name, and whether its own program changes its
/// settings.
const MANAGER: &str = "STEERED_BY";
const NAME: &str = "STEERED_AS";
const OWN_CHANGE: &str = "STEERED_ITSELF";
/// A time that is longer than a process waits for a CPU.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that other tests start. Run as a test, it does nothing.
#[test]
fn member() {
    let Ok(manager) = std::env::var(MANAGER) else { return };
    let (manager, name): (SocketAddr, _) = (manager.parse().unwrap(), std::env::var(NAME).unwrap());
    let settings = Settings {
        period: Duration::from_millis(2),
        detail: DetailLevel::Fraction,
        event: variable("busy").equals(1),
    };
    let monitor = SteeredMonitor::start(&["busy"], settings, 3, || [1]).unwrap();
    let mut changes_itself = std::env::var(OWN_CHANGE).is_ok();
    // An excluded member joins again, until there is no manager.
    while monitor
        .follow(manager, &name, |ended| {
            println!("ended {} {} {:?}", ended.since, ended.samples, ended.settings.period);
            if std::mem::take(&mut changes_itself) {
                monitor.request(Request::Period(Duration::from_millis(3))).unwrap();
            }
        })
        .is_ok()
    {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A child process, which is killed when this value is dropped.
struct Process(Child, Lines<BufReader<ChildStdout>>);

impl Process {
    fn start(manager: &Manager, name: &str, changes_itself: bool) -> Self {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "member", "--nocapture"]).env(NAME, name);
        program.env(MANAGER, manager.address().unwrap().to_string()).stdout(Stdio::piped());
        if changes_itself {
            program.env(OWN_CHANGE, "");
        }
        let mut child = program.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self(child, lines)
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
    }

    /// Stops the process and waits for that. After the signal alone it could still answer the next message.
    fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        let stopped = waitpid(Pid::from_raw(self.0.id() as i32), Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
    }

    /// The logical time since which an ended stretch had its settings, its number of samples, and their period.
    fn next_stretch(&mut self) -> (u64, u64, String) {
        let line =
            self.1.find_map(|line| line.unwrap().split_once("ended ").map(|(_, rest)| rest.to_owned()));
        let line = line.expect("the process has ended");
        let words: Vec<_> = line.split(' ').collect();
        (words[0].parse().unwrap(), words[1].parse().unwrap(), words[2].into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A manager and its members, after all members have joined.
fn group(names: &[&str], changes_itself: &str) -> (Manager, Vec<Process>) {
    let mut manager = Manager::listen("127.0.0.1:0".parse().unwrap(), PATIENCE).unwrap();
    let start = |name: &&str| Process::start(&manager, name, *name == changes_itself);
    let processes = names.iter().map(start).collect();
    wait_for_members(&mut manager, names);
    (manager, processes)
}

fn wait_for_members(manager: &mut Manager, names: &[&str]) {
    let begun = Instant::now();
    loop {
        let mut members = manager.update_members();
        members.sort();
        if members == names {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{members:?}, expected {names:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const FAST: Request = Request::Period(Duration::from_micros(500));
const SLOW: Request = Request::Period(Duration::from_millis(5));

#[test]
fn a_request_takes_effect_in_all_processes_at_one_logical_time() {
    let (mut manager, mut processes) = group(&["a", "b", "c"], "");
    std::thread::sleep(Duration::from_millis(100));
    let first = manager.request(&FAST).unwrap();
    let second = manager.request(&Request::Detail(DetailLevel::Samples)).unwrap();
    assert_eq!(first.members.len(), 3);
    assert!(first.time < second.time);
    for process in &mut processes {
        let [before, after] = [process.next_stretch(), process.next_stretch()];
        assert!(
            before.1 > 0 && before.0 + before.1 < first.time,
            "a sample is of before: {before:?} {first:?}"
        );
        assert_eq!((before.2.as_str(), after.0, after.2.as_str()), ("2ms", first.time, "500µs"));
    }
}

#[test]
fn a_request_that_one_process_does_not_answer_changes_none() {
    let (mut manager, mut processes) = group(&["a", "b", "c"], "");
    manager.request(&FAST).unwrap();
    processes[1].stop();
    let refused = manager.request(&SLOW).unwrap_err();
    assert!(matches!(&refused, Error::Disturbed(why) if why.contains("b does not answer")), "{refused}");
    assert_eq!(manager.update_members().len(), 2, "it is excluded");
    let two = manager.request(&Request::Detail(DetailLevel::Samples)).unwrap();
    processes[1].signal(Signal::SIGCONT);
    wait_for_members(&mut manager, &["a", "b", "c"]);
    let three = manager.request(&SLOW).unwrap();
    let zero = manager.request(&Request::Period(Duration::ZERO)).unwrap_err();
    assert!(
        zero.to_string().contains("refuses the request") && zero.to_string().contains("period"),
        "{zero}"
    );
    let last = manager.request(&FAST).unwrap();
    for (at, process) in processes.iter_mut().enumerate() {
        let stretches: Vec<_> = std::iter::repeat_with(|| process.next_stretch())
            .take_while(|stretch| stretch.0 < three.time)
            .collect();
        assert!(stretches.iter().all(|stretch| stretch.2 != "5ms"), "{at}: {stretches:?}");
        assert!(at == 1 || stretches.iter().any(|stretch| stretch.0 == two.time), "{at}: {stretches:?}");
    }
    drop(processes.remove(0));
    wait_for_members(&mut manager, &["b", "c"]);
    assert!(manager.request(&SLOW).unwrap().time > last.time);
}

#[test]
fn a_process_that_changes_itself_is_inconsistent_and_takes_over_the_settings_when_it_joins_again() {
    let (mut manager, mut processes) = group(&["a", "own"], "own");
    let first = manager.request(&FAST).unwrap();
    // The process prints this line before its change.
    assert_eq!(processes[1].next_stretch().2, "2ms");
    std::thread::sleep(Duration::from_millis(200));
    let refused = manager.request(&SLOW).unwrap_err().to_string();
    assert!(
        refused.contains("own is inconsistent") && refused.contains(&first.time.to_string()),
        "{refused}"
    );
    wait_for_members(&mut manager, &["a", "own"]);
    assert_eq!(processes[1].next_stretch().2, "3ms", "its own change has ended");
    assert_eq!(manager.request(&SLOW).unwrap().members.len(), 2);
    assert_eq!(processes[1].next_stretch().2, "500µs", "those of the group");
}
