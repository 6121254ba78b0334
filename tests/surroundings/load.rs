//! A process with a known load: it computes and waits by turns, for given times. It is this test binary again, so that it
//! exists on every machine.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The variable with the parameters of the process: its CPU, and the microseconds of computing and of waiting.
const LOAD: &str = "SYSCOST_TEST_LOAD";

/// A load process. It lives as long as this value.
pub struct Load(Child);

impl Load {
    /// Starts the load on this CPU.
    pub fn start(cpu: usize, compute: Duration, wait: Duration) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["load::what_others_start", "--exact", "--ignored"]);
        command.env(LOAD, format!("{cpu} {} {}", compute.as_micros(), wait.as_micros()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let load = Self(command.spawn().unwrap());
        // The process runs on any CPU until it is pinned, and its start is not part of the load.
        std::thread::sleep(Duration::from_millis(300));
        load
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
#[ignore = "it is a process that other tests start"]
fn what_others_start() {
    let Ok(told) = std::env::var(LOAD) else { return };
    let told: Vec<u64> = told.split(' ').map(|word| word.parse().unwrap()).collect();
    let [cpu, compute, wait] = told[..] else { panic!("{told:?}") };
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).unwrap();
    let mut cpus = CpuSet::new();
    cpus.set(usize::try_from(cpu).unwrap()).unwrap();
    // This thread, and the first one, which waits for it: its CPUs are the process's too.
    for thread in [0, std::process::id() as i32] {
        sched_setaffinity(Pid::from_raw(thread), &cpus).unwrap();
    }
    let begun = Instant::now();
    while begun.elapsed() < crate::place::PATIENCE {
        let turn = Instant::now();
        while turn.elapsed() < Duration::from_micros(compute) {}
        std::thread::sleep(Duration::from_micros(wait));
    }
}
