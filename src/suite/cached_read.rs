//! # What is timed
//! Reading one block of a file that is in the page cache: by `read`, by `pread`, by copying it out of a mapping
//! (`mmap`), and, without coming to user space, into another file (`copy-file-range`). `pread-by-file` reads 64 KiB at
//! once from files of several lengths. `file-cache-in-64MiB` and `file-cache-in-1GiB` read 1 MiB at once, round and
//! round, from files that are smaller and larger than the memory that a control group leaves for them.
//!
//! # What is not
//! Making the file and reading it into the cache; making the control group and going there, and the round before the first
//! sample.
//!
//! # How we know
//! At least every 20 ms mincore(2) must say of every page of the file that it is in the cache, and nothing may have come
//! from a device since the last time (`/proc/self/io`): asking at every batch would cost the small ones their caches. What was read last begins with its own number. `pread` and
//! `copy_file_range` are entered once a block, by the witness. Of the file cache it is known that the kernel took the
//! limit: its own account of what it caches is `cached` below the table, and may not be above it.
//!
//! # What fools it
//! The processor's caches: 8 MiB that are read again and again may be in its last one, and so may the buffer; the
//! curve of `pread-by-file` shows it. On Btrfs and XFS `copy_file_range` may share blocks instead of copying bytes,
//! and is then fast at any length. In a file cache that is a little too small for a file that is read in order,
//! keeping what was used last is the worst rule: all is read again from the device. Kernels since 3.15 keep a part,
//! so that the fall is no cliff. A host may cache the guest's disk.
//!
//! # Reading the number
//! `bandwidth` against the length of the file falls where the file no longer fits: that is the size of the file cache,
//! below the limit by what else the group holds. Without a control group it would be that of the whole memory.
//!
//! # Source
//! CSE 221 project report (files of 0.5 to 14 GB read again: 8 GB/s up to 4 GB, far less beyond); lmbench's `bw_file_rd`
//! and `bw_mmap_rd`.

mod file_cache;
mod operation;

use crate::case::{Case, Claim, Group, Place, Rule, Scale, SetUp, Subject};
use crate::clock::{Clock, Ticks};
use crate::kit::blocks::{OWN_NUMBER, Proof};
use crate::kit::pattern_file::{self, PatternFile, Way};
use crate::platform::proc::Source;
use crate::platform::process::page_size;
use crate::record::{Axis, Curve, Study};
use crate::{Error, Result};
use memmap2::MmapMut;
use operation::Mapped;
use std::hint::black_box;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

pub const GROUP: Group = Group::new("cached_read", include_str!("cached_read.rs"), cases).curves(&[
    by_block_curve("cached_read/read/", "read"),
    by_block_curve("cached_read/pread/", "pread"),
    by_block_curve("cached_read/mmap/", "mmap"),
    by_block_curve("cached_read/copy-file-range/", "copy_file_range"),
    by_file_curve("cached_read/pread-by-file/", "pread", "bandwidth by file"),
    by_file_curve("cached_read/file-cache-in-64MiB/", "in 64 MiB of memory", "file cache in 64 MiB")
        .study(Study::Fall),
    by_file_curve("cached_read/file-cache-in-1GiB/", "in 1 GiB of memory", "file cache in 1 GiB")
        .study(Study::Fall),
]);

/// A curve of bandwidth along the size of a block.
const fn by_block_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("block")).figure("bandwidth")
}

/// A curve of bandwidth along the size of the file.
const fn by_file_curve(prefix: &'static str, title: &'static str, chart: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("file")).figure("bandwidth").chart(chart)
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A way to read a block, of a file at a place: the bytes that were read.
type Pass = fn(&mut Reader, u64) -> std::io::Result<usize>;
/// A call of the kernel: its name and number.
type Call = (&'static str, i64);
/// Name, words, and the call that is entered once a block.
const WAYS: [(&str, &str, Pass, Option<Call>); 4] = [
    ("read", "read", Reader::read, None),
    ("pread", "pread", Reader::pread, Some(("pread64", libc::SYS_pread64))),
    ("mmap", "a copy out of a mapping", Reader::copied, None),
    (
        "copy-file-range",
        "copy_file_range to another file",
        Reader::passed_on,
        Some(("copy_file_range", libc::SYS_copy_file_range)),
    ),
];
/// Lengths of a block.
const BLOCKS: [(&str, usize); 2] = [("4KiB", 4 << 10), ("1MiB", 1 << 20)];
/// Lengths of a file.
const FILES: [(&str, u64); 4] =
    [("128KiB", 128 * KIB), ("1MiB", MIB), ("8MiB", 8 * MIB), ("64MiB", 64 * MIB)];
/// The usual file.
const FILE: u64 = 8 * MIB;

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, words, way, call) in WAYS {
        cases.extend(BLOCKS.map(|(length, block)| {
            let case = Case::new(
                format!("{name}/{length}"),
                format!("{length} of a cached file by {words}"),
                set_up(way, |_| Ok(FILE), block),
            );
            match call {
                Some(call) => described(case, block).claim(Claim::Enters(vec![call])),
                None => described(case, block),
            }
        }));
    }
    cases.extend(FILES.map(|(length, bytes)| {
        let case = Case::new(
            format!("pread-by-file/{length}"),
            format!("64 KiB of a cached file of {length} by pread"),
            set_up(Reader::pread, move |place| smoke(place, bytes), 64 << 10),
        );
        described(case, 64 << 10)
    }));
    cases.extend(file_cache::cases());
    cases
}

