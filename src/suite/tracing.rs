//! # What is timed
//! What tracing and confinement add to a program. `seccomp/N`: a call of getppid(2) under a filter of N instructions
//! that reads an argument, and (`none`) without a filter; `seccomp-by-number/N`: under a filter that reads only the call's number.
//! `seccomp-notify`: a call that another thread answers on the same CPU. `ptrace-stop`: a tracer lets a process run to its next entry
//! into or exit from the kernel. `breakpoint-hit`, `uprobe-hit` and `uretprobe-hit`: a write to a word that a hardware breakpoint
//! watches, a call of a probed function, and one whose return is probed. `kprobe-hit` and `tracepoint-hit`: a call of getppid(2)
//! with a probe of the kernel's function, and with its tracepoint on. `…-toggle`: switching such an event off and on again, two
//! calls. `landlock-open/N`: opening and closing a file under N layers of Landlock. `bpf-call`: one run of a BPF program of eleven instructions by
//! one system call (`BPF_PROG_TEST_RUN`); `bpf-run`: the same, repeated within the kernel. `bpf-map-update` and `bpf-map-lookup`:
//! one key of a hash, by a system call.
//!
//! # What is not
//! Installing filters, layers and probes, and loading the program. Filters and layers cannot be removed, so each batch of
//! those cases runs in a child of its own, which times itself; starting the child is not timed. The work that a tracer does with
//! an event: all probes here only count.
//!
//! # How we know
//! The last instructions of a filter answer a call that does not exist, which shows that the kernel ran it to its end. The calls
//! of `seccomp-notify` return a number that the kernel never returns. The traced process counts its calls, each of which
//! is two stops. A probe's count grows by exactly one an iteration. Under Landlock a file outside of the directory is refused.
//! The program counts its runs in a map. For the other cases a witness sees the system calls.
//!
//! # What fools it
//! Since Linux 5.11 the kernel evaluates a filter once for each call number, and does not run it again if its result does not
//! depend on arguments: `seccomp-by-number` is then as cheap as no filter. The kernel compiles filters and programs
//! (`net.core.bpf_jit_enable`); without that each instruction takes several times as long. A hypervisor may intercept debug
//! registers and their exceptions. A probe on an instruction that the kernel cannot emulate costs a second exception. The file
//! that `landlock-open` opens is one directory below the allowed one: the cost grows with the depth.
//!
//! # Reading the number
//! `seccomp/N` less `seccomp/none` is what a filter adds to every system call of a container. `uprobe-hit` is what each call of a
//! traced function costs a program, besides the work of the tracer. `kprobe-hit` and `tracepoint-hit` less `syscall/getppid` is what
//! a probe of the kernel costs each call; with the tracepoint off the call costs what `syscall/getppid` says.
//!
//! # Source
//! perf bench `breakpoint`, `uprobe`, `sched seccomp-notify`; the kernel's selftests of bpf; seccomp(2), ptrace(2),
//! perf_event_open(2), landlock(7), bpf(2).

use crate::kit::contract::*;
use crate::kit::kernel_call::{c_path, check_answers, check_granted};
use crate::kit::operation_table::{
    Omit, Proof, Row, batches_in_child, entered, is_true, operation_rows, repeated, table_cases,
};
use crate::platform::bpf::{Counter, Map, RETURNED};
use crate::platform::child::Child;
use crate::platform::landlock;
use crate::platform::perf_event::probe::{GETPPID, Probe};
use crate::platform::seccomp::{self, FIRST_ARGUMENT, MARK, NUMBER};
use crate::platform::shared::Words;
use crate::platform::syscall::{self, RawCall};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getppid};
use std::hint::black_box;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::channel;

#[rustfmt::skip]
pub const GROUP: Group = Group::new("tracing", include_str!("tracing.rs"), cases).curves(&[
    Curve::new("tracing/seccomp/", "filter that looks at arguments", Axis::Count("instructions of the filter"))
        .with_chart("a call by length of the filter"),
    Curve::new("tracing/landlock-open/", "open and close", Axis::Count("layers of Landlock")),
]);

