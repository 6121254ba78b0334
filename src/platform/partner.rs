//! A partner: a process or a thread beside the measuring one, pinned to a CPU, which does one step again and
//! again until it is told to end.
//!
//! A process partner is killed and reaped when its value goes, and by the kernel when its parent dies. A thread
//! cannot be killed: it is told to stop, woken by the way on which it waits, and joined; one that does not end
//! is left behind to end with the process.
//!
//! # Invariants
//!
//! * **CHILD**: a forked child runs its steps and ends by `_exit`: a panic is caught, so that it never returns
//!   or unwinds into the parent's code, runs no exit handler and flushes no buffer. Between the fork and its end
//!   it allocates nothing, since another thread may have held the allocator's lock.
//! * **OWN-TASK**: the call changes the calling task's own scheduling and reads one structure of ours.
#![allow(unsafe_code)]

use super::process::{PANIC_CODE, die_with_parent};
use super::shared::Words;
use super::{cpu, syscall};
use crate::{Error, Result};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, gettid};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What kind of task it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A forked process.
    Process,
    /// A thread of this process.
    Thread,
}

/// In which scheduling class it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// As everybody (`SCHED_OTHER`).
    Ordinary,
    /// Only where nobody else wants the CPU (`SCHED_IDLE`).
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

/// A partner as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The process that it belongs to.
    pub process: Pid,
    /// Its own number.
    pub thread: Pid,
    /// The CPU on which it must stay.
    pub cpu: usize,
    /// What it is for.
    pub role: Role,
}

/// Where a partner stands, in the shared page.
const STATE: usize = 0;
/// Set when a thread is to end.
const STOP: usize = 1;
const READY: u32 = 1;
/// It could not take its place; the error number is added.
const REFUSED: u32 = 1 << 16;
/// How long a partner may take to come, and a thread to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// A partner that lives as long as this value.
pub struct Partner {
    kind: Kind,
    task: Task,
    state: Arc<Words>,
    thread: Option<JoinHandle<()>>,
    /// Wakes a thread that waits, so that it sees that it is to end.
    nudge: Box<dyn Fn()>,
    reaped: Option<WaitStatus>,
}

impl Partner {
    /// Starts one that repeats `step` on this CPU until a step answers a negative error number. `nudge` must let
    /// a step that waits go on: it is called to end a thread. A step of a process may not allocate.
    ///
    /// # Errors
    /// The kernel refuses the task, its place or its class.
    pub fn start(
        kind: Kind,
        (cpu, class): (usize, Class),
        step: impl FnMut() -> i64 + Send + 'static,
        nudge: impl Fn() + 'static,
    ) -> Result<Self> {
        let state = Arc::new(Words::new()?);
        let nudge = Box::new(nudge);
        let ((process, thread), handle) = match kind {
            Kind::Process => (process(&state, cpu, class, step)?, None),
            Kind::Thread => {
                let (numbers, handle) = thread(&state, cpu, class, step)?;
                (numbers, Some(handle))
            }
        };
        let task = Task { process, thread, cpu, role: Role::Answers };
        let mut partner = Self { kind, task, state, thread: handle, nudge, reaped: None };
        partner.settled()?;
        Ok(partner)
    }