/// A file that smoke scale has the time for.
fn smoke(place: &Place, bytes: u64) -> Result<u64> {
    if bytes > FILE && place.scale == Scale::Smoke {
        let sentence =
            format!("smoke scale: a file of {} MiB is read at default and full scale", bytes >> 20);
        return Err(Error::Missing(sentence));
    }
    Ok(bytes)
}

fn described(case: Case, block: usize) -> Case {
    case.derive("bandwidth", Rule::Bandwidth(block as u64))
        .claim(Claim::Linear)
        .claim(Claim::Checked(ALL_CACHED))
        .claim(Claim::Checked(OWN_NUMBER))
        .predict(block as f64 / 8.0, 800.0, "8 bytes a cycle copied; an entry, and a look-up for each folio")
}

const ALL_CACHED: &str =
    "every page of the file stayed in the page cache, by mincore every 20 ms, and nothing came from a device";

/// A file in the cache, and what its blocks are read into.
struct Reader {
    stamped: PatternFile,
    mapped: Mapped,
    /// Where `copy_file_range` copies to.
    other: PatternFile,
    buffer: MmapMut,
    block: usize,
    at: u64,
    /// Whether what was read last is in the other file.
    passed: bool,
}

fn set_up(way: Pass, bytes: impl Fn(&Place) -> Result<u64> + 'static, block: usize) -> SetUp {
    Box::new(move |place| {
        let stamped = PatternFile::make(&place.scratch, bytes(place)?, Way::Cached)?;
        // It reads every page into the cache.
        let mapped = Mapped::of(&stamped)?;
        let other = PatternFile::make(&place.scratch, block as u64, Way::Cached)?;
        let (buffer, proof) = (pattern_file::buffer(block)?, Proof::by(Source::Device)?);
        let reader = Reader { stamped, mapped, other, buffer, block, at: 0, passed: false };
        Ok(Box::new(Cached { reader, proof, looked: None, way }) as Box<dyn Subject>)
    })
}

impl Reader {
    fn pread(&mut self, at: u64) -> std::io::Result<usize> {
        self.stamped.file().read_at(&mut self.buffer, at)
    }

    fn read(&mut self, at: u64) -> std::io::Result<usize> {
        let mut file = self.stamped.file();
        if at == 0 {
            file.rewind()?;
        }
        file.read(&mut self.buffer)
    }

    fn copied(&mut self, at: u64) -> std::io::Result<usize> {
        self.buffer.copy_from_slice(black_box(&self.mapped.bytes()[at as usize..][..self.block]));
        Ok(self.block)
    }

    fn passed_on(&mut self, at: u64) -> std::io::Result<usize> {
        self.passed = true;
        let (mut from, mut to) = (at as i64, 0);
        let (file, other) = (self.stamped.file(), self.other.file());
        Ok(nix::fcntl::copy_file_range(file, Some(&mut from), other, Some(&mut to), self.block)?)
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let at = self.at;
        self.at = if at + 2 * self.block as u64 > self.stamped.bytes() { 0 } else { at + self.block as u64 };
        at
    }

    /// Whether what was read last is the block of this place.
    fn arrived(&mut self, at: u64) -> Result<()> {
        if self.passed {
            let read = self.other.file().read_exact_at(&mut self.buffer, 0);
            read.map_err(|cause| self.other.refused("reading what was copied", cause))?;
        }
        if pattern_file::is_of(&self.buffer, at) {
            return Ok(());
        }
        let cause = std::io::Error::other(format!("what came is not what was written at {at}"));
        Err(self.stamped.refused("reading a block", cause))
    }

    fn is_cached(&self) -> Result<()> {
        let bytes = self.stamped.bytes();
        let (pages, cached) = (bytes.div_ceil(page_size()) as usize, self.stamped.resident(0..bytes)?);
        if cached == pages {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{cached} of the file's {pages} pages are in the page cache: memory is short, and others are read again"
        )))
    }
}

struct Cached {
    reader: Reader,
    proof: Proof,
    /// When it was last looked whether all is cached, if ever.
    looked: Option<Instant>,
    way: Pass,
}

/// So long nobody looks whether all is cached.
const UNSEEN: Duration = Duration::from_millis(20);

impl Cached {
    fn look(&mut self) -> Result<()> {
        if self.looked.is_some_and(|looked| looked.elapsed() < UNSEEN) {
            return Ok(());
        }
        if self.looked.is_some() {
            self.proof.has_read(0)?;
        }
        self.reader.is_cached()?;
        self.looked = Some(Instant::now());
        self.proof.begin()
    }
}

impl Subject for Cached {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.look()?;
        // A witness is a child, and shares the place at which the file is read next.
        let place = self.reader.stamped.file().seek(SeekFrom::Start(self.reader.at));
        place.map_err(|cause| self.reader.stamped.refused("seeking", cause))?;
        let (way, reader) = (self.way, &mut self.reader);
        let (mut last, mut wrong) = (0, None);
        let ticks = clock.time(|| {
            for _ in 0..iterations {
                last = reader.next();
                match way(reader, last) {
                    Ok(length) if length == reader.block => {}
                    got => wrong = Some(got),
                }
            }
        });
        match wrong {
            Some(Err(cause)) => return Err(self.reader.stamped.refused("reading a block", cause)),
            Some(Ok(length)) => {
                let cause = std::io::Error::other(format!("{length} of {} bytes came", self.reader.block));
                return Err(self.reader.stamped.refused("reading a block", cause));
            }
            None => self.reader.arrived(last)?,
        }
        self.look()?;
        Ok(ticks)
    }
}

#[cfg(test)]
mod tests;
