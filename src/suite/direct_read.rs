//! # What is timed
//! Reading or writing one block of a file past the page cache: by `O_DIRECT`, from the call to its return.
//! `sequential-by-file` and `random-by-file` read 4 KiB from files of several lengths. `sequential` and `random` read
//! blocks of several lengths from 64 MiB, one at a time, with pread(2). `uring-depth/N` and `threads-depth/N` read 4
//! KiB at random with N reads in flight: with io_uring(7), and with N threads that each call pread.
//! `uring-registered-depth` registers the file and the memory with the kernel beforehand; `aio-depth` uses io_submit(2), as
//! libaio does. `write` and `write-random` write; in `write-dsync` each write returns when the device has stored the
//! block (`O_DSYNC`). `mixed` writes a block and reads another one; `write-back` writes to the page cache and waits
//! until it is written back (`fdatasync`).
//!
//! # What is not
//! Preparing the file: it is written, flushed to the device and evicted before. Choosing the order of the blocks. With N in flight
//! the queue is filled and turned over once before the clock starts, and drained after it has stopped, so it is full
//! at every moment of the timed part. A batch reads at least eight times the queue's depth in blocks, and is charged
//! its share of the time.
//!
//! # How we know
//! After every batch `/proc/self/io` must have grown by exactly the bytes that were asked for: bytes from a cache are
//! not charged to a device. mincore(2) must find no page of what was read last in the page cache. Every sector of the
//! file begins with its own number, so each block can be recognised. What was written last is read back and compared.
//! A short or refused block ends the case with the name of the file.
//!
//! # What fools it
//! Caches below the page cache: that of a controller, of a host that caches the guest's disk, of a disk that ignores `O_DSYNC`. A
//! virtual disk is often limited to a number of operations or bytes per second: a deep queue then measures the limit,
//! and bursts are faster than what follows. 64 MiB fit into the cache of any disk. tmpfs accepts `O_DIRECT` and has
//! no device: such cases are skipped, and so are blocks that are smaller than those of the device. At smoke scale the
//! file has 4 MiB in place of 64.
//!
//! # Reading the number
//! The median with N in flight is the time from one completion to the next. The percentiles are those of single blocks,
//! from submission until the completion was seen. `bandwidth` counts the bytes of the blocks, `rate` the blocks. On a
//! rotating disk random access is slower than sequential by the seek; on others it should not be. A thread costs two
//! context switches per block more than a slot of an io_uring.
//!
//! # Source
//! CSE 221 project report (blocks of 4 KiB from files of 128 KiB to 1.5 MiB, sequential and at random, by `O_DIRECT`);
//! fio's engines psync, libaio and io_uring; ioping. open(2), io_submit(2), io_uring(7), proc_pid_io(5), mincore(2).

mod direct_write;
mod in_flight;
mod operation;
mod operation_aio;

use crate::kit::blocks::{
    self, Blocks, DISK, FILES, FROM_DEVICE, NOT_KEPT, OWN_NUMBER, Pattern, claim_blocks_read,
    single_block_reads,
};
use crate::kit::contract::*;
use crate::platform::pattern_file::{PatternFile, Way};
use crate::platform::proc::Source;
use operation::Ring;
use operation_aio::Aio;

pub const GROUP: Group = Group::new("direct_read", include_str!("direct_read.rs"), cases)
    .version(2)
    .curves(&[
        by_file_curve("direct_read/sequential-by-file/", "sequential"),
        by_file_curve("direct_read/random-by-file/", "random"),
        by_block_curve("direct_read/sequential/", "sequential"),
        by_block_curve("direct_read/random/", "random"),
        by_block_curve("direct_read/write/", "written"),
        by_block_curve("direct_read/write-dsync/", "written for good"),
        Curve::new("direct_read/uring-depth/", "io_uring", Axis::Count("operations in flight"))
            .with_figure("rate"),
        Curve::new("direct_read/aio-depth/", "io_submit", Axis::Count("operations in flight"))
            .with_figure("rate"),
        Curve::new("direct_read/threads-depth/", "threads", Axis::Count("operations in flight"))
            .with_figure("rate"),
    ])
    .headlines(&[
        Headline::new(56, "sequential/4KiB", "4 KiB from disk, in order"),
        Headline::new(57, "random/4KiB", "4 KiB from disk, in any order").as_answer(),
    ]);

/// A curve of bandwidth along the size of the file.
const fn by_file_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size of the file"))
        .with_figure("bandwidth")
        .with_chart("bandwidth by file")
}

/// A curve of bandwidth along the size of a block.
const fn by_block_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size of the block"))
        .with_figure("bandwidth")
        .with_chart("bandwidth by block")
}

const MIB: u64 = 1 << 20;

/// Lengths of a block.
const BLOCKS: [(&str, usize); 4] = [("512B", 512), ("4KiB", 4 << 10), ("64KiB", 64 << 10), ("1MiB", 1 << 20)];
/// Reads in flight.
const DEPTHS: [usize; 4] = [1, 4, 16, 64];
/// The block and the file of most cases, bytes.
const BLOCK: usize = 4 << 10;
const FILE: u64 = 64 * MIB;