    /// Waits until it is in its place.
    fn settled(&mut self) -> Result<()> {
        let begun = Instant::now();
        while self.state[STATE].value.load(SeqCst) == 0 {
            if let Some(fate) = self.fate() {
                return Err(Error::Usage(fate));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Usage(format!(
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
                Err(Error::refused(format!("scheduling a partner on CPU {}", self.task.cpu), errno))
            }
        }
    }

    /// What others must know to watch it.
    pub fn task(&self) -> Task {
        self.task
    }

    /// How it ended, if it has ended by itself.
    pub fn fate(&mut self) -> Option<String> {
        match self.kind {
            Kind::Thread => {
                let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
                ended.then(|| "the partner, a thread, has ended: it panicked or its call was refused".into())
            }
            Kind::Process => {
                if self.reaped.is_none() {
                    let status = waitpid(self.task.process, Some(WaitPidFlag::WNOHANG));
                    self.reaped = status.ok().filter(|status| *status != WaitStatus::StillAlive);
                }
                self.reaped.map(|status| match status {
                    WaitStatus::Exited(_, PANIC_CODE) => "the partner panicked".into(),
                    WaitStatus::Exited(_, code) => match nix::errno::Errno::from_raw(code) {
                        nix::errno::Errno::UnknownErrno => format!("the partner ended with code {code}"),
                        errno => format!("the partner's call was refused: {}", errno.desc()),
                    },
                    WaitStatus::Signaled(_, signal, _) => format!("the partner was killed by {signal}"),
                    other => format!("the partner ended: {other:?}"),
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
                    // It may have died meanwhile; until it is waited for its number is nobody else's.
                    let _ = kill(self.task.process, Signal::SIGKILL);
                    while waitpid(self.task.process, None) == Err(nix::errno::Errno::EINTR) {}
                }
            }
            Kind::Thread => self.join(),
        }
    }
}

impl Partner {
    fn join(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.state[STOP].value.store(1, SeqCst);
        let begun = Instant::now();
        while !thread.is_finished() && begun.elapsed() < PATIENCE {
            (self.nudge)();
            std::thread::sleep(Duration::from_micros(200));
        }
        if thread.is_finished() {
            // A panic of its was told by `fate` to who asked.
            let _ = thread.join();
        }
    }
}

fn process(
    state: &Arc<Words>,
    cpu: usize,
    class: Class,
    mut step: impl FnMut() -> i64,
) -> Result<(Pid, Pid)> {
    let parent = getpid();
    // SAFETY: CHILD.
    match unsafe { fork() }.map_err(refused_fork)? {
        ForkResult::Parent { child } => Ok((child, child)),
        ForkResult::Child => {
            let life = std::panic::AssertUnwindSafe(|| {
                // Its parent may have died before the kernel knew that this is to be told.
                if die_with_parent().is_err() || nix::unistd::getppid() != parent {
                    return i64::from(-libc::ESRCH);
                }
                if let Err(errno) = take_place(cpu, class) {
                    state[STATE].value.store(REFUSED + errno as u32, SeqCst);
                    return -i64::from(errno);
                }
                state[STATE].value.store(READY, SeqCst);
                loop {
                    let answer = step();
                    if answer < 0 {
                        return answer;
                    }
                }
            });
            let code = std::panic::catch_unwind(life).map_or(PANIC_CODE, |answer| -answer as i32);
            // SAFETY: CHILD: `_exit` runs no destructor and no exit handler.
            unsafe { libc::_exit(code) }
        }
    }
}

fn refused_fork(errno: nix::errno::Errno) -> Error {
    let limits = "fork of a partner (`ulimit -u`, pids.max of the control group)";
    Error::refused(limits, errno)
}

fn thread(
    state: &Arc<Words>,
    cpu: usize,
    class: Class,
    mut step: impl FnMut() -> i64 + Send + 'static,
) -> Result<((Pid, Pid), JoinHandle<()>)> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let state = Arc::clone(state);
    let builder = std::thread::Builder::new().stack_size(256 << 10);
    let life = move || {
        let _ = sender.send(gettid());
        if let Err(errno) = take_place(cpu, class) {
            state[STATE].value.store(REFUSED + errno as u32, SeqCst);
            return;
        }
        state[STATE].value.store(READY, SeqCst);
        while state[STOP].value.load(SeqCst) == 0 && step() >= 0 {}
    };
    let refused = |cause| Error::Kernel {
        call: "clone of a partner thread (`ulimit -u`, pids.max of the control group)".into(),
        cause,
    };
    let thread = builder.spawn(life).map_err(refused)?;
    let tid = receiver.recv().map_err(|_| Error::Usage("the partner thread ended at once".into()))?;
    Ok(((getpid(), tid), thread))
}

/// Pins the calling task and sets its class. Allocates nothing.
fn take_place(cpu: usize, class: Class) -> std::result::Result<(), i32> {
    cpu::pin_bare(cpu).map_err(|errno| errno as i32)?;
    if class == Class::Ordinary {
        return Ok(());
    }
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: OWN-TASK.
    let answer = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter) };
    if answer == 0 { Ok(()) } else { Err(nix::errno::Errno::last_raw()) }
}

/// A partner that only burns time: beside a measuring thread it is a CPU hog, in the idle class it keeps its
/// CPU from falling asleep.
pub fn spinner(cpu: usize, class: Class) -> Result<Partner> {
    let step = || {
        (0..1000).for_each(|_| std::hint::spin_loop());
        0
    };
    let mut partner = Partner::start(Kind::Process, (cpu, class), step, || ())?;
    partner.task.role = Role::Burns;
    Ok(partner)
}

/// Whether this process may start another and pin it.
pub fn offered(cpu: usize) -> std::result::Result<(), String> {
    let step = || {
        syscall::sched_yield();
        0
    };
    Partner::start(Kind::Process, (cpu, Class::Ordinary), step, || ()).map(drop).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests;
