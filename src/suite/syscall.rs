//! # What is timed
//! Entering the kernel and returning, with as little work there as each call allows: an invalid call number (`bare`:
//! the entry and exit alone), calls that return one field, the status of a file by descriptor and by path, opening and
//! closing a file, one byte read from `/dev/zero`, one written to `/dev/null` and one sent through a pipe, and yielding
//! while no other task is ready. The time is read both through the vDSO and by a real entry. Cases named `…/cold` time
//! single calls, each after the caches were displaced.
//!
//! # What is not
//! The C library: the instruction that enters the kernel is in our own loop. Displacing the caches before a cold call.
//! The scratch file is created beforehand; its path has two components more than that of the temporary directory.
//!
//! # How we know
//! A witness traces some iterations with `ptrace(2)` and counts the entries and their call numbers: exactly one an
//! iteration by the call in the name, and none for the vDSO. Every answer is checked: a call that fails ends the case.
//! Time grows in proportion to the number of calls.
//!
//! # What fools it
//! C libraries have cached `getpid` (glibc before 2.25): then the kernel is entered once and the rest are loads. `open`
//! depends on the file system and on the depth of the path. `sched_yield` switches if another task shares the CPU.
//! Mitigations change the entry itself; the record's fingerprint lists them. A cold call includes the cost of one clock
//! bracket (see `clock_read/bracket/own`). Displacement covers 64 MiB (4 MiB at smoke scale, which leaves much of the
//! cache warm), so on a machine with a larger last-level cache the data may still be there.
//!
//! # Reading the number
//! `syscall/bare` is the floor: what a call costs above it is its own work. Its ratio to `call/u64/0` is how much more
//! a kernel call costs than a procedure call. The cold figure is what a program pays that calls rarely.
//!
//! # Source
//! CSC501 project report (getppid 60 ns repeated, 2.3 µs when called once; fstat 130 ns), CSE 221 project report (time
//! 3.18 ns, getpid 3.44 ns, open 397 ns). syscalls(2), vdso(7).

mod operation;

use crate::case::need::VDSO_CLOCK;
use crate::case::{Case, Claim, Group, Need, Place, Scale, set_up};
use crate::clock::{Clock, Counts};
use crate::error::{Error, Result};
use crate::kit::kernel_call::{self, granted, repeat};
use crate::platform::syscall::{self, Status};
use crate::platform::time;
use crate::record::Headline;
use operation::Displacer;
use std::ffi::CString;
use std::fs::File;
use std::hint::black_box;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

pub const GROUP: Group = Group::new("syscall", include_str!("syscall.rs"), cases).headlines(&HEADLINES);

const HEADLINES: [Headline; 3] = [
    Headline::new(12, "getppid", "a system call (getppid)"),
    Headline::new(13, "fstat", "fstat of an open file"),
    Headline::new(14, "clock-gettime-vdso", "the time, without a system call"),
];

fn cases() -> Vec<Case> {
    let mut cases = plain();
    cases.extend(times());
    cases.extend(files());
    cases.extend([
        cold("getpid/cold", "getpid after the caches were displaced", syscall::getpid)
            .claim(enters("getpid", libc::SYS_getpid)),
        cold("gettid/cold", "gettid after the caches were displaced", syscall::gettid)
            .claim(enters("gettid", libc::SYS_gettid)),
        cold("time-vdso/cold", "time through the vDSO after the caches were displaced", time::time_vdso)
            .claim(Claim::NeverEnters),
    ]);
    cases
}

fn plain() -> Vec<Case> {
    const FIELD: &str = "entry and exit, and a field of the task";
    vec![
        entering("bare", "an invalid call number: entry and exit", || {
            syscall::bare() + i64::from(libc::ENOSYS)
        })
        .claim(enters("no such call", 9_999))
        .claim(Claim::Answers(9_999, -(libc::ENOSYS as i64)))
        .predict(100.0, 60.0, "SYSCALL, SYSRET and the entry code"),
        entering("getpid", "getpid", syscall::getpid)
            .claim(enters("getpid", libc::SYS_getpid))
            .predict(100.0, 80.0, FIELD),
        entering("getppid", "getppid", syscall::getppid)
            .claim(enters("getppid", libc::SYS_getppid))
            .predict(100.0, 90.0, FIELD),
        entering("gettid", "gettid", syscall::gettid)
            .claim(enters("gettid", libc::SYS_gettid))
            .predict(100.0, 80.0, FIELD),
        entering("sched-yield", "sched_yield with nobody to yield to", syscall::sched_yield)
            .claim(enters("sched_yield", libc::SYS_sched_yield))
            .predict(100.0, 500.0, "the scheduler looks for another task under its lock"),
    ]
}

fn times() -> Vec<Case> {
    vec![
        entering("time-vdso", "time through the vDSO", time::time_vdso)
            .claim(Claim::NeverEnters)
            .claim(Claim::Calls(time::time_address))
            .predict(4.0, 6.0, "a load from the kernel's page"),
        entering("clock-gettime-vdso", "clock_gettime(monotonic) through the vDSO", || {
            time::clock_gettime_ns(libc::CLOCK_MONOTONIC) as i64
        })
        .need(VDSO_CLOCK)
        .claim(Claim::NeverEnters)
        .claim(Claim::Calls(time::clock_gettime_address))
        .predict(25.0, 30.0, "a counter read, and the arithmetic of the vDSO"),
        entering("clock-gettime-entry", "clock_gettime(monotonic) by entering the kernel", || {
            time::clock_gettime_entry_ns(libc::CLOCK_MONOTONIC) as i64
        })
        .claim(enters("clock_gettime", libc::SYS_clock_gettime))
        .predict(150.0, 120.0, "entry and exit, a counter read, a copy to user space"),
        #[cfg(target_arch = "x86_64")]
        entering("time-entry", "time by entering the kernel", time::time_entry)
            .claim(enters("time", libc::SYS_time))
            .predict(100.0, 90.0, "entry and exit, and a field of the timekeeper"),
    ]
}