fn cases() -> Vec<Case> {
    const PATTERNS: [(Pattern, &str, &str); 2] =
        [(Pattern::Sequential, "sequential", "in order"), (Pattern::Random, "random", "at random")];
    let mut cases = Vec::new();
    for (pattern, name, words) in PATTERNS {
        cases.extend(FILES.map(|(length, bytes)| file_length_case((pattern, name, words), length, bytes)));
    }
    for (pattern, name, words) in PATTERNS {
        cases.extend(BLOCKS.map(|(length, block)| block_length_case((pattern, name, words), length, block)));
    }
    cases.extend(DEPTHS.map(|depth| {
        queue_depth_case("uring", "by io_uring", depth, in_flight::set_up_for_depth(depth, Ring::new))
            .need(RING)
    }));
    cases.extend(DEPTHS.map(|depth| {
        let set_up = in_flight::set_up_for_depth(depth, Ring::with_registered);
        let case =
            queue_depth_case("uring-registered", "by io_uring, file and memory registered", depth, set_up);
        case.need(FULL_SCALE).need(RING)
    }));
    cases.extend(DEPTHS.map(|depth| {
        let set_up = in_flight::set_up_for_depth(depth, Aio::new);
        queue_depth_case("aio", "by io_submit", depth, set_up).need(FULL_SCALE)
    }));
    cases.extend(DEPTHS.map(|depth| {
        let case = queue_depth_case("threads", "by as many threads", depth, in_flight::threads_set_up(depth));
        case.own_tasks(OwnTasks::Elsewhere)
    }));
    cases.extend(direct_write::cases());
    cases
}

/// The need that the kernel has io_uring and permits it.
const RING: Need = Need::new(|_| operation::check_io_uring());

fn file_length_case((pattern, name, words): (Pattern, &str, &str), length: &str, bytes: u64) -> Case {
    let open = move |place: &Place| blocks::create_file_at_scale(place, bytes, Way::Direct);
    let case = Case::new(
        format!("{name}-by-file/{length}"),
        format!("4 KiB past the page cache, {words} from {length}"),
        blocks::reads_set_up(open, pattern, BLOCK, Source::Device),
    );
    read(case, BLOCK)
}

fn block_length_case((pattern, name, words): (Pattern, &str, &str), length: &str, block: usize) -> Case {
    let set_up = set_up(move |place| single_block_reads(blocks_of_file(place, pattern, block)?));
    let title = format!("{length} past the page cache, {words} from 64 MiB");
    // Between the timed reads only their blocks are checked, which takes little time.
    read(Case::new(format!("{name}/{length}"), title, set_up), block).timed_share(0.05)
}

fn queue_depth_case(name: &str, how: &str, depth: usize, set_up: SetUp) -> Case {
    let title = format!("4 KiB past the page cache at random, {depth} in flight {how}");
    read(Case::new(format!("{name}-depth/{depth}"), title, set_up), BLOCK)
}

/// A batch turns the queue over this often, so that it hardly matters how completions are bunched.
const TURNS: u64 = 8;

/// The blocks that are read for a batch.
fn blocks_for_batch(iterations: u64, depth: usize) -> u64 {
    if depth == 1 { iterations } else { iterations.max(TURNS * depth as u64) }
}

/// The part of the time of `read` blocks that `iterations` of them took.
fn share_of_time(ticks: Ticks, iterations: u64, read: u64) -> Ticks {
    Ticks((u128::from(ticks.0) * u128::from(iterations) / u128::from(read.max(1))) as u64)
}

/// The large file, or a shorter one at smoke scale.
fn scratch_file(place: &Place, way: Way) -> Result<PatternFile> {
    let bytes = if place.scale == Scale::Smoke { FILE / 16 } else { FILE };
    PatternFile::create_filled(&place.scratch, bytes, way)
}

fn blocks_of_file(place: &Place, pattern: Pattern, block: usize) -> Result<Blocks> {
    Blocks::new(scratch_file(place, Way::Direct)?, pattern, block, Source::Device)
}

/// Adds the claims of all cases that read.
fn read(case: Case, block: usize) -> Case {
    with_block_figures(case, block)
        .claim(Claim::Checked(FROM_DEVICE))
        .claim(claim_blocks_read(block))
        .claim(Claim::Checked(OWN_NUMBER))
        .claim(Claim::Checked(NOT_KEPT))
}

/// Adds the need, the figures and the prediction of all cases.
fn with_block_figures(case: Case, block: usize) -> Case {
    // Some 60 µs until a flash disk answers, and a nanosecond per byte.
    let hardware = 180_000.0 + 3.0 * block as f64;
    case.need(DISK)
        .one_by_one()
        .derived_figure("bandwidth", Rule::Bandwidth(block as u64))
        .derived_figure("rate", Rule::Rate)
        .predict(hardware, 12_000.0, "a flash disk's answer; a request made, an interrupt, a wake-up")
}
