//! Processes that a filter, a tracer or Landlock watches: a child for each batch, since none of these can be taken back.

use crate::case::{Place, Subject};
use crate::clock::{Clock, Ticks};
use crate::error::{Error, Result};
use crate::kit::kernel_call::{check_answers, check_granted};
use crate::kit::operation_table::{Omit, Proof, Row, batches_in_child, operation_rows};
use crate::platform::child::Child;
use crate::platform::landlock;
use crate::platform::seccomp::{self, FIRST_ARGUMENT, MARK, NUMBER};
use crate::platform::shared::Words;
use crate::platform::syscall::{self, RawCall};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;

const FILTERED: Proof = Proof::Batch(
    "the filter was run to its end: it answered a call that does not exist, by its last instructions",
);
const RESTRICTED: Proof = Proof::Batch("the file was opened, and one outside of the directory was refused");
const WHY_FILTER: &str = "entry and exit, the filter called, one cycle an instruction";
const WHY_OPEN: &str =
    "the walk, a file structure allocated and freed; for each layer and directory a look-up";

pub(in crate::suite) const ROWS: &[Row] = operation_rows! {
    "seccomp/none", "getppid in a child without a filter", Proof::Batch("getppid was answered by the number of the parent"), 100.0, 90.0, "entry and exit, and a field of the task", |_, _| batches_in_child(unfiltered);
    "seccomp/16", "getppid under a filter of 16 instructions", FILTERED, 120.0, 160.0, WHY_FILTER, |_, omit| filtered(16, FIRST_ARGUMENT, omit);
    "seccomp/256", "getppid under a filter of 256 instructions", FILTERED, 120.0, 400.0, WHY_FILTER, |_, omit| filtered(256, FIRST_ARGUMENT, omit);
    "seccomp/4096", "getppid under a filter of 4096 instructions", FILTERED, 120.0, 4_200.0, WHY_FILTER, |_, omit| filtered(4_096, FIRST_ARGUMENT, omit);
    "seccomp-by-number/256", "getppid under a filter of 256 instructions that look at its number only", FILTERED, 100.0, 110.0, "entry and exit; the kernel remembers what the filter says of each number", |_, omit| filtered(256, NUMBER, omit);
    "seccomp-notify", "a call that another thread answers for the kernel (SECCOMP_RET_USER_NOTIF)", Proof::Batch("every call was answered by the other thread, with a number of its own"), 2_000.0, 8_000.0, "two switches, three entries, a note allocated and found twice", |_, omit| batches_in_child(move |n, clock| notify(n, omit, clock));
    "ptrace-stop", "a traced process let run to its next entry into the kernel or exit from it", Proof::Batch("the traced process counted half as many calls as it was stopped"), 2_000.0, 7_000.0, "two switches, a signal to the tracer, a wait", |_, omit| batches_in_child(move |n, clock| stop(n, omit, clock));
    "landlock-open/0", "open and close of a scratch file in a child, without Landlock", Proof::Batch("the file was opened"), 200.0, 3_000.0, WHY_OPEN, |place, omit| open_restricted(place, 0, omit);
    "landlock-open/1", "open and close of a scratch file under one layer of Landlock", RESTRICTED, 250.0, 3_600.0, WHY_OPEN, |place, omit| open_restricted(place, 1, omit);
    "landlock-open/16", "open and close of a scratch file under 16 layers of Landlock", RESTRICTED, 400.0, 6_000.0, WHY_OPEN, |place, omit| open_restricted(place, 16, omit);
};

/// Times getppid, which must be answered by this number.
fn time_getppid(n: u64, wanted: i64, clock: &Clock) -> Result<Ticks> {
    let mut seen = crate::platform::arch::Answers::default();
    let ticks = clock.time(|| seen = RawCall::getppid().repeat(n));
    check_answers("getppid", &(wanted..=wanted), seen).map(|()| ticks)
}

fn unfiltered(n: u64, clock: &Clock) -> Result<Ticks> {
    time_getppid(n, nix::unistd::getppid().as_raw().into(), clock)
}