/// The cases that a default run measures; a full run measures all.
const BY_DEFAULT: [&str; 3] = ["seccomp/256", "uprobe-hit", "bpf-call"];

fn cases() -> Vec<Case> {
    // Children and threads of a batch run on the measuring CPU.
    let confined =
        table_cases(CONFINED, &BY_DEFAULT).into_iter().map(|case| case.own_tasks(OwnTasks::SameCpu));
    confined.chain(table_cases(PROBED, &BY_DEFAULT)).collect()
}

const FILTERED: Proof = Proof::Batch(
    "the filter was run to its end: it answered a call that does not exist, by its last instructions",
);
const RESTRICTED: Proof = Proof::Batch("the file was opened, and one outside of the directory was refused");
const WHY_FILTER: &str = "entry and exit, the filter called, one cycle an instruction";
const WHY_OPEN: &str =
    "the walk, a file structure allocated and freed; for each layer and directory a look-up";

pub(super) const CONFINED: &[Row] = operation_rows! {
    "seccomp/none", "getppid in a child without a filter", Proof::Batch("getppid was answered by the number of the parent"), 100.0, 90.0, "entry and exit, and a field of the task", |_, _| batches_in_child(unfiltered);
    "seccomp/16", "getppid under a filter of 16 instructions", FILTERED, 120.0, 160.0, WHY_FILTER, |_, omit| filtered_calls(16, FIRST_ARGUMENT, omit);
    "seccomp/256", "getppid under a filter of 256 instructions", FILTERED, 120.0, 400.0, WHY_FILTER, |_, omit| filtered_calls(256, FIRST_ARGUMENT, omit);
    "seccomp/4096", "getppid under a filter of 4096 instructions", FILTERED, 120.0, 4_200.0, WHY_FILTER, |_, omit| filtered_calls(4_096, FIRST_ARGUMENT, omit);
    "seccomp-by-number/256", "getppid under a filter of 256 instructions that look at its number only", FILTERED, 100.0, 110.0, "entry and exit; the kernel remembers what the filter says of each number", |_, omit| filtered_calls(256, NUMBER, omit);
    "seccomp-notify", "a call that another thread answers for the kernel (SECCOMP_RET_USER_NOTIF)", Proof::Batch("every call was answered by the other thread, with a number of its own"), 2_000.0, 8_000.0, "two switches, three entries, a note allocated and found twice", |_, omit| batches_in_child(move |n, clock| time_notified_calls(n, omit, clock));
    "ptrace-stop", "a traced process let run to its next entry into the kernel or exit from it", Proof::Batch("the traced process counted half as many calls as it was stopped"), 2_000.0, 7_000.0, "two switches, a signal to the tracer, a wait", |_, omit| batches_in_child(move |n, clock| time_stops(n, omit, clock));
    "landlock-open/0", "open and close of a scratch file in a child, without Landlock", Proof::Batch("the file was opened"), 200.0, 3_000.0, WHY_OPEN, |place, omit| open_restricted(place, 0, omit);
    "landlock-open/1", "open and close of a scratch file under one layer of Landlock", RESTRICTED, 250.0, 3_600.0, WHY_OPEN, |place, omit| open_restricted(place, 1, omit);
    "landlock-open/16", "open and close of a scratch file under 16 layers of Landlock", RESTRICTED, 400.0, 6_000.0, WHY_OPEN, |place, omit| open_restricted(place, 16, omit);
};

/// Times `n` calls of getppid, each of which must return `wanted`.
fn time_getppid(n: u64, wanted: i64, clock: &Clock) -> Result<Ticks> {
    let mut seen = crate::platform::arch::Answers::default();
    let ticks = clock.time(|| seen = RawCall::getppid().repeat(n));
    check_answers("getppid", &(wanted..=wanted), seen).map(|()| ticks)
}

