//! A partner: a second process or thread, pinned to a CPU, which repeats one step until it is stopped.
//!
//! A process is killed and reaped when its value is dropped, and killed by the kernel when its parent dies. A thread
//! cannot be killed: a flag asks it to stop, it is woken from its wait, and joined. A thread that does not end is left to end
//! with the process. Between the fork and its end a process allocates nothing, since another thread may have held the
//! allocator's lock.

mod partner_fate;

pub use partner_fate::Fate;

use super::cpu;
use super::limit;
use super::process::inheritance::set_scheduling_class;
use super::process::{PANIC_CODE, die_with, fork_into, kill_and_reap};
use super::shared::Words;
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, gettid};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Kind of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A forked process.
    Process,
    /// A thread of this process.
    Thread,
}

/// Scheduling class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The class of the task that starts it, but never a real-time one: a partner that does not wait would keep its CPU
    /// from the measuring process.
    Ordinary,
    /// Runs only while no other task wants the CPU (`SCHED_IDLE`).
    Idle,
}

/// What a partner is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It waits for the measuring thread, or for another partner, and answers.
    Answers,
    /// It only uses its CPU.
    Burns,
}

/// What is needed to watch a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The process that it belongs to.
    pub process: Pid,
    /// Its thread number.
    pub thread: Pid,
    /// The CPU on which it must stay.
    pub cpu: usize,
    /// What it is for.
    pub role: Role,
}

/// Word of the shared page: the state of the partner's start, 0 before it is [`READY`] or [`REFUSED`].
const STATE: usize = 0;
/// Word of the shared page: not zero if the thread must end.
const STOP: usize = 1;
/// Word of the shared page: the error number of a thread's refused call, or 0.
const ANSWER: usize = 2;
const READY: u32 = 1;
/// The kernel refused the CPU or the class; the error number is added.
const REFUSED: u32 = 1 << 16;
/// How long a partner may take to start, and a thread to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A partner that lives as long as this value.
pub struct Partner {
    kind: Kind,
    task: Task,
    state: Arc<Words>,
    thread: Option<JoinHandle<()>>,
    /// Wakes a thread that waits, so that it sees the request to end.
    nudge: Box<dyn Fn()>,
    reaped: Option<WaitStatus>,
}

impl Partner {
    /// Starts a partner that repeats `step` on this CPU until a step returns a negative error number. `nudge` must end
    /// the wait of a step: it is called to end a thread. A step of a process must not allocate.
    ///
    /// # Errors
    /// The kernel refuses the task, the CPU or the class; [`Error::Disproved`] if it ended at once, and
    /// [`Error::Disturbed`] if it did not start in time.
    pub fn start(
        kind: Kind,
        place: (usize, Class),
        step: impl FnMut() -> i64 + Send + 'static,
        nudge: impl Fn() + 'static,
    ) -> Result<Self> {
        let state = Arc::new(Words::new()?);
        let nudge = Box::new(nudge);
        let ((process, thread), handle) = match kind {
            Kind::Process => (start_process(&state, place, step)?, None),
            Kind::Thread => start_thread(&state, place, step)?,
        };
        let task = Task { process, thread, cpu: place.0, role: Role::Answers };
        let mut partner = Self { kind, task, state, thread: handle, nudge, reaped: None };
        partner.wait_until_ready()?;
        Ok(partner)
    }