fn files() -> Vec<Case> {
    vec![
        opened("fstat", "fstat of an open scratch file", scratch_file, |file| {
            let mut status = Status::default();
            move || syscall::fstat(file.as_raw_fd(), &mut status)
        })
        .claim(enters("fstat", libc::SYS_fstat))
        .predict(100.0, 250.0, "entry and exit, and a structure of 144 bytes"),
        opened(
            "read-zero",
            "read of one byte from /dev/zero",
            |_| device("/dev/zero"),
            |file| {
                let mut byte = 0;
                move || syscall::read_byte(file.as_raw_fd(), &mut byte) - 1
            },
        )
        .claim(enters("read", libc::SYS_read))
        .claim(Claim::Answers(libc::SYS_read, 1))
        .predict(100.0, 250.0, "entry and exit, the file's position lock, one byte"),
        opened(
            "write-null",
            "write of one byte to /dev/null",
            |_| device("/dev/null"),
            |file| move || syscall::write_byte(file.as_raw_fd(), &1) - 1,
        )
        .claim(enters("write", libc::SYS_write))
        .claim(Claim::Answers(libc::SYS_write, 1))
        .predict(100.0, 200.0, "entry and exit, the file's position lock, nothing"),
        opened(
            "pipe",
            "one byte written to a pipe and read from it again, by one process",
            |_| pipe(),
            |(read, write)| {
                let mut byte = 0;
                move || {
                    let written = syscall::write_byte(write.as_raw_fd(), &1);
                    // The lower answer is negative if either call failed.
                    written.min(syscall::read_byte(read.as_raw_fd(), &mut byte)) - 1
                }
            },
        )
        .claim(Claim::Enters(vec![("write", libc::SYS_write), ("read", libc::SYS_read)]))
        .claim(Claim::Answers(libc::SYS_write, 1))
        .claim(Claim::Answers(libc::SYS_read, 1))
        .predict(200.0, 700.0, "two entries, the pipe's lock twice, a page for the byte"),
        opened("stat", "stat of a scratch file by path", scratch_path, |path| {
            let mut status = Status::default();
            move || syscall::stat(&path, &mut status)
        })
        .claim(Claim::Enters(vec![syscall::STAT]))
        .predict(100.0, 1200.0, "a walk over the path, some 300 cycles a component"),
        opened("open-close", "open and close of a scratch file", scratch_path, |path| {
            move || syscall::open_close(&path)
        })
        .claim(Claim::Enters(vec![syscall::OPEN, ("close", libc::SYS_close)]))
        .predict(200.0, 3000.0, "the walk, a file structure allocated and freed"),
    ]
}

fn enters(name: &'static str, number: i64) -> Claim {
    Claim::Enters(vec![(name, number)])
}

/// A case without set-up. The closure is copied into the loop, so that no call stands between.
fn entering(name: &'static str, title: &'static str, once: impl Fn() -> i64 + Copy + 'static) -> Case {
    opened(name, title, |_| Ok(()), move |()| once)
}

/// A case that works on something opened beforehand.
fn opened<T: 'static, F: FnMut() -> i64 + 'static>(
    name: &'static str,
    title: &'static str,
    open: fn(&Place) -> Result<T>,
    once: impl Fn(T) -> F + 'static,
) -> Case {
    let repeated = set_up(move |place| {
        let mut once = once(open(place)?);
        Ok(move |n: u64, clock: &Clock| repeat(name, n, clock, &mut once))
    });
    kernel_call::case(name, title, repeated)
}

/// A case of single calls, each after the caches were displaced.
fn cold(name: &'static str, title: &'static str, once: impl Fn() -> i64 + Copy + 'static) -> Case {
    let single = set_up(move |place| {
        let bytes = if place.scale == Scale::Smoke { 4 << 20 } else { 64 << 20 };
        let mut displacer = Displacer::new(bytes)?;
        Ok(move |n: u64, clock: &Clock| {
            clock.each(
                n,
                &mut displacer,
                |displacer| {
                    black_box(displacer.displace());
                    Ok(())
                },
                |_| once(),
                |_, answer| granted(name, answer).map(|()| Counts::Yes),
            )
        })
    });
    Case::new(name, title, single).need(Need::new(executable)).one_by_one().predict(
        1500.0,
        1500.0,
        "some ten lines of code and data from memory, translations walked",
    )
}

/// Some sandboxes forbid executing memory that was written before.
fn executable(_: &Place) -> std::result::Result<(), String> {
    let refused = |e| format!("code cannot be displaced here ({e}): allow written memory to be executed");
    Displacer::new(64).map(drop).map_err(refused)
}

fn scratch_file(place: &Place) -> Result<File> {
    let path = place.scratch.join("file");
    File::create(&path).map_err(|e| Error::file(path, "creating", e))
}

fn scratch_path(place: &Place) -> Result<CString> {
    scratch_file(place)?;
    let path = place.scratch.join("file");
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Usage(format!("{}: a path holds a zero byte", path.display())))
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    nix::unistd::pipe().map_err(|e| Error::refused("pipe (raise `ulimit -n`)", e))
}

fn device(path: &str) -> Result<File> {
    let file = File::options().read(true).write(true).open(path);
    file.map_err(|e| Error::file(path, "opening", e))
}
