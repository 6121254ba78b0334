//! # What is timed
//! Entering the kernel and returning, with little work there: an invalid call number (`bare`: the entry and exit
//! alone), calls that return one field, the status of a file by descriptor and by path, opening and closing a file, one
//! byte read from `/dev/zero`, one written to `/dev/null` and one sent through a pipe, and yielding while no other task
//! is ready. The time is read both through the vDSO and by a real entry. Cases named `…/cold` time single calls, each
//! after the caches were displaced. `getppid/once` times the only call of a fresh process: a forked child makes it,
//! between two readings of the clock, and exits. `open` times each open by itself and closes the file afterwards, untimed. Full
//! scale adds calls on sockets (`setsockopt`, `getsockname`, `getpeername`), `chdir`, `isatty`, extended attributes, descriptors
//! of processes (`pidfd`). Default and full scale have `epoll-ctl` (registered and removed: two calls) and `uring-nop`, an
//! operation of io_uring that does nothing.
//!
//! # What is not
//! The C library: the instruction that enters the kernel is in our own loop, except for the calls of full scale and `epoll-ctl`,
//! which go through its wrappers, some 2 ns. Displacing the caches before a cold call.
//! The scratch file is created beforehand; its path has two components more than that of the temporary directory.
//!
//! # How we know
//! A witness traces some iterations with `ptrace(2)` and counts the entries and their call numbers: exactly one an
//! iteration by the call in the name, and none for the vDSO. Every answer is checked: a call that fails ends the case.
//! Time grows in proportion to the number of calls. A traced child of `getppid/once` calls once; the other children count their
//! own call and must get the number of their parent.
//!
//! # What fools it
//! C libraries have cached `getpid` (glibc before 2.25): then the kernel is entered once and the rest are loads. `open`
//! depends on the file system and on the depth of the path. `sched_yield` switches if another task shares the CPU.
//! Mitigations change the entry itself; the record's fingerprint lists them. A cold call and `open` include the cost of one clock
//! bracket (see `clock_read/bracket/own`). A loop of yours may lie where the kernel is slower by a third (`syscost help
//! limits`); ours starts at the beginning of a cache line. Displacement covers 64 MiB (4 MiB at smoke scale, which leaves much
//! of the cache warm), so on a machine with a larger last-level cache the data may still be there.
//!
//! # Reading the number
//! `syscall/bare` is the floor: what a call costs above it is its own work. Its ratio to `call/u64/0` is how much more
//! a kernel call costs than a procedure call. lmbench's `lat_syscall stat` enters newfstatat(2) through the C library; `stat` here
//! enters stat(2) on x86_64. Give it a path as deep as that of the scratch file. The cold figure is the price for a program that
//! calls rarely. `getppid/once` is between the two: the kernel has just made the process, so the kernel's own code is warm, and
//! the memory of the process is not.
//!
//! # Source
//! CSC501 project report (getppid 60 ns repeated, 2.3 µs when called once; fstat 130 ns), CSE 221 project report (time
//! 3.18 ns, getpid 3.44 ns, open 397 ns). syscalls(2), vdso(7).

mod first_call;
mod operation;
mod operation_calls;

use crate::kit::contract::*;
use crate::kit::kernel_call::{
    self, GRANTED, c_path, check_answers, check_granted, no_call_control, raw_case, time_calls,
};
use crate::kit::operation_table::table_cases;
use crate::platform::arch::Answers;
use crate::platform::syscall::{self, RawCall, Status};
use crate::platform::time;
use operation::Displacer;
use std::ffi::CString;
use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsRawFd;

pub const GROUP: Group = Group::new("syscall", include_str!("syscall.rs"), cases).version(2).headlines(&[
    Headline::new(12, "getppid", "a system call (getppid)").as_answer(),
    Headline::new(13, "fstat", "fstat of an open file"),
    Headline::new(14, "clock-gettime-vdso", "the time, without a system call"),
]);

fn cases() -> Vec<Case> {
    let mut cases = plain_call_cases();
    cases.extend(time_cases());
    cases.extend(file_cases());
    cases.extend([
        cold_case("getpid/cold", "getpid after the caches were displaced", syscall::getpid)
            .claim(Claim::Enters(vec![("getpid", libc::SYS_getpid)])),
        cold_case("gettid/cold", "gettid after the caches were displaced", syscall::gettid)
            .claim(Claim::Enters(vec![("gettid", libc::SYS_gettid)])),
        cold_case("time-vdso/cold", "time through the vDSO after the caches were displaced", time::time_vdso)
            .need(VDSO_TIME)
            .claim(Claim::NeverEnters),
        first_call::first_call_case(),
    ]);
    cases.extend(table_cases(operation_calls::ROWS, &operation_calls::BY_DEFAULT));
    cases
}

