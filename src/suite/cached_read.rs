//! # What is timed
//! Reading one block of a file that is in the page cache: with `read`, with `pread`, by copying it out of a mapping
//! (`mmap`), and by copying it into another file within the kernel (`copy-file-range`). `pread-by-file` reads 64 KiB
//! at a time from whole files of several lengths, from the beginning to the end, again and again. `file-cache-in-64MiB` and `file-cache-in-1GiB` read 1 MiB at a time,
//! round and round, from files that are smaller and larger than the memory that a control group leaves for them.
//!
//! # What is not
//! Making the file and reading it into the cache; making and entering the control group, and the round before the first
//! sample.
//!
//! # How we know
//! At least every 20 ms mincore(2) must report every page of the file in the cache, and no byte may have come from a
//! device since the last check (`/proc/self/io`). A check at every batch would empty the processor's caches before
//! small batches. The block that was read last must begin with its own number. The witness sees `pread` and `copy_file_range`
//! entered once per block. For the file cache, the kernel must have accepted the limit: its own count of the
//! group's cached bytes, `cached` below the table, may not exceed the limit.
//!
//! # What fools it
//! The processor's caches: 8 MiB that are read again and again may stay in the last level, and so may the buffer; the
//! curve of `pread-by-file` shows it. On Btrfs and XFS `copy_file_range` may share blocks in place of copying bytes,
//! and is then fast at any length. If a file that is read in order is a little larger than the cache, keeping the
//! pages used last is the worst rule: all of it is read from the device again. Kernels since 3.15 keep a part, so the
//! bandwidth falls gradually. A host may cache the guest's disk.
//!
//! # Reading the number
//! `bandwidth` falls at the length of file that no longer fits. This length is the size of the file cache: the limit
//! less what else the group holds. `syscost file-cache` finds the size of the whole machine's file cache.
//!
//! # Source
//! CSE 221 project report (files of 0.5 to 14 GB read again: 8 GB/s up to 4 GB, far less beyond); lmbench's
//! `bw_file_rd` and `bw_mmap_rd`.

mod file_cache;
mod operation;

use crate::kit::blocks::{FILES, OWN_NUMBER, Proof, create_file_at_scale};
use crate::kit::contract::*;
use crate::platform::pattern_file::{self, PatternFile, Way};
use crate::platform::proc::Source;
use crate::platform::process::page_size;
use memmap2::MmapMut;
use operation::Mapped;
use std::hint::black_box;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

pub const GROUP: Group = Group::new("cached_read", include_str!("cached_read.rs"), cases)
    // 3: a sample is whole rounds of the file.
    .version(3)
    .curves(&[
        by_block_curve("cached_read/read/", "read"),
        by_block_curve("cached_read/pread/", "pread"),
        by_block_curve("cached_read/mmap/", "mmap"),
        by_block_curve("cached_read/copy-file-range/", "copy_file_range"),
        by_file_curve("cached_read/pread-by-file/", "pread", "bandwidth by file"),
        by_file_curve("cached_read/file-cache-in-64MiB/", "in 64 MiB of memory", "file cache in 64 MiB")
            .with_study(Study::Fall),
        by_file_curve("cached_read/file-cache-in-1GiB/", "in 1 GiB of memory", "file cache in 1 GiB")
            .with_study(Study::Fall),
    ])
    .headlines(&[Headline::new(54, "pread/4KiB", "4 KiB of a cached file")]);

/// A curve of bandwidth along the size of a block.
const fn by_block_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size of the block")).with_figure("bandwidth")
}

/// A curve of bandwidth along the size of the file.
const fn by_file_curve(prefix: &'static str, title: &'static str, chart: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size of the file")).with_figure("bandwidth").with_chart(chart)
}

const MIB: u64 = 1 << 20;

