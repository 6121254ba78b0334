//! # What is timed
//! Reading or writing one block of a file past the page cache (`O_DIRECT`), from the call until it has returned.
//! `sequential-by-file` and `random-by-file` read 4 KiB from files of several lengths; `sequential` and `random` read
//! blocks of several lengths from 64 MiB, one at a time, by pread(2). `uring-depth/N` and `threads-depth/N` read 4 KiB
//! at random with N reads in flight, by io_uring(7) and by so many threads that call pread. `write` and `write-random`
//! write; in `write-dsync` each write returns only when the device has the block for good (`O_DSYNC`).
//!
//! # What is not
//! Making the file, which is written, put on the device and evicted before; drawing the order. With N in flight the
//! queue is filled and turned over once before the clock starts, and drained after it has stopped, so that it was
//! full at every moment of the timed part; a batch reads at least eight queues of blocks, and is told its share.
//!
//! # How we know
//! After every batch `/proc/self/io` must have grown by exactly the bytes that were asked for: what a cache answers
//! is not charged to a device. mincore(2) finds none of what was read last in the page cache. Every sector of the
//! file begins with its own number, so that a block is known to be the one that was asked for; what was written last
//! is read again and looked at. A block that is shorter, or refused, ends the case with the name of the file.
//!
//! # What fools it
//! What lies below: a controller with a cache, a host whose page cache holds the guest's disk, a disk that lies about
//! `O_DSYNC`. A virtual disk is often limited to so many operations or bytes a second: then a deep queue measures the
//! limit, and bursts are faster than what follows. 64 MiB fit into the cache of any disk. tmpfs accepts `O_DIRECT`
//! and has no device: such cases are skipped, and so are blocks that are smaller than those of the device. At smoke
//! scale 64 MiB are 4.
//!
//! # Reading the number
//! The median with N in flight is the time from one completion to the next; the percentiles beside it are those of
//! single blocks, from being asked for until found complete. `bandwidth` counts bytes of the blocks, `rate` blocks.
//! On a rotating disk random is slower than sequential by the seek; on others it should not be. What a thread costs
//! above a slot of a ring is two switches a block.
//!
//! # Source
//! CSE 221 project report (blocks of 4 KiB from files of 128 KiB to 1.5 MiB, sequential and at random, by `O_DIRECT`);
//! fio's engines psync and io_uring; ioping. open(2), io_uring(7), proc_pid_io(5), mincore(2).

mod operation;
mod queue;
mod threads;
mod write;

use crate::case::{Case, Claim, Group, Need, OwnTasks, Place, Rule, Scale, SetUp};
use crate::kit::blocks::{
    self, Blocks, DISK, FROM_DEVICE, NOT_KEPT, OWN_NUMBER, Pattern, one_after_another, reached,
};
use crate::kit::pattern_file::{PatternFile, Way};
use crate::record::{Axis, Curve};
use crate::platform::proc::Source;
use crate::{Error, Result};

pub const GROUP: Group = Group::new("direct_read", include_str!("direct_read.rs"), cases).curves(&[
    by_file_curve("direct_read/sequential-by-file/", "sequential"),
    by_file_curve("direct_read/random-by-file/", "random"),
    by_block_curve("direct_read/sequential/", "sequential"),
    by_block_curve("direct_read/random/", "random"),
    by_block_curve("direct_read/write/", "written"),
    by_block_curve("direct_read/write-dsync/", "written for good"),
    Curve::new("direct_read/uring-depth/", "io_uring", Axis::Count("in flight")).figure("rate"),
    Curve::new("direct_read/threads-depth/", "threads", Axis::Count("in flight")).figure("rate"),
]);

/// A curve of bandwidth along the size of the file.
const fn by_file_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("file")).figure("bandwidth").chart("bandwidth by file")
}

/// A curve of bandwidth along the size of a block.
const fn by_block_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("block")).figure("bandwidth").chart("bandwidth by block")
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Lengths of a file that is read by 4 KiB: the report's first and last, and beyond.
const FILES: [(&str, u64); 4] =
    [("128KiB", 128 * KIB), ("1536KiB", 1536 * KIB), ("8MiB", 8 * MIB), ("64MiB", 64 * MIB)];
