//! # What is timed
//! Reading the time, one read after another, in every way: the counter alone and behind each kind of barrier, the
//! kernel's clocks through the vDSO and by a real entry, and what Rust's library offers. The cases `bracket/…` measure
//! the clock itself: the distribution of the time between two reads with nothing between them. Every measurement of a
//! single operation includes that time.
//!
//! # What is not
//! The loop around the reads (about one cycle, hidden behind the read).
//!
//! # How we know
//! Time grows in proportion to the number of reads. A witness steps through 64 reads: those through the vDSO never
//! enter the kernel, the others enter it once each, by the call that their name says.
//!
//! # What fools it
//! In a guest, `cpuid` traps to the hypervisor: as a barrier it costs thousands of ticks and leaves cold caches behind,
//! while the *difference* it shows (`bracket/cpuid`) is as small as on hardware. That is why the recipe of 2010 is a
//! case here and not the clock of this crate. If the vDSO cannot read the clock source, `clock_gettime` is a system
//! call: such cases are skipped with the name of the source.
//!
//! # Reading the number
//! `lfence-rdtsc-rdtscp-lfence` (on AArch64 `isb-cntvct-isb-cntvct-isb`) is this crate's clock, both ends. Everything
//! that it times in one batch should be a thousand times longer, and is.
//!
//! # Source
//! CSC501 project report (52 cycles for `cpuid; rdtsc … rdtscp; cpuid`), CSE 221 project report (312 cycles for a bare
//! `rdtsc` function), Paoloni, *How to Benchmark Code Execution Times on Intel IA-32 and IA-64* (2010).
//! clock_gettime(2), vdso(7).

use crate::kit::contract::*;
use crate::kit::kernel_call::raw_loop_set_up;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
use crate::platform::arch;
use crate::platform::syscall::RawCall;
use crate::platform::time;
use std::hint::black_box;

pub const GROUP: Group =
    Group::new("clock_read", include_str!("clock_read.rs"), cases).version(2).headlines(&[
        Headline::new(1, "bracket/cpuid", "nothing, between two readings"),
        Headline::new(2, "rdtsc", "the counter read"),
    ]);

/// Clocks that the vDSO can read: name in the id, and the kernel's number.
const VDSO: [(&str, libc::clockid_t); 7] = [
    ("realtime", libc::CLOCK_REALTIME),
    ("monotonic", libc::CLOCK_MONOTONIC),
    ("monotonic-raw", libc::CLOCK_MONOTONIC_RAW),
    ("boottime", libc::CLOCK_BOOTTIME),
    ("tai", libc::CLOCK_TAI),
    ("realtime-coarse", libc::CLOCK_REALTIME_COARSE),
    ("monotonic-coarse", libc::CLOCK_MONOTONIC_COARSE),
];

/// Clocks that are read by entering the kernel; the CPU-time clocks cannot be read otherwise.
const ENTRY: [(&str, libc::clockid_t); 3] = [
    ("monotonic", libc::CLOCK_MONOTONIC),
    ("thread-cputime", libc::CLOCK_THREAD_CPUTIME_ID),
    ("process-cputime", libc::CLOCK_PROCESS_CPUTIME_ID),
];

fn cases() -> Vec<Case> {
    let vdso = VDSO.iter().map(|&(name, id)| {
        read(format!("vdso/{name}"), format!("clock_gettime({name}) through the vDSO"), move || {
            time::clock_gettime_ns(id)
        })
        .claim(Claim::NeverEnters)
        .claim(Claim::Calls(time::clock_gettime_address))
        .predict(25.0, 30.0, "a counter read, and the arithmetic of the vDSO")
    });
    // The coarse clocks hold the time of the last tick, which needs no counter.
    let need = |case: &Case| if case.name.ends_with("coarse") { VDSO_COARSE } else { VDSO_CLOCK };
    let vdso = vdso.map(|case| {
        let need = need(&case);
        case.need(need)
    });
    let entry = ENTRY.iter().map(|&(name, id)| {
        let unread = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let calls = raw_loop_set_up(
            "clock_gettime",
            0..=0,
            move |_| Ok(unread),
            move |time| RawCall::clock_gettime(id, time),
        );
        let title = format!("clock_gettime({name}) by entering the kernel");
        Case::new(format!("syscall/{name}"), title, calls)
            .claim(Claim::Linear)
            .claim(Claim::Enters(vec![("clock_gettime", libc::SYS_clock_gettime)]))
            .predict(150.0, 150.0, "entry and exit, and the kernel's own reading")
    });
    counter_reads()
        .into_iter()
        .chain([own_clock_case()])
        .chain(vdso)
        .chain(entry)
        .chain(rust_clock_cases())
        .chain(bracket_cases())
        .collect()
}

/// The need that the processor has `rdtscp`, the read that closes a bracket.
#[cfg(target_arch = "x86_64")]
const RDTSCP: Need = Need::new(|_| ensure(arch::has_rdtscp(), || arch::NO_RDTSCP.into()));

/// Cycles of a trap to a hypervisor that runs on hardware itself. Beneath a second hypervisor 23 000 were seen.
#[cfg(target_arch = "x86_64")]
const TRAP: f64 = 1_500.0;