/// A way to read the block at this offset. Returns the number of bytes read.
type ReadBlock = fn(&mut Reader, u64) -> std::io::Result<usize>;
/// A system call: its name and number.
type Call = (&'static str, i64);
/// Name, description, and the call that is entered once per block.
#[rustfmt::skip]
const WAYS: [(&str, &str, ReadBlock, Option<Call>); 4] = [
    ("read", "read", Reader::read, None),
    ("pread", "pread", Reader::read_at_offset, Some(("pread64", libc::SYS_pread64))),
    ("mmap", "a copy out of a mapping", Reader::copy_from_mapping, None),
    ("copy-file-range", "copy_file_range to another file", Reader::copy_to_file, Some(("copy_file_range", libc::SYS_copy_file_range))),
];
/// Lengths of a block.
const BLOCKS: [(&str, usize); 2] = [("4KiB", 4 << 10), ("1MiB", 1 << 20)];
/// Lengths of files that are measured at full scale only.
const BETWEEN: [&str; 3] = ["256KiB", "512KiB", "1536KiB"];
/// The length of the file of most cases.
const FILE: u64 = 8 * MIB;

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, words, way, call) in WAYS {
        cases.extend(BLOCKS.map(|(length, block)| {
            let (name, title) = (format!("{name}/{length}"), format!("{length} of a cached file by {words}"));
            let case = Case::new(name, title, block_read_set_up(way, FILE, block));
            let case = with_cached_claims(case, FILE, block);
            call.into_iter().fold(case, |case, call| case.claim(Claim::Enters(vec![call])))
        }));
    }
    cases.extend(FILES.map(|(length, bytes)| {
        let set_up = block_read_set_up(Reader::read_at_offset, bytes, 64 << 10);
        let title = format!("64 KiB of a cached file of {length} by pread");
        let case = Case::new(format!("pread-by-file/{length}"), title, set_up);
        let case = with_cached_claims(case, bytes, 64 << 10);
        if BETWEEN.contains(&length) { case.need(FULL_SCALE) } else { case }
    }));
    cases.extend(file_cache::cases());
    cases
}

/// Adds the figure, the claims and the prediction of cases that read a file of this length from the cache.
fn with_cached_claims(case: Case, bytes: u64, block: usize) -> Case {
    case.lap_length(bytes / block as u64)
        .derived_figure("bandwidth", Rule::Bandwidth(block as u64))
        .claim(Claim::Linear)
        .claim(Claim::Checked(ALL_CACHED))
        .claim(Claim::Checked(OWN_NUMBER))
        .predict(block as f64 / 8.0, 800.0, "8 bytes a cycle copied; an entry, and a look-up for each folio")
}

const ALL_CACHED: &str =
    "every page of the file stayed in the page cache, by mincore every 20 ms, and nothing came from a device";

/// A file in the page cache and the destinations of its blocks.
struct Reader {
    file: PatternFile,
    mapped: Mapped,
    /// The destination of `copy_file_range`.
    other: PatternFile,
    buffer: MmapMut,
    block: usize,
    at: u64,
    /// Whether the last block went to the other file.
    is_in_other: bool,
}

/// The set-up of a case that reads a file of this length in blocks.
fn block_read_set_up(way: ReadBlock, bytes: u64, block: usize) -> SetUp {
    set_up(move |place| {
        let file = create_file_at_scale(place, bytes, Way::Cached)?;
        // This reads every page into the cache.
        let mapped = Mapped::new(&file)?;
        let other = PatternFile::create_filled(&place.scratch, block as u64, Way::Cached)?;
        let (buffer, proof) = (pattern_file::map_buffer(block)?, Proof::for_source(Source::Device)?);
        let mut reader = Reader { file, mapped, other, buffer, block, at: 0, is_in_other: false };
        reader.warm_cache(way)?;
        Ok(Cached { reader, proof, checked: None, owner: std::process::id(), way })
    })
}

/// How long the file is read before anything is timed: some twenty rounds. A cache that all cores share keeps lines that were
/// used again, and a process whose proof had read the file for long found more of the file there: among the processes of one
/// run 4 KiB took 303 to 457 ns. Eight runs in pairs: they lay 8, 4, 12, 32, 18 and 20 % apart without this time, and 5, 2, 1,
/// 5, 7 and 10 % with it.
const WARMING: Duration = Duration::from_millis(20);