const FIELD: &str = "entry and exit, and a field of the task";

#[rustfmt::skip]
fn plain_call_cases() -> Vec<Case> {
    const REFUSED: i64 = -(libc::ENOSYS as i64);
    vec![
        raw_case("bare", "an invalid call number: entry and exit", ("no such call", 9_999), REFUSED..=REFUSED, |_| Ok(()), |()| RawCall::nonexistent_call())
            .claim(Claim::Answers(9_999, REFUSED)).predict(100.0, 60.0, "SYSCALL, SYSRET and the entry code"),
        raw_case("getpid", "getpid", ("getpid", libc::SYS_getpid), GRANTED, |_| Ok(()), |()| RawCall::getpid()).predict(100.0, 80.0, FIELD),
        raw_case("getppid", "getppid", ("getppid", libc::SYS_getppid), GRANTED, |_| Ok(()), |()| RawCall::getppid()).predict(100.0, 90.0, FIELD),
        raw_case("gettid", "gettid", ("gettid", libc::SYS_gettid), GRANTED, |_| Ok(()), |()| RawCall::gettid()).predict(100.0, 80.0, FIELD),
        raw_case("sched-yield", "sched_yield with no task to yield to", ("sched_yield", libc::SYS_sched_yield), GRANTED, |_| Ok(()), |()| RawCall::sched_yield())
            .predict(100.0, 500.0, "the scheduler looks for another task under its lock"),
    ]
}

#[rustfmt::skip]
fn time_cases() -> Vec<Case> {
    vec![
        vdso_case("time-vdso", "time through the vDSO", time::time_vdso)
            .need(VDSO_TIME).claim(Claim::Calls(time::time_address)).predict(4.0, 6.0, "a load from the kernel's page"),
        vdso_case("clock-gettime-vdso", "clock_gettime(monotonic) through the vDSO", || time::clock_gettime_ns(libc::CLOCK_MONOTONIC) as i64)
            .need(VDSO_CLOCK).claim(Claim::Calls(time::clock_gettime_address)).predict(25.0, 30.0, "a counter read, and the arithmetic of the vDSO"),
        raw_case("clock-gettime-entry", "clock_gettime(monotonic) by entering the kernel", ("clock_gettime", libc::SYS_clock_gettime), 0..=0,
            |_| Ok(libc::timespec { tv_sec: 0, tv_nsec: 0 }), |read| RawCall::clock_gettime(libc::CLOCK_MONOTONIC, read))
            .predict(150.0, 120.0, "entry and exit, a counter read, a copy to user space"),
        #[cfg(target_arch = "x86_64")]
        raw_case("time-entry", "time by entering the kernel", ("time", libc::SYS_time), GRANTED, |_| Ok(()), |()| RawCall::time())
            .predict(100.0, 90.0, "entry and exit, and a field of the timekeeper"),
    ]
}

#[rustfmt::skip]
fn file_cases() -> Vec<Case> {
    vec![
        raw_case("fstat", "fstat of an open scratch file", ("fstat", libc::SYS_fstat), 0..=0,
            |place| Ok((scratch_file(place)?, Status::default())), |(file, status)| RawCall::fstat(file.as_raw_fd(), status))
            .predict(100.0, 250.0, "entry and exit, and a structure of 144 bytes"),
        raw_case("read-zero", "read of one byte from /dev/zero", ("read", libc::SYS_read), 1..=1,
            |_| Ok((open_device("/dev/zero")?, 0)), |(file, byte)| RawCall::read_byte(file.as_raw_fd(), byte))
            .claim(Claim::Answers(libc::SYS_read, 1)).predict(100.0, 250.0, "entry and exit, the file's position lock, one byte"),
        raw_case("write-null", "write of one byte to /dev/null", ("write", libc::SYS_write), 1..=1,
            |_| open_device("/dev/null"), |file| RawCall::write_byte(file.as_raw_fd(), &1))
            .claim(Claim::Answers(libc::SYS_write, 1)).predict(100.0, 200.0, "entry and exit, the file's position lock, nothing"),
        pipe_case()
            .claim(Claim::Enters(vec![("write", libc::SYS_write), ("read", libc::SYS_read)]))
            .claim(Claim::Answers(libc::SYS_write, 1)).claim(Claim::Answers(libc::SYS_read, 1))
            .predict(200.0, 700.0, "two entries, the pipe's lock twice, a page for the byte"),
        raw_case("stat", "stat of a scratch file by path", syscall::STAT, 0..=0,
            |place| Ok((scratch_path(place)?, Status::default())), |(path, status)| RawCall::stat(path, status))
            .predict(100.0, 1200.0, "a walk over the path, some 300 cycles a component"),
        open_close_case()
            .claim(Claim::Enters(vec![syscall::OPEN, ("close", libc::SYS_close)]))
            .predict(200.0, 3000.0, "the walk, a file structure allocated and freed"),
        open_case()
            .claim(Claim::Enters(vec![syscall::OPEN, ("close", libc::SYS_close)]))
            .predict(100.0, 2000.0, "the walk, and a file structure allocated"),
    ]
}