#[cfg(target_arch = "x86_64")]
fn counter_reads() -> Vec<Case> {
    let serialize = Need::new(|_| match arch::has_serialize() {
        true => Ok(()),
        false => Err("this processor has no SERIALIZE instruction (CPUID leaf 7, EDX bit 14)".into()),
    });
    let traps = if arch::is_guest() { 2.0 * TRAP } else { 0.0 };
    #[rustfmt::skip]
    let reads = vec![
        read("rdtsc", "the counter, unordered", arch::read).predict(20.0, 0.0, "microcoded read"),
        read("lfence-rdtsc", "the counter, after all earlier work", arch::start)
            .predict(25.0, 0.0, "the read, once the pipeline has drained"),
        read("rdtscp-lfence", "the counter and the CPU, before all later work", arch::stop)
            .need(RDTSCP).predict(35.0, 0.0, "the read, which waits by itself, and a drain"),
        read("serialize-rdtsc", "the counter behind SERIALIZE", arch::read_serialize)
            .need(serialize).predict(60.0, 0.0, "serialisation drains stores too"),
        read("lfence-rdtsc-rdtscp-lfence", "both ends of this crate's bracket", || arch::start() ^ arch::stop())
            .need(RDTSCP).predict(60.0, 0.0, "the sum of its two ends"),
        read("cpuid-rdtsc-rdtscp-cpuid", "both ends of the bracket of 2010", || arch::start_cpuid() ^ arch::stop_cpuid())
            .need(RDTSCP).predict(300.0, traps, "serialisation twice; in a guest two traps to its hypervisor"),
    ];
    reads.into_iter().map(|case| case.claim(Claim::NeverEnters)).collect()
}

#[cfg(target_arch = "aarch64")]
#[rustfmt::skip]
fn counter_reads() -> Vec<Case> {
    vec![
        read("cntvct", "the counter, unordered", arch::read).predict(20.0, 0.0, "a system register read"),
        read("isb-cntvct", "the counter, after all earlier work", arch::start)
            .predict(40.0, 0.0, "the read, once the pipeline has drained"),
        read("isb-cntvct-isb-cntvct-isb", "both ends of this crate's bracket", || arch::start() ^ arch::stop())
            .predict(100.0, 0.0, "the sum of its two ends"),
    ]
}

#[cfg(target_arch = "riscv64")]
#[rustfmt::skip]
fn counter_reads() -> Vec<Case> {
    vec![
        read("rdtime", "the counter, unordered", arch::read).predict(30.0, 0.0, "a CSR read"),
        read("fence-rdtime", "the counter, after all earlier memory accesses", arch::start)
            .predict(50.0, 0.0, "the read, once the accesses are done"),
        read("fence-rdtime-fence-rdtime-fence", "both ends of this crate's bracket", || arch::start() ^ arch::stop())
            .predict(100.0, 0.0, "the sum of its two ends"),
    ]
}

/// On other processors no counter is known.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
fn counter_reads() -> Vec<Case> {
    Vec::new()
}

/// This crate's clock, which chooses its counter at run time: it should cost hardly more than the bracket alone. Here
/// the bracket itself is the operation, so it is opened and closed inside [`Clock::time`].
fn own_clock_case() -> Case {
    let brackets = set_up(|_| {
        Ok(|n: u64, clock: &Clock| {
            Ok(clock.time(|| (0..n).for_each(|_| _ = black_box(clock.stop() - clock.start()))))
        })
    });
    Case::new("clock", "both ends through this crate's Clock", brackets)
        .claim(Claim::NeverEnters)
        .claim(Claim::Linear)
        .predict(60.0, 2.0, "the bracket, and a branch on which counter it is")
}

#[rustfmt::skip]
fn rust_clock_cases() -> [Case; 2] {
    let cases = [
        read("instant", "std::time::Instant::now", std::time::Instant::now)
            .predict(25.0, 35.0, "clock_gettime(monotonic) through the vDSO, checked"),
        read("system-time", "std::time::SystemTime::now", std::time::SystemTime::now)
            .predict(25.0, 35.0, "clock_gettime(realtime) through the vDSO, checked"),
    ];
    cases.map(|case| case.claim(Claim::Calls(time::clock_gettime_address)))
}

/// Brackets around nothing, one at a time. The bracket of 2010 has reads of its own, so it records its ticks itself.
fn bracket_cases() -> Vec<Case> {
    let own =
        bracket_case("bracket/own", "what this crate's clock says of nothing", |clock| clock.time(|| ()))
            .predict(30.0, 0.0, "the distance of the two reads");
    #[cfg(target_arch = "x86_64")]
    let cpuid = bracket_case("bracket/cpuid", "what the bracket of 2010 says of nothing", |clock| {
        let start = arch::start_cpuid();
        clock.record_bracket(Ticks(arch::stop_cpuid().saturating_sub(start)))
    })
    .need(RDTSCP)
    .predict(30.0, 0.0, "the distance of the two reads: the barriers stand outside");
    #[cfg(target_arch = "x86_64")]
    return vec![own, cpuid];
    #[cfg(not(target_arch = "x86_64"))]
    vec![own]
}

/// The case of reading the time by `how`, one read after another.
fn read<T>(name: impl Into<String>, title: impl Into<String>, how: impl Fn() -> T + Copy + 'static) -> Case {
    Case::looped(name, title, move |n| {
        for _ in 0..n {
            black_box(how());
        }
    })
    .claim(Claim::Linear)
}

/// The case of single brackets around nothing; `once` returns the time of one.
fn bracket_case(name: &'static str, title: &'static str, once: fn(&Clock) -> Ticks) -> Case {
    let one_by_one = set_up(move |_| Ok(move |n: u64, clock: &Clock| Ok((0..n).map(|_| once(clock)).sum())));
    Case::new(name, title, one_by_one).claim(Claim::NeverEnters).one_by_one()
}