impl Reader {
    /// Reads round and round, untimed.
    fn warm_cache(&mut self, way: ReadBlock) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < WARMING {
            let at = self.next();
            let got = way(self, at);
            self.file.check_length("reading a block", got, self.block, at)?;
        }
        self.at = 0;
        Ok(())
    }

    fn read_at_offset(&mut self, at: u64) -> std::io::Result<usize> {
        self.file.file().read_at(&mut self.buffer, at)
    }

    fn read(&mut self, at: u64) -> std::io::Result<usize> {
        let mut file = self.file.file();
        if at == 0 {
            file.rewind()?;
        }
        file.read(&mut self.buffer)
    }

    fn copy_from_mapping(&mut self, at: u64) -> std::io::Result<usize> {
        self.buffer.copy_from_slice(black_box(&self.mapped.bytes()[at as usize..][..self.block]));
        Ok(self.block)
    }

    fn copy_to_file(&mut self, at: u64) -> std::io::Result<usize> {
        self.is_in_other = true;
        let (mut from, mut to) = (at as i64, 0);
        let (file, other) = (self.file.file(), self.other.file());
        Ok(nix::fcntl::copy_file_range(file, Some(&mut from), other, Some(&mut to), self.block)?)
    }

    /// The offset of the next block.
    #[inline(always)]
    fn next(&mut self) -> u64 {
        let at = self.at;
        self.at = if at + 2 * self.block as u64 > self.file.bytes() { 0 } else { at + self.block as u64 };
        at
    }

    /// Verifies that the block read last is the one at this offset.
    fn check_block(&mut self, at: u64) -> Result<()> {
        if self.is_in_other {
            let read = self.other.file().read_exact_at(&mut self.buffer, 0);
            read.map_err(|cause| self.other.call_error("reading what was copied", cause))?;
        }
        self.file.check_block(Ok(self.block), &self.buffer, at)
    }

    /// Verifies that every page of the file is in the page cache.
    fn check_all_cached(&self) -> Result<()> {
        let bytes = self.file.bytes();
        let (pages, cached) =
            (bytes.div_ceil(page_size()) as usize, self.file.count_resident_pages(0..bytes)?);
        if cached == pages {
            return Ok(());
        }
        Err(Error::Disturbed(format!(
            "{cached} of the file's {pages} pages are in the page cache: memory is short, and others are read again"
        )))
    }
}

struct Cached {
    reader: Reader,
    proof: Proof,
    /// When the cache was last checked, if it was.
    checked: Option<Instant>,
    /// The process that checks. A witness's child does not, since its calls would then depend on the time of its batch.
    owner: u32,
    way: ReadBlock,
}

/// The least time between two checks of the page cache.
const UNCHECKED: Duration = Duration::from_millis(20);

impl Cached {
    /// Checks the cache and the bytes from devices, if it is time to.
    fn check_cache(&mut self) -> Result<()> {
        let is_early = self.checked.is_some_and(|checked| checked.elapsed() < UNCHECKED);
        if is_early || self.owner != std::process::id() {
            return Ok(());
        }
        if self.checked.is_some() {
            self.proof.verify_read(0)?;
        }
        self.reader.check_all_cached()?;
        self.checked = Some(Instant::now());
        self.proof.begin_batch()
    }
}

impl Subject for Cached {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.check_cache()?;
        // A witness is a child process and shares the file position.
        let position = self.reader.file.file().seek(SeekFrom::Start(self.reader.at));
        position.map_err(|cause| self.reader.file.call_error("seeking", cause))?;
        let (way, reader) = (self.way, &mut self.reader);
        let (mut last, mut wrong) = (0, None);
        let ticks = clock.time(|| {
            for _ in 0..iterations {
                last = reader.next();
                match way(reader, last) {
                    Ok(length) if length == reader.block => {}
                    got => wrong = Some((got, last)),
                }
            }
        });
        if let Some((got, at)) = wrong {
            self.reader.file.check_length("reading a block", got, self.reader.block, at)?;
        }
        self.reader.check_block(last)?;
        self.check_cache().map(|()| ticks)
    }
}

#[cfg(test)]
mod tests;