fn unfiltered(n: u64, clock: &Clock) -> Result<Ticks> {
    time_getppid(n, nix::unistd::getppid().as_raw().into(), clock)
}

/// Times getppid under a filter of `length` instructions, which reads word `looks_at` of each call's data.
fn filtered_calls(length: usize, looks_at: u32, omit: Omit) -> Result<Box<dyn Subject>> {
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

/// The return value that a thread gives in place of the kernel. It is higher than any process id.
const ANSWER: i64 = 1 << 30;

/// Times calls of a new thread, which the thread that started it answers.
fn time_notified_calls(n: u64, omit: Omit, clock: &Clock) -> Result<Ticks> {
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

/// Times `n` stops of a traced process that only calls getppid.
fn time_stops(n: u64, omit: Omit, clock: &Clock) -> Result<Ticks> {
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
    ensure(matches!(waitpid(traced.pid(), None).map_err(refused)?, WaitStatus::Stopped(..)), || {
        Error::Missing("no process may be traced here (kernel.yama.ptrace_scope, a sandbox)".into())
    })?;
    let mut last = Ok(WaitStatus::StillAlive);
    let ticks = clock.time(|| {
        for _ in 0..n * u64::from(omit == Omit::Nothing) {
            last = ptrace::syscall(traced.pid(), None).and_then(|()| waitpid(traced.pid(), None));
        }
    });
    last.map_err(refused)?;
    let seen = u64::from(calls[0].value.load(SeqCst));
    // The call of the last stop is not counted yet, and the first stop may end a call of the C library.
    ensure(seen.abs_diff(n / 2) <= 2, || {
        Error::Contradicted(format!("a process made {seen} calls in {n} stops, of which each call is two"))
    })?;
    Ok(ticks)
}

/// Times opening and closing a file in the scratch directory under this number of Landlock layers.
fn open_restricted(place: &Place, layers: usize, omit: Omit) -> Result<Box<dyn Subject>> {
    let (directory, path) = (place.scratch.clone(), place.scratch.join("landlock"));
    std::fs::write(&path, [1]).map_err(|e| Error::file(&path, "writing", e))?;
    let path = c_path(&path)?;
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

const HIT: Proof = Proof::Batch("the probe was hit exactly once an iteration, by its own count");

pub(super) const PROBED: &[Row] = operation_rows! {
    "breakpoint-hit", "a write to a word with a hardware breakpoint", HIT, 600.0, 1_500.0, "an exception, the event found and counted", |_, omit| {
        let word = Box::leak(Box::new(AtomicU32::new(0)));
        hit_subject(Probe::on_write(word.as_ptr())?, omit, || word.store(1, Relaxed))
    };
    "breakpoint-toggle", "a hardware breakpoint switched off and on", entered![SYS_ioctl, SYS_ioctl], 1_000.0, 1_500.0, "two entries, an event taken off and put on, a debug register written", |_, _| {
        static WORD: AtomicU32 = AtomicU32::new(0);
        toggle_subject(Probe::on_write(WORD.as_ptr())?)
    };
    "uprobe-hit", "a call of a function with a probe at its beginning", HIT, 1_200.0, 2_500.0, "an exception or two, the probe found, its event counted", |_, omit| {
        hit_subject(Probe::on_function(probed as fn() as usize, false)?, omit, probed)
    };
    "uretprobe-hit", "a call of a function with a probe of its return", HIT, 1_800.0, 4_000.0, "two exceptions, the return address replaced, the event counted", |_, omit| {
        hit_subject(Probe::on_function(probed as fn() as usize, true)?, omit, probed)
    };
    "uprobe-toggle", "the event of a probe switched off and on", entered![SYS_ioctl, SYS_ioctl], 300.0, 1_200.0, "two entries, an event taken off a list and put on", |_, _| toggle_subject(Probe::on_function(probed as fn() as usize, false)?);
    "kprobe-hit", "a call of getppid with a probe of the kernel's function", HIT, 300.0, 1_000.0, "entry and exit, a jump or an exception to the probe, its event counted", |_, omit| {
        hit_subject(Probe::on_kernel_function(GETPPID)?, omit, || _ = getppid())
    };
    "tracepoint-hit", "a call of getppid whose tracepoint is on", HIT, 300.0, 700.0, "entry and exit by the slow path, an event counted", |_, omit| {
        hit_subject(Probe::on_tracepoint("syscalls/sys_enter_getppid")?, omit, || _ = getppid())
    };
    "bpf-call", "one run of a BPF program of 11 instructions by a system call (BPF_PROG_TEST_RUN)", entered![SYS_bpf], 300.0, 3_000.0, "entry and exit, a packet made and freed, the program", |_, _| {
        let program = Counter::load()?;
        repeated("bpf", move || is_true(program.run(1)? == RETURNED))
    };
    "bpf-run", "the same program, repeated within the kernel", Proof::Batch("the program counted as many runs as were asked for"), 30.0, 40.0, "11 instructions, a look-up in an array, an atomic addition", count_runs;
    "bpf-map-update", "a key of a BPF hash set by a system call", entered![SYS_bpf], 150.0, 900.0, "entry and exit, key and value copied, a lock, an element replaced", |_, _| {
        let map = Map::hash(64)?;
        repeated("bpf", move || map.update(7, 42))
    };
    "bpf-map-lookup", "a key of a BPF hash looked up by a system call", entered![SYS_bpf], 150.0, 700.0, "entry and exit, key and value copied, a hash", |_, _| {
        let map = Map::hash(64)?;
        map.update(7, 42).map_err(|e| Error::from_case_errno("bpf", e))?;
        repeated("bpf", move || is_true(map.look_up(7)? == 42))
    };
};

/// The function that is probed.
#[inline(never)]
fn probed() {
    black_box(0);
}

/// Times `hit`, which triggers a probe once, and checks the count of the probe.
fn hit_subject(probe: Probe, omit: Omit, hit: impl Fn() + 'static) -> Result<Box<dyn Subject>> {
    hit();
    ensure(probe.count()? == 1, || {
        Error::Missing("the event can be set and does not count: an emulator or hypervisor ignores it".into())
    })?;
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let before = probe.count()?;
        let ticks = clock.time(|| (0..n * u64::from(omit == Omit::Nothing)).for_each(|_| hit()));
        check_count(probe.count()? - before, n).map(|()| ticks)
    }))
}