/// Calls under a filter of this length, which looks at this word of each call.
fn filtered(length: usize, looks_at: u32, omit: Omit) -> Result<Box<dyn Subject>> {
    let filter = seccomp::marked_filter(length, looks_at);
    batches_in_child(move |n, clock| {
        if omit == Omit::Nothing {
            seccomp::install(&filter)?;
        }
        let ticks = unfiltered(n, clock)?;
        match RawCall::nonexistent_call().repeat(1).lowest {
            answer if answer == -MARK => Ok(ticks),
            answer => Err(Error::Disproved(format!(
                "a call that does not exist was answered {answer}, not by the filter"
            ))),
        }
    })
}

/// What a thread answers in place of the kernel: more than the number of any process.
const ANSWER: i64 = 1 << 30;

/// A thread's calls, answered by the thread that started it.
fn notify(n: u64, omit: Omit, clock: &Clock) -> Result<Ticks> {
    let filter = [
        seccomp::load(NUMBER),
        seccomp::skip_unless(libc::SYS_getppid as u32, 1),
        seccomp::end(libc::SECCOMP_RET_USER_NOTIF),
        seccomp::end(libc::SECCOMP_RET_ALLOW),
    ];
    let ((send, receive), scale) = (channel(), clock.scale());
    std::thread::scope(|scope| {
        let caller = scope.spawn(move || {
            let clock = Clock::with_scale(scale);
            if omit == Omit::Nothing {
                let _ = send.send(seccomp::install_with_listener(&filter)?);
            }
            drop(send);
            time_getppid(n, ANSWER, &clock)
        });
        if let Ok(listener) = receive.recv() {
            let answered = (0..n).try_for_each(|_| seccomp::answer_next_call(&listener, ANSWER));
            answered.map_err(|e| Error::from_case_errno("ioctl SECCOMP_IOCTL_NOTIF_SEND", e))?;
        }
        caller.join().unwrap_or_else(|_| Err(Error::Child("a thread panicked".into())))
    })
}

/// Stops of a process that only calls getppid.
fn stop(n: u64, omit: Omit, clock: &Clock) -> Result<Ticks> {
    use nix::sys::ptrace;
    let calls = Words::new()?;
    let traced = Child::start(|| {
        if ptrace::traceme().and_then(|()| kill(Pid::this(), Signal::SIGSTOP)).is_ok() {
            loop {
                let _ = syscall::getppid();
                calls[0].value.fetch_add(1, SeqCst);
            }
        }
    })?;
    let refused = |e| Error::from_case_errno("ptrace", e);
    if !matches!(waitpid(traced.pid(), None).map_err(refused)?, WaitStatus::Stopped(..)) {
        return Err(Error::Missing(
            "no process may be traced here (kernel.yama.ptrace_scope, a sandbox)".into(),
        ));
    }
    let mut last = Ok(WaitStatus::StillAlive);
    let ticks = clock.time(|| {
        for _ in 0..n * u64::from(omit == Omit::Nothing) {
            last = ptrace::syscall(traced.pid(), None).and_then(|()| waitpid(traced.pid(), None));
        }
    });
    last.map_err(refused)?;
    let seen = u64::from(calls[0].value.load(SeqCst));
    // The call of the last stop is not counted yet, and a library may have ended another one first.
    if seen.abs_diff(n / 2) > 2 {
        return Err(Error::Contradicted(format!(
            "a process made {seen} calls in {n} stops, of which each call is two"
        )));
    }
    Ok(ticks)
}

/// Opens a file in the scratch directory under this number of layers.
fn open_restricted(place: &Place, layers: usize, omit: Omit) -> Result<Box<dyn Subject>> {
    let (directory, path) = (place.scratch.clone(), place.scratch.join("landlock"));
    std::fs::write(&path, [1]).map_err(|e| Error::file(&path, "writing", e))?;
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Usage(format!("{}: a path holds a zero byte", path.display())))?;
    batches_in_child(move |n, clock| {
        for _ in 0..layers * usize::from(omit == Omit::Nothing) {
            landlock::restrict_reading_to(&directory)?;
        }
        let mut lowest = -i64::from(libc::ENOENT);
        let ticks = clock.time(|| lowest = syscall::repeat_open_close(&path, n));
        check_granted("open and close", lowest)?;
        if layers > 0 && std::fs::File::open("/proc/self/status").is_ok() {
            return Err(Error::Disproved("a file outside of the directory could be opened".into()));
        }
        Ok(ticks)
    })
}
