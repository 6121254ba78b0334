//! Events that the kernel counts where a program runs, and programs that run in the kernel.

use crate::case::Subject;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kit::operation_table::{Omit, Proof, Row, entered, is_true, operation_rows, repeated};
use crate::platform::bpf::{Counter, Map, RETURNED};
use crate::platform::perf_event::probe::{GETPPID, Probe};
use nix::errno::Errno;
use nix::unistd::getppid;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const HIT: Proof = Proof::Batch("the probe was hit exactly once an iteration, by its own count");

pub(in crate::suite) const ROWS: &[Row] = operation_rows! {
    "breakpoint-hit", "a write to a word with a hardware breakpoint", HIT, 600.0, 1_500.0, "an exception, the event found and counted", |_, omit| {
        let word = Box::leak(Box::new(AtomicU32::new(0)));
        hits(Probe::on_write(word.as_ptr())?, omit, || word.store(1, Relaxed))
    };
    "breakpoint-toggle", "a hardware breakpoint switched off and on", entered![SYS_ioctl, SYS_ioctl], 1_000.0, 1_500.0, "two entries, an event taken off and put on, a debug register written", |_, _| {
        static WORD: AtomicU32 = AtomicU32::new(0);
        toggle(Probe::on_write(WORD.as_ptr())?)
    };
    "uprobe-hit", "a call of a function with a probe at its beginning", HIT, 1_200.0, 2_500.0, "an exception or two, the probe found, its event counted", |_, omit| {
        hits(Probe::on_function(probed as fn() as usize, false)?, omit, probed)
    };
    "uretprobe-hit", "a call of a function with a probe of its return", HIT, 1_800.0, 4_000.0, "two exceptions, the return address replaced, the event counted", |_, omit| {
        hits(Probe::on_function(probed as fn() as usize, true)?, omit, probed)
    };
    "uprobe-toggle", "the event of a probe switched off and on", entered![SYS_ioctl, SYS_ioctl], 300.0, 1_200.0, "two entries, an event taken off a list and put on", |_, _| toggle(Probe::on_function(probed as fn() as usize, false)?);
    "kprobe-hit", "a call of getppid with a probe of the kernel's function", HIT, 300.0, 1_000.0, "entry and exit, a jump or an exception to the probe, its event counted", |_, omit| {
        hits(Probe::on_kernel_function(GETPPID)?, omit, || _ = getppid())
    };
    "tracepoint-hit", "a call of getppid whose tracepoint is on", HIT, 300.0, 700.0, "entry and exit by the slow path, an event counted", |_, omit| {
        hits(Probe::on_tracepoint("syscalls/sys_enter_getppid")?, omit, || _ = getppid())
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

/// Times what hits a probe, and asks the probe how often it did.
fn hits(probe: Probe, omit: Omit, hit: impl Fn() + 'static) -> Result<Box<dyn Subject>> {
    hit();
    if probe.count()? != 1 {
        return Err(Error::Missing(
            "the event can be set and does not count: an emulator or hypervisor ignores it".into(),
        ));
    }
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let before = probe.count()?;
        let ticks = clock.time(|| (0..n * u64::from(omit == Omit::Nothing)).for_each(|_| hit()));
        check_count(probe.count()? - before, n).map(|()| ticks)
    }))
}

fn check_count(seen: u64, wanted: u64) -> Result<()> {
    if seen == wanted {
        Ok(())
    } else {
        Err(Error::Contradicted(format!("{seen} events were counted in {wanted} iterations")))
    }
}

fn toggle(probe: Probe) -> Result<Box<dyn Subject>> {
    repeated("ioctl", move || probe.switch_off_and_on())
}

/// Runs of the program that one system call asks for.
fn count_runs(_: &crate::case::Place, omit: Omit) -> Result<Box<dyn Subject>> {
    let program = Counter::load()?;
    let refused = |e| match e {
        Errno::EINTR => Error::Disturbed("a signal ended the runs of the program".into()),
        _ => Error::from_case_errno("bpf BPF_PROG_TEST_RUN", e),
    };
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let before = program.count().map_err(refused)?;
        let mut answer = Ok(0);
        // More at once than a call takes are several calls.
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
