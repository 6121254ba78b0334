//! Kernels with unusual answers, simulated by a library that is loaded before the C library: clocks that enter the kernel,
//! and a scheduler that accepts an affinity and does not obey it.

use crate::place::{Ended, Place};
use std::path::PathBuf;
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// Makes every reading of a clock a system call, as with the clock sources hpet, acpi_pm, xen and user-mode Linux's timer.
const ENTERING: &str = r"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) { return syscall(SYS_clock_gettime, id, t); }
";

/// Always reports another CPU than the one to which the thread was pinned, as gVisor may do.
const STRAYING: &str = r"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
int sched_getcpu(void) { unsigned cpu = 0; syscall(SYS_getcpu, &cpu, 0, 0); return cpu ^ 1; }
";

/// Accepts an affinity, and returns another one.
const FORGETFUL: &str = r"
#define _GNU_SOURCE
#include <sched.h>
int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set) { return 0; }
";

/// A library built from this source; `None` without a compiler.
fn library(place: &Place, source: &str) -> Option<PathBuf> {
    let (text, library) = (place.path().join("shim.c"), place.path().join("shim.so"));
    std::fs::write(&text, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&text);
    if compiler.output().is_ok_and(|output| output.status.success()) {
        return Some(library);
    }
    print_skipped("there is no C compiler `cc`");
    None
}

/// A run with these words under a library built from this source.
fn under(place: &Place, source: &str, words: &[&str], clock: Option<&str>) -> Option<Ended> {
    let library = library(place, source)?;
    let run = || {
        let mut command = place.run(words);
        command.env("LD_PRELOAD", &library).envs(clock.map(|clock| ("SYSCOST_CLOCK", clock)));
        command
    };
    place.at_rest(run)
}

#[test]
fn a_clock_that_enters_the_kernel_condemns_no_honest_case() {
    const CASES: &str = "^(signal/(caught|timer)|wake_up/[a-z-]+|fork/fork|syscall/(getppid|.*vdso|.*cold)\
         |clock_read/(clock|instant|bracket/own|vdso/.*|syscall/monotonic)|file_ops/(stat|fsync)/.*)$";
    let place = Place::new();
    let Some(ended) = under(&place, ENTERING, &[CASES], Some("monotonic-raw")) else { return };
    ended.says(0, &[" 0 failed", "user space cannot read this clock here"]);
    let record = place.record().to_string();
    assert!(record.contains("each of which enters the kernel here"), "{record}");
    assert!(record.contains("whether the operation reads the clock itself is not known"), "{record}");
    place.is_tidy();
}

#[test]
fn a_thread_that_is_not_kept_is_measured_and_it_is_said_what_was_seen() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        print_skipped("it takes two CPUs to be on the wrong one");
        return;
    }
    for (source, words) in [
        (STRAYING, ": this kernel does not keep a thread on its CPU"),
        (FORGETFUL, "was asked for, sched_getaffinity answered"),
    ] {
        let place = Place::new();
        let Some(ended) = under(&place, source, &[crate::place::TWO_GROUPS], None) else { return };
        ended.says(0, &["3 measured, 0 skipped, 0 failed", words]);
        let Some(ended) = under(&place, source, &["^ping_pong/"], None) else { return };
        ended.says(1, &["0 measured", " 0 failed", "nothing was measured", "is not kept on a CPU"]);
        place.is_tidy();
    }
}
