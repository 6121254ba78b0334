//! # What is timed
//! The first touch of a page that is not in the page table, by what must then happen: a fresh anonymous page of
//! 4 KiB or 2 MiB is made (`anonymous`, and `read`, where the kernel's page of zeroes does); a page of a file is found
//! in the page cache (`cached`) or read from the disk (`major`); a page is copied because a forked child keeps it
//! (`copy-on-write`); a page that was write-protected is written (`write-protect`); another thread is asked to fill the
//! page (`userfaultfd`). `second-touch` and `third-touch` are the touches of the same page that follow its read from
//! the disk: the second after its mapping was taken away, the third without.
//!
//! # What is not
//! Whatever makes the next touch a fault again: `madvise(MADV_DONTNEED)`, `mprotect`, the fork and the child's end, and
//! putting the file out of the page cache (`fsync` once, then `POSIX_FADV_DONTNEED`), which needs no root. The page
//! tables are there already, save for the first huge page. The loop that touches, and the clock's bracket of some
//! 10 ns where a touch is timed by itself (`major`), are in the number.
//!
//! # How we know
//! Around each timed part the kernel's own count of this thread's faults is read: one a touch, minor or major as the
//! id says, and where one fault may serve many touches at least one and no more than one a touch. A touch of a file
//! that was something else than its case says is left out, and its place taken by another; the evidence says how many.
//! Before pages are read from the disk `mincore` says that none of the file is in the page cache, and `cachestat` that
//! none is on its way; the thread is charged with the bytes read from a device; each byte is compared with what was
//! written. The file system must be on a disk: memory (tmpfs, ramfs, zram) is refused, and so is a loop device that
//! reads through the cache of the file below it. Huge pages came whole with their first byte, by `mincore`. The handler
//! of `userfaultfd` counts what it fills.
//!
//! # What fools it
//! Dividing by pages: one fault maps up to sixteen cached neighbours (fault-around), and all of a large folio, whatever
//! `MADV_RANDOM` says. Without advice the first touch reads as much as the device's read-ahead
//! (`/sys/block/*/queue/read_ahead_kb`, from 128 KiB to 8 MiB) allows, so that a page read alone is cheaper than one
//! read with what is around it, and the touches that follow cost next to nothing. A page that is cached is no
//! measurement of a disk, and after the first touch it is: that was published once as a page fault a hundred times as
//! fast. In a guest the host may have the page in its own cache, and a disk has one too: what is read is then faster
//! than the medium. A fault that must be begun a second time is counted as major though no device has a part in it:
//! all that `userfaultfd` resolves are. A write after `mprotect` has given the permission back is no fault on kernels
//! that see that the page is nobody else's (since Linux 5.19); the evidence says which it was. A control group near its
//! limit reclaims at every fault. With read-ahead a touch waits for milliseconds, and the kernel's own threads, which
//! bring the rest, get this CPU for some hundredths of them: such samples are counted as disturbed, and rightly.
//!
//! # Reading the number
//! `major-random/first-touch` should be the latency of the disk's random read of 4 KiB, as `fio --direct=1` tells it,
//! and a fault of some microseconds more. `fault` below the table is the time over the faults that were counted, `touch`
//! over the pages touched, `byte` over their bytes, ns. What `copy-on-write/child-keeps` costs above `child-gone` is the
//! copy of a page. `write-protect/mprotect` has no `fault` where there was none.
//!
//! # Source
//! CSC501 project report (18.1 ms a major fault from a hard disk, 4.5 µs a byte; the third touch a hundred times
//! faster); CSE 221 project report (15 µs by random touches of a large file); lmbench's `lat_pagefault`, of which the
//! faults are minor; mmap(2), madvise(2), posix_fadvise(2), mincore(2), userfaultfd(2), proc_pid_io(5).

mod cached;
mod delegated;
mod major;
mod memory;
mod operation;
mod touch;

use crate::case::{Case, Claim, Group};
use touch::Expected;

pub const GROUP: Group = Group::new("page_fault", include_str!("page_fault.rs"), cases);

fn cases() -> Vec<Case> {
    [memory::cases(), delegated::cases(), cached::cases(), major::cases()].into_iter().flatten().collect()
}

/// Adds the claim that is asked at every timed part.
fn judged(case: Case, expected: Expected) -> Case {
    case.claim(Claim::Checked(expected.claim()))
}