    /// Waits until the partner is on its CPU and in its class.
    fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        while self.state[STATE].value.load(SeqCst) == 0 {
            if let Some(fate) = self.fate() {
                return Err(fate.into_error(""));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Disturbed(format!(
                    "the partner on CPU {} did not come within {} s: that CPU is too busy",
                    self.task.cpu,
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        match self.state[STATE].value.load(SeqCst) {
            READY => Ok(()),
            refused => {
                let errno = nix::errno::Errno::from_raw((refused - REFUSED) as i32);
                let cpu = self.task.cpu;
                Err(cpu::pinning_error(cpu, errno, || format!("scheduling a partner on CPU {cpu}")))
            }
        }
    }

    /// What is needed to watch the partner.
    pub fn task(&self) -> Task {
        self.task
    }

    /// How the partner ended, if it has ended by itself.
    pub fn fate(&mut self) -> Option<Fate> {
        match self.kind {
            Kind::Thread => {
                let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
                ended.then(|| match self.state[ANSWER].value.load(SeqCst) {
                    0 => Fate::new("the partner, a thread, has ended: it panicked"),
                    errno => Fate::from_refusal(Errno::from_raw(errno as i32)),
                })
            }
            Kind::Process => {
                if self.reaped.is_none() {
                    let status = waitpid(self.task.process, Some(WaitPidFlag::WNOHANG));
                    self.reaped = status.ok().filter(|status| *status != WaitStatus::StillAlive);
                }
                self.reaped.map(|status| match status {
                    WaitStatus::Exited(_, PANIC_CODE) => Fate::new("the partner panicked"),
                    WaitStatus::Exited(_, code) => match Errno::from_raw(code) {
                        Errno::UnknownErrno => Fate::new(format!("the partner ended with code {code}")),
                        errno => Fate::from_refusal(errno),
                    },
                    WaitStatus::Signaled(_, signal, _) => Fate::from_signal(signal),
                    other => Fate::new(format!("the partner ended: {other:?}")),
                })
            }
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        match self.kind {
            Kind::Process => {
                if self.reaped.is_none() {
                    kill_and_reap(self.task.process);
                }
            }
            Kind::Thread => self.stop_and_join(),
        }
    }
}

impl Partner {
    fn stop_and_join(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.state[STOP].value.store(1, SeqCst);
        let begun = Instant::now();
        while !thread.is_finished() && begun.elapsed() < PATIENCE {
            (self.nudge)();
            std::thread::sleep(Duration::from_micros(200));
        }
        if thread.is_finished() {
            // `fate` reports a panic.
            let _ = thread.join();
        }
    }
}

/// A partner that only burns time: in the ordinary class it competes for its CPU, in the idle class it keeps an idle
/// CPU from sleeping.
///
/// # Errors
/// As of [`Partner::start`].
pub fn start_spinner(cpu: usize, class: Class) -> Result<Partner> {
    let step = || {
        (0..1000).for_each(|_| std::hint::spin_loop());
        0
    };
    let mut partner = Partner::start(Kind::Process, (cpu, class), step, || ())?;
    partner.task.role = Role::Burns;
    Ok(partner)
}

fn start_process(state: &Arc<Words>, place: (usize, Class), step: impl FnMut() -> i64) -> Result<(Pid, Pid)> {
    let parent = getpid();
    let child = fork_into(|| match die_with(parent) {
        Ok(()) => take_steps(state, place, step),
        Err(errno) => errno as i32,
    });
    let child = child.map_err(|errno| start_error("fork of a partner", errno.into()))?;
    Ok((child, child))
}

/// Runs the steps of a partner until it is asked to stop, or a step returns a negative error number. Returns that number without
/// its sign, or 0 if there was none. Processes and threads share this function, so that a step has one caller and is inlined. A
/// function that is called before a task switch and returns after it costs more: the kernel overwrites the processor's return
/// stack at the switch, and each such return is mispredicted, 0.39 µs in a guest on Zen 4.
fn take_steps(state: &Words, (cpu, class): (usize, Class), mut step: impl FnMut() -> i64) -> i32 {
    if let Err(errno) = set_cpu_and_class(cpu, class) {
        state[STATE].value.store(REFUSED + errno as u32, SeqCst);
        return errno;
    }
    state[STATE].value.store(READY, SeqCst);
    while state[STOP].value.load(SeqCst) == 0 {
        let answer = step();
        if answer < 0 {
            return -answer as i32;
        }
    }
    0
}

/// The error for a partner that could not be started. It names the limits after EAGAIN only, which a limit causes.
fn start_error(call: &str, cause: std::io::Error) -> Error {
    let call = match cause.kind() {
        std::io::ErrorKind::WouldBlock => format!("{call} ({})", limit::task_limits_message()),
        _ => call.into(),
    };
    Error::Kernel { call, cause }
}

/// The numbers of a partner's process and thread, and the handle that joins a thread.
type Started = ((Pid, Pid), Option<JoinHandle<()>>);

fn start_thread(
    state: &Arc<Words>,
    place: (usize, Class),
    step: impl FnMut() -> i64 + Send + 'static,
) -> Result<Started> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let state = Arc::clone(state);
    let builder = std::thread::Builder::new().stack_size(256 << 10);
    let thread_body = move || {
        let _ = sender.send(gettid());
        let refused = take_steps(&state, place, step);
        state[ANSWER].value.store(refused as u32, SeqCst);
    };
    let thread =
        builder.spawn(thread_body).map_err(|cause| start_error("clone of a partner thread", cause))?;
    let tid = receiver.recv().map_err(|_| Error::Disproved("the partner thread ended at once".into()))?;
    Ok(((getpid(), tid), Some(thread)))
}

/// Pins the calling task and sets its class. Allocates nothing.
fn set_cpu_and_class(cpu: usize, class: Class) -> std::result::Result<(), i32> {
    cpu::pin_without_allocation(cpu).map_err(|errno| errno as i32)?;
    if class == Class::Ordinary {
        return super::process::inheritance::leave_real_time_class().map_err(|errno| errno as i32);
    }
    set_scheduling_class(libc::SCHED_IDLE, 0).map_err(|errno| errno as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{Signal, kill};
    use std::sync::atomic::{AtomicBool, AtomicU32};

    fn here() -> (usize, Class) {
        (cpu::allowed_cpus().into_iter().max().expect("a CPU"), Class::Ordinary)
    }

    fn fate_of(step: impl FnMut() -> i64 + Send + 'static) -> String {
        let mut partner = Partner::start(Kind::Process, here(), step, || ()).expect("started");
        let begun = Instant::now();
        loop {
            if let Some(fate) = partner.fate() {
                return fate.to_string();
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "it lives on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_partner_that_panics_never_returns_into_the_harness() {
        let before = getpid();
        assert_eq!(fate_of(|| std::panic::resume_unwind(Box::new("in the partner"))), "the partner panicked");
        assert_eq!(getpid(), before);
    }

    #[test]
    fn a_killed_partner_is_reported_with_its_signal() {
        let dies = |signal: Signal| {
            fate_of(move || {
                let _ = nix::sys::signal::raise(signal);
                0
            })
        };
        assert_eq!(dies(Signal::SIGSEGV), "the partner was killed by SIGSEGV");
        assert_eq!(dies(Signal::SIGKILL), "the partner was killed by SIGKILL");
    }

    #[test]
    fn a_partner_without_memory_dies_alone() {
        use nix::sys::resource::{Resource, setrlimit};
        let hungry = || {
            let _ = setrlimit(Resource::RLIMIT_AS, 1 << 20, 1 << 20);
            let bytes = Vec::<u8>::try_reserve(&mut Vec::new(), 1 << 30);
            if bytes.is_err() { -i64::from(libc::ENOMEM) } else { 0 }
        };
        assert!(fate_of(hungry).contains("memory"));
    }

    #[test]
    fn dropping_a_partner_kills_and_reaps_it() {
        let partner = start_spinner(here().0, Class::Idle).expect("started");
        let pid = partner.task().process;
        assert!(kill(pid, None).is_ok());
        drop(partner);
        assert_eq!(kill(pid, None), Err(nix::errno::Errno::ESRCH), "neither alive nor a zombie");
    }

    #[test]
    fn a_thread_stops_when_it_is_nudged() {
        let gate = Arc::new(AtomicBool::new(false));
        let steps = Arc::new(AtomicU32::new(0));
        let (waits, counts, opens) = (Arc::clone(&gate), Arc::clone(&steps), Arc::clone(&gate));
        let step = move || {
            counts.fetch_add(1, SeqCst);
            while !waits.load(SeqCst) {
                std::thread::sleep(Duration::from_micros(100));
            }
            0
        };
        let mut partner =
            Partner::start(Kind::Thread, here(), step, move || opens.store(true, SeqCst)).unwrap();
        let tid = partner.task().thread;
        assert_eq!(partner.fate(), None);
        drop(partner);
        assert!(!std::path::Path::new(&format!("/proc/self/task/{tid}")).exists());
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        let refused = Partner::start(Kind::Process, (1023, Class::Ordinary), || 0, || ()).err();
        assert!(refused.expect("no such CPU").to_string().contains("CPU 1023"));
    }
}