fn pipe_case() -> Case {
    let turns = set_up(|_| {
        let (read, write) = nix::unistd::pipe().map_err(|e| Error::from_errno("pipe", e))?;
        Ok(move |n: u64, clock: &Clock| {
            let mut lowest = [1; 2];
            let ticks = clock.time(|| {
                lowest = syscall::repeat_write_read(write.as_raw_fd(), read.as_raw_fd(), &mut 0, n);
            });
            for (call, lowest) in ["write", "read"].into_iter().zip(lowest) {
                check_answers(call, &(1..=i64::MAX), Answers { lowest, highest: lowest })?;
            }
            Ok(ticks)
        })
    });
    kernel_call::call_case("pipe", "one byte written to a pipe and read from it again, by one process", turns)
        .control_set_up(no_call_control())
}

fn open_close_case() -> Case {
    let turns = set_up(|place| {
        let path = scratch_path(place)?;
        Ok(move |n: u64, clock: &Clock| {
            let mut lowest = 0;
            let ticks = clock.time(|| lowest = syscall::repeat_open_close(&path, n));
            check_granted("open and close", lowest).map(|()| ticks)
        })
    });
    kernel_call::call_case("open-close", "open and close of a scratch file", turns)
        .control_set_up(no_call_control())
}

/// A case that times each open by itself. The descriptor is closed after the second reading of the clock.
fn open_case() -> Case {
    let single = set_up(|place| {
        let path = scratch_path(place)?;
        Ok(move |n: u64, clock: &Clock| {
            let close = |_: &mut (), opened| {
                check_granted("open", opened)?;
                let closed = nix::unistd::close(opened as i32);
                closed.map(|()| Counts::Yes).map_err(|errno| Error::from_errno("close", errno))
            };
            clock.time_each(n, &mut (), |()| Ok(()), |()| syscall::open(&path), close)
        })
    });
    Case::new("open", "open of a scratch file, without its close", single).one_by_one()
}

/// A case that does not enter the kernel. The closure is inlined into the loop, so that no function call is added.
fn vdso_case(name: &'static str, title: &'static str, once: impl Fn() -> i64 + Copy + 'static) -> Case {
    let turns = set_up(move |_| Ok(move |n: u64, clock: &Clock| time_calls(name, n, clock, once)));
    kernel_call::call_case(name, title, turns).claim(Claim::NeverEnters)
}

/// A case of single calls, each after the caches were displaced.
fn cold_case(name: &'static str, title: &'static str, once: impl Fn() -> i64 + Copy + 'static) -> Case {
    let single = set_up(move |place| {
        let bytes = if place.scale == Scale::Smoke { 4 << 20 } else { 64 << 20 };
        let mut displacer = Displacer::new(bytes)?;
        Ok(move |n: u64, clock: &Clock| {
            clock.time_each(
                n,
                &mut displacer,
                |displacer| {
                    black_box(displacer.displace_caches());
                    Ok(())
                },
                |_| once(),
                |_, answer| check_granted(name, answer).map(|()| Counts::Yes),
            )
        })
    });
    let case = Case::new(name, title, single).need(Need::new(check_displaceable)).one_by_one();
    case.predict(1500.0, 1500.0, "some ten lines of code and data from memory, translations walked")
}

/// Checks that written memory may be made executable, which some sandboxes forbid.
fn check_displaceable(_: &Place) -> std::result::Result<(), String> {
    let refused = |e| format!("code cannot be displaced here ({e}): allow written memory to be executed");
    Displacer::new(64).map(drop).map_err(refused)
}

fn scratch_file(place: &Place) -> Result<File> {
    let path = place.scratch.join("file");
    File::create(&path).map_err(|e| Error::file(path, "creating", e))
}

fn scratch_path(place: &Place) -> Result<CString> {
    scratch_file(place)?;
    c_path(&place.scratch.join("file"))
}

fn open_device(path: &str) -> Result<File> {
    let file = File::options().read(true).write(true).open(path);
    file.map_err(|e| Error::file(path, "opening", e))
}
