//! # What is timed
//! The first touch of a page that is not in the page table. The kernel must then make a fresh anonymous page of 4 KiB
//! or 2 MiB (`anonymous`; for `anonymous/read` its shared page of zeroes suffices); find a page of a file in the page
//! cache (`cached`) or read it from the disk (`major`); copy a page that a forked child keeps (`copy-on-write`); make a
//! write-protected page writable (`write-protect`); ask another thread to fill the page (`userfaultfd`). `second-touch`
//! and `third-touch` touch the same page again after it was read from the disk: the second after its mapping was
//! removed, the third without. `sparse-40GB` touches a mapped file of 40 GB that is one hole, at index 0 or at a random
//! page, each time after it was opened and mapped anew; for `alone` the kernel is advised to bring in only the touched
//! page.
//!
//! # What is not
//! Making the next touch a fault again: `madvise(MADV_DONTNEED)`, `mprotect`, the fork and the child's end, and
//! evicting the file from the page cache (`fsync` once, then `POSIX_FADV_DONTNEED`), which needs no root. The page
//! tables exist, except for the first huge page and for `sparse-40GB`. Huge pages are used in turn, so that in a small
//! batch as much memory lies between two touches of the same page as in a large one. The number includes the loop that
//! touches and, where a touch is timed by itself (`major`), the clock's bracket of some 10 ns.
//!
//! # How we know
//! Around each timed part the kernel's own count of this thread's faults is read. It must be one per touch, minor or
//! major as the id says; where one fault may serve many touches, at least one and at most one per touch. If a touch of a
//! file was another kind of fault than its case says, it is discarded and repeated; the evidence says how many were.
//! Before pages are read from the disk, `mincore` must find none of the file in the page cache, and `cachestat` none
//! that is being read; the kernel must charge the thread with the bytes read from a device; each byte is compared with
//! what was written. The file system must be on a disk: memory (tmpfs, ramfs, zram) is refused, and so is a loop
//! device that reads through the cache of the file below it. `mincore` must show that the touch of its first byte
//! makes all of a huge page resident. The handler of `userfaultfd` counts what it fills.
//!
//! # What fools it
//! Dividing by pages: one fault maps up to sixteen cached neighbours (fault-around), and all of a large folio,
//! whatever `MADV_RANDOM` says. Without advice the first touch reads as much as the device's read-ahead
//! (`/sys/block/*/queue/read_ahead_kb`, from 128 KiB to 8 MiB) allows: a page read alone is cheaper than one read with
//! its surroundings, and the touches that follow cost next to nothing. Touching a cached page does not measure a disk,
//! and after the first touch a page is cached: that was once published as a page fault a hundred times as fast. A
//! sparse file of 40 GB has nothing on the disk, however much longer than the memory it is. For a hole the kernel
//! takes fresh pages for the touched one and for all that the device's read-ahead has room for (32 pages at 128 KiB,
//! 2048 at 8 MiB), fills them with zeroes and puts them into the page cache. No device is read, and the fault counts
//! as major all the same, because the page was not in the cache: `time -v` does not tell it from a fault that reads
//! the disk. In a guest the host may have the page in its cache, and a disk has a cache too: reads are then faster
//! than the medium. The kernel counts a fault as major if it had to be retried, even if no device was involved: all
//! faults that `userfaultfd` resolves are major. A write after `mprotect` has returned the permission causes no fault
//! on kernels that see that the page is not shared (since Linux 5.19); the evidence says whether there was one. A control
//! group near its limit reclaims memory at every fault. With read-ahead a touch waits for milliseconds, and kernel
//! threads, which read the rest, use this CPU for some hundredths of that time: such samples are rightly counted as
//! disturbed.
//!
//! # Reading the number
//! `major-random/first-touch` should be the latency of the disk's random read of 4 KiB, as `fio --direct=1` reports
//! it, plus some microseconds for the fault. `sparse-40GB-alone` is what the kernel itself does in such a fault.
//! `sparse-40GB` grows with the read-ahead, and with 8 MiB it takes longer than a page from a flash disk. Below the
//! table, `fault` is the time per counted fault, `touch` per touched page, `byte` per byte of these pages, ns.
//! `copy-on-write/child-keeps` costs more than `child-gone` by the copy of a page. `write-protect/mprotect` has no
//! `fault` if there was none.
//!
//! # Source
//! CSC501 project report (18.1 ms a major fault from a hard disk, 4.5 µs a byte; the third touch a hundred times
//! faster); CSE 221 project report (index 0 and a random page of a mapped file of 40 GB: 53300967 cycles each, which at its
//! 3.5 GHz are 15.2 ms and fit its disk of 7200 RPM, and beside them 15228 ns, a thousandth of that: `major-random/read-ahead`
//! stands beside the former, `sparse-40GB` beside the latter); lmbench's `lat_pagefault`, whose faults are minor; mmap(2),
//! madvise(2), posix_fadvise(2), mincore(2), userfaultfd(2), proc_pid_io(5).

mod anonymous;
mod cached_page;
mod disk_page;
mod operation;
mod sparse_file;
pub mod touch;

use crate::kit::contract::*;
use crate::kit::fault_count::counts_faults;
use touch::Expected;

pub const GROUP: Group =
    Group::new("page_fault", include_str!("page_fault.rs"), cases).version(3).headlines(&[
        Headline::new(42, "anonymous/4KiB", "a fresh page, touched").as_answer(),
        Headline::new(43, "major-random/first-touch", "a page fetched from disk"),
    ]);

fn cases() -> Vec<Case> {
    [anonymous::cases(), operation::cases(), cached_page::cases(), disk_page::cases(), sparse_file::cases()]
        .into_iter()
        .flatten()
        .map(limit_timed_share)
        .collect()
}

/// Sets the timed share of a case to at most 1 %: before each touch the pages are unmapped, protected, evicted or shared. That is
/// untimed and takes a hundred times as long as some touches.
fn limit_timed_share(case: Case) -> Case {
    let share = case.timed_share.min(0.01);
    case.timed_share(share)
}

/// Adds the claims on faults: one is judged for every timed part, the other for the whole batch by the counters of the trial.
fn with_fault_claims(case: Case, expected: Expected) -> Case {
    let case = case.claim(Claim::Checked(expected.claim()));
    match expected {
        // If the kernel counts no faults, the subject's report makes the case unwitnessed.
        Expected::OneEach | Expected::OneEachOfAnyKind if counts_faults() => {
            case.claim(Claim::Counted(touch::check_fault_each))
        }
        _ => case,
    }
}