fn check_count(seen: u64, wanted: u64) -> Result<()> {
    if seen == wanted {
        return Ok(());
    }
    Err(Error::Contradicted(format!("{seen} events were counted in {wanted} iterations")))
}

fn toggle_subject(probe: Probe) -> Result<Box<dyn Subject>> {
    repeated("ioctl", move || probe.switch_off_and_on())
}

/// Times runs of the BPF program that one system call requests.
fn count_runs(_: &Place, omit: Omit) -> Result<Box<dyn Subject>> {
    let program = Counter::load()?;
    let refused = |e| match e {
        Errno::EINTR => Error::Disturbed("a signal ended the runs of the program".into()),
        _ => Error::from_case_errno("bpf BPF_PROG_TEST_RUN", e),
    };
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let before = program.count().map_err(refused)?;
        let mut answer = Ok(0);
        // One call allows at most 2^20 runs, so a longer batch takes several calls.
        let ticks = clock.time(|| {
            let mut left = n * u64::from(omit == Omit::Nothing);
            while left > 0 && answer.is_ok() {
                let times = left.min(1 << 20);
                (answer, left) = (program.run(times as u32), left - times);
            }
        });
        answer.map_err(refused)?;
        check_count(program.count().map_err(refused)? - before, n).map(|()| ticks)
    }))
}
