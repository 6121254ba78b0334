//! # What is timed
//! Mapping fresh anonymous memory, touching each of its pages once, and giving it back: what a program pays for
//! memory that it asks for and uses.
//!
//! # What is not
//! Nothing: `mmap`, the touches and `munmap` stand in the timed part. Reading the counters stands outside.
//!
//! # How we know
//! The kernel's count of minor faults over each sample: with pages of 4 KiB one a touch, with huge pages one for
//! each 2 MiB, with folios between. At least the latter must have been counted, and no fault went to a device.
//!
//! # What fools it
//! Transparent huge pages (`/sys/kernel/mm/transparent_hugepage/enabled`): they change the number of faults by
//! up to 512 and the time by several times. The mode is in the fingerprint; here it is the kernel that decides.
//! A control group near its limit reclaims at every fault.
//!
//! # Reading the number
//! Divided by the bytes it is the price of memory's first use; a zeroed byte cannot cost less than writing it.
//!
//! # Source
//! lmbench's `lat_pagefault` and `lat_mmap` (McVoy and Staelin 1996); mmap(2); the kernel's
//! `Documentation/admin-guide/mm/transhuge.rst`.

use super::{Case, Claim, Group, Place, SetUp, Subject};
use crate::instrument::{Clock, Delta};
use crate::{Error, Result};
use memmap2::MmapMut;
use std::hint::black_box;

/// The group.
pub const GROUP: Group =
    Group { name: "mapping", manual: include_str!("mapping.rs"), sources: &[], cases, fits: &[] };

/// The smallest page that any of our kernels has.
const PAGE: usize = 4 << 10;
/// The largest that it may give unasked.
const HUGE_PAGE: u64 = 2 << 20;

fn cases() -> Vec<Case> {
    vec![
        first_touch::<{ 1 << 20 }>("first-touch/1MiB", "mapping, first touch and unmapping of 1 MiB"),
        first_touch::<{ 64 << 20 }>("first-touch/64MiB", "mapping, first touch and unmapping of 64 MiB"),
    ]
}

fn first_touch<const BYTES: usize>(name: &'static str, title: &'static str) -> Case {
    let set_up: SetUp = Box::new(|_: &Place| {
        Ok(Box::new(|n: u64, clock: &Clock| {
            let mut refused = None;
            let ticks = clock.time(|| {
                for _ in 0..n {
                    refused = map_and_touch(BYTES).err().or(refused.take());
                }
            });
            refused.map_or(Ok(ticks), Err)
        }) as Box<dyn Subject>)
    });
    let pages = (BYTES / PAGE) as f64;
    Case::new(name, title, set_up)
        .claim(Claim::Enters(vec![("mmap", libc::SYS_mmap), ("munmap", libc::SYS_munmap)]))
        .claim(Claim::Counted(faulted::<BYTES>))
        .predict(pages * 500.0, pages * 700.0, "each page of 4 KiB zeroed, and a fault for it")
}

fn map_and_touch(bytes: usize) -> Result<()> {
    let refused = |cause| Error::Kernel { call: format!("mmap of {bytes} bytes"), cause };
    let mut memory = MmapMut::map_anon(bytes).map_err(refused)?;
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    black_box(&memory[..1]);
    Ok(())
}

/// Fresh memory cannot be touched without faults.
fn faulted<const BYTES: usize>(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    let (minor, major) = (delta.counted.minor_faults, delta.counted.major_faults);
    let least = iterations * (BYTES as u64).div_ceil(HUGE_PAGE);
    if minor < least {
        return Err(format!(
            "the memory was not fresh: {minor} minor faults in {iterations} iterations, and huge pages alone need {least}"
        ));
    }
    if major > 0 {
        return Err(format!("{major} faults went to a device: anonymous memory was swapped"));
    }
    Ok(format!("{:.0} minor faults an iteration, none to a device", minor as f64 / iterations as f64))
}