/// Lengths of a block.
const BLOCKS: [(&str, usize); 4] = [("512B", 512), ("4KiB", 4 << 10), ("64KiB", 64 << 10), ("1MiB", 1 << 20)];
/// Reads in flight.
const DEPTHS: [usize; 4] = [1, 4, 16, 64];
/// The usual block, and the file that it is read from.
const BLOCK: usize = 4 << 10;
const FILE: u64 = 64 * MIB;

fn cases() -> Vec<Case> {
    const PATTERNS: [(Pattern, &str, &str); 2] =
        [(Pattern::Sequential, "sequential", "in order"), (Pattern::Random, "random", "at random")];
    let mut cases = Vec::new();
    for (pattern, name, words) in PATTERNS {
        cases.extend(FILES.map(|(length, bytes)| by_file((pattern, name, words), length, bytes)));
    }
    for (pattern, name, words) in PATTERNS {
        cases.extend(BLOCKS.map(|(length, block)| by_block((pattern, name, words), length, block)));
    }
    cases.extend(
        DEPTHS.map(|depth| in_flight("uring", "by io_uring", depth, queue::set_up(depth)).need(RING)),
    );
    cases.extend(DEPTHS.map(|depth| {
        let case = in_flight("threads", "by as many threads", depth, threads::set_up(depth));
        case.own_tasks(OwnTasks::Elsewhere)
    }));
    cases.extend(write::cases());
    cases
}

/// The kernel has io_uring and allows it.
const RING: Need = Need::new(|_| operation::offered());

fn by_file((pattern, name, words): (Pattern, &str, &str), length: &str, bytes: u64) -> Case {
    let open = move |place: &Place| {
        if bytes > SMOKE_BYTES && place.scale == Scale::Smoke {
            return Err(Error::Missing(format!(
                "smoke scale: a file of {} MiB is read at default and full scale",
                bytes >> 20
            )));
        }
        PatternFile::make(&place.scratch, bytes, Way::Direct)
    };
    let case = Case::new(
        format!("{name}-by-file/{length}"),
        format!("4 KiB past the page cache, {words} from {length}"),
        blocks::reads(open, pattern, BLOCK, Source::Device),
    );
    read(case, BLOCK)
}

/// A file that is made in no time.
const SMOKE_BYTES: u64 = 8 * MIB;

fn by_block((pattern, name, words): (Pattern, &str, &str), length: &str, block: usize) -> Case {
    let set_up: SetUp = Box::new(move |place| one_after_another(large(place, pattern, block)?));
    let title = format!("{length} past the page cache, {words} from 64 MiB");
    read(Case::new(format!("{name}/{length}"), title, set_up), block)
}

fn in_flight(name: &str, how: &str, depth: usize, set_up: SetUp) -> Case {
    let title = format!("4 KiB past the page cache at random, {depth} in flight {how}");
    read(Case::new(format!("{name}-depth/{depth}"), title, set_up), BLOCK)
}

/// The large file, or what stands for it at smoke scale.
fn file(place: &Place, way: Way) -> Result<PatternFile> {
    let bytes = if place.scale == Scale::Smoke { FILE / 16 } else { FILE };
    PatternFile::make(&place.scratch, bytes, way)
}

fn large(place: &Place, pattern: Pattern, block: usize) -> Result<Blocks> {
    Blocks::of(file(place, Way::Direct)?, pattern, block, Source::Device)
}

/// What all that read claim and predict.
fn read(case: Case, block: usize) -> Case {
    moved(case, block)
        .claim(Claim::Checked(FROM_DEVICE))
        .claim(Claim::Counted(reached))
        .claim(Claim::Checked(OWN_NUMBER))
        .claim(Claim::Checked(NOT_KEPT))
}

fn moved(case: Case, block: usize) -> Case {
    // Some 60 µs until a flash disk answers, and a nanosecond a byte.
    let hardware = 180_000.0 + 3.0 * block as f64;
    case.need(DISK)
        .one_by_one()
        .derive("bandwidth", Rule::Bandwidth(block as u64))
        .derive("rate", Rule::Rate)
        .predict(hardware, 12_000.0, "a flash disk's answer; a request made, an interrupt, a wake-up")
}
