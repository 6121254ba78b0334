//! The speed of reading a file again, against its length: from a short file to one longer than the memory.
//!
//! One file grows from size to size. At each size it is read from its beginning to its end, once to fill the cache and then
//! again for the time. If the file is longer than the memory, its pages leave the cache before they are read again, so the disk
//! is measured.

use super::{Bounds, Cost, Guard};
use crate::error::{Error, Result};
use crate::kit::fault_count::bytes_read_from_devices;
use crate::kit::scheduling_policy::IdleAtTheDisk;
use crate::platform::control_group::own_group::LimitedMemory;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::pattern_file::{self, PatternFile};
use crate::platform::volume;
use crate::statistic::median;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of one read and of one write. Every file length is a multiple of it.
const PIECE: u64 = 4 << 20;
/// The shortest file, bytes, where there is memory for eight of them: that of the CSE 221 report.
const SHORTEST: u64 = 512 << 20;
/// The least time for which a file of each length is read again.
const ENOUGH: Duration = Duration::from_secs(1);
/// The lengths near the size of the memory, in quarters of it. The speed falls between two of them.
const QUARTERS: [u64; 4] = [2, 3, 4, 5];

/// The points of the curve.
#[derive(Clone, Debug)]
pub struct SizeCurve {
    /// One point for each length, the shortest file first.
    pub points: Vec<SizePoint>,
    /// Bytes of memory that the cache could take.
    pub memory: u64,
    /// Why the longer sizes are missing, if they are.
    pub ended: Option<String>,
    /// What the run cost other processes.
    pub cost: Cost,
}

/// A file of one length, read again.
#[derive(Clone, Copy, Debug)]
pub struct SizePoint {
    /// Length of the file, bytes.
    pub bytes: u64,
    /// The number of timed readings of the whole file.
    pub rounds: usize,
    /// Bytes a nanosecond, which are GB/s: the median of the rounds.
    pub gb_s: f64,
    /// The share of the bytes that came from memory, 0 to 1; `None` where the kernel counts no reads of devices.
    pub from_memory: Option<f64>,
}

/// Measures the curve.
///
/// # Errors
/// [`Error::Missing`] where there is no disk, no room on it for the longest file, or no memory; [`Error::Disturbed`] if the guard
/// ends the run before the second point.
pub fn measure_size_curve(request: &Request<'_>) -> Result<SizeCurve> {
    // Dropped after the file, so that the group is empty when it goes.
    let (_idle, _group) = begin(request)?;
    let bounds = match request.group {
        Some(bytes) => Bounds { available: bytes, reserve: 0 },
        None => Bounds::read(&KernelFiles::live())?,
    };
    let sizes = file_sizes(bounds.available);
    let longest = sizes.last().copied().unwrap_or(0);
    check_disk_space(request.directory, longest)?;
    let mut guard = Guard::begin(bounds.reserve, request.time, request.interrupted);
    let mut file = PatternFile::create_empty(request.directory)?;
    let (mut points, mut ended) = (Vec::new(), None);
    for bytes in sizes {
        match measure_size(&mut file, bytes, &mut guard, &|made| (request.progress)(made, longest)) {
            Ok(Some(point)) => points.push(point),
            Ok(None) => ended = Some("the time was over (`--for`)".to_owned()),
            Err(Error::Disturbed(why)) if points.len() > 1 && !(request.interrupted)() => ended = Some(why),
            Err(error) => return Err(error),
        }
        if ended.is_some() {
            break;
        }
    }
    Ok(SizeCurve { points, memory: bounds.available, ended, cost: guard.cost_so_far() })
}

/// Lengths of files: doubled up to half of the memory, then by quarters of it to beyond its end.
fn file_sizes(memory: u64) -> Vec<u64> {
    let shortest = SHORTEST.min(memory / 8);
    let doubled = std::iter::successors(Some(shortest), |bytes| Some(2 * bytes));
    let doubled = doubled.take_while(|bytes| 2 * bytes <= memory / 4 * 3);
    let quarters = QUARTERS.into_iter().map(|quarters| memory / 4 * quarters);
    let mut sizes: Vec<u64> = doubled.chain(quarters).map(|bytes| bytes / PIECE * PIECE).collect();
    sizes.dedup();
    sizes
}

/// Extends the file to this length and reads it repeatedly; `None` if the time limit passed before a result.
fn measure_size(
    file: &mut PatternFile,
    bytes: u64,
    guard: &mut Guard,
    progress: &dyn Fn(u64),
) -> Result<Option<SizePoint>> {
    let mut piece = pattern_file::map_buffer(PIECE as usize)?;
    while file.bytes() < bytes {
        guard.check_machine()?;
        if guard.is_time_over() {
            return Ok(None);
        }
        file.append_piece(&mut piece)?;
        progress(file.bytes());
    }
    // The first round fills the cache and is not counted.
    if read_round(file, &mut piece, guard)?.is_none() {
        return Ok(None);
    }
    let (begun, before, mut rounds) = (Instant::now(), bytes_read_from_devices(), Vec::new());
    while rounds.is_empty() || begun.elapsed() < ENOUGH {
        match read_round(file, &mut piece, guard)? {
            Some(gb_s) => rounds.push(gb_s),
            None => return Ok(None),
        }
    }
    let moved = (bytes * rounds.len() as u64) as f64;
    let from_devices = before.zip(bytes_read_from_devices()).map(|(before, after)| (after - before) as f64);
    let from_memory = from_devices.map(|read| (1.0 - read / moved).max(0.0));
    Ok(Some(SizePoint { bytes, rounds: rounds.len(), gb_s: median(&rounds), from_memory }))
}

/// Reads the whole file in order and checks every piece. Returns GB/s, or `None` if the time limit passed before the end.
fn read_round(file: &PatternFile, piece: &mut [u8], guard: &mut Guard) -> Result<Option<f64>> {
    let mut spent = Duration::ZERO;
    for at in (0..file.bytes()).step_by(PIECE as usize) {
        guard.check_machine()?;
        if guard.is_time_over() {
            return Ok(None);
        }
        let begun = Instant::now();
        let got = file.file().read_at(piece, at);
        spent += begun.elapsed();
        file.check_block(got, piece, at)?;
    }
    Ok(Some(file.bytes() as f64 / spent.as_nanos().max(1) as f64))
}

/// The file may take the free space of the file system divided by this.
const SHARE_OF_DISK: u64 = 2;

/// What to measure, and within which limits.
pub struct Request<'a> {
    /// Where the file is made: a directory on a disk.
    pub directory: &'a Path,
    /// Memory of a control group, bytes, that is made and stands in for the machine; `None` to use the machine.
    pub group: Option<u64>,
    /// The time limit of the run.
    pub time: Duration,
    /// Returns whether the user has interrupted the run. It is called several times a second.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Called with the bytes written so far and with the length of the longest file, bytes.
    pub progress: &'a dyn Fn(u64, u64),
}

/// Checks that the directory is on a disk, takes the idle priority at the disk, and enters the requested control group.
fn begin(request: &Request<'_>) -> Result<(IdleAtTheDisk, Option<LimitedMemory>)> {
    if let Some(why) = volume::no_disk_reason(request.directory) {
        return Err(Error::Missing(format!("{why}; {}", volume::disk_advice())));
    }
    Ok((IdleAtTheDisk::begin()?, request.group.map(LimitedMemory::enter).transpose()?))
}

/// Checks that the file system has room for the file.
fn check_disk_space(directory: &Path, bytes: u64) -> Result<()> {
    let free = volume::free_bytes(directory).unwrap_or(u64::MAX);
    if free / SHARE_OF_DISK >= bytes {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "the file may become {} MiB long, and {} MiB are free in {}, of which it may take half: make room, name \
         another directory (`--dir`), or let less memory stand in for the machine (`--within 1GiB`)",
        bytes >> 20,
        free >> 20,
        directory.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::testing::{run_in_child_process, value_or_skip};
    use std::path::Path;

    const MIB: u64 = 1 << 20;

    /// Runs the test in a process of its own: a whole process enters a control group, and the idle priority stays with the thread.
    fn in_a_child(test: impl FnOnce(&Path)) {
        let directory = tempfile::tempdir().expect("a directory");
        run_in_child_process(|| test(directory.path()));
        assert_eq!(std::fs::read_dir(directory.path()).expect("read").count(), 0, "the file is gone");
    }

    fn request<'a>(directory: &'a Path, interrupted: &'a dyn Fn() -> bool) -> Request<'a> {
        let (group, time) = (Some(256 * MIB), Duration::from_secs(20));
        Request { directory, group, time, interrupted, progress: &|_, _| () }
    }

    #[test]
    fn an_interrupted_curve_leaves_nothing() {
        in_a_child(|directory| {
            let error = measure_size_curve(&request(directory, &|| true)).expect_err("interrupted");
            let is_interrupted = matches!(&error, Error::Disturbed(why) if why == "interrupted");
            assert!(is_interrupted || error.is_machine_limitation(), "{error}");
        });
    }

    #[test]
    fn sizes_go_from_half_a_gibibyte_to_beyond_the_memory() {
        let gib = |gib: f64| (gib * f64::from(1 << 30)) as u64;
        let expected = [0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 18.0, 24.0, 30.0].map(gib);
        assert_eq!(file_sizes(gib(24.0)), expected);
        assert_eq!(file_sizes(256 * MIB), [32, 64, 128, 192, 256, 320].map(|mib| mib * MIB));
    }

    /// A control group with little memory stands in for a machine.
    #[test]
    fn a_file_longer_than_the_memory_comes_from_the_disk() {
        in_a_child(|directory| {
            let Some(curve) = value_or_skip(measure_size_curve(&request(directory, &|| false))) else {
                return;
            };
            assert!(curve.ended.is_none() && curve.points.len() == 6, "{curve:?}");
            let [first, .., last] = curve.points[..] else { panic!("{curve:?}") };
            assert!(first.bytes == 32 * MIB && last.bytes == 320 * MIB, "{curve:?}");
            let share = |point: SizePoint| point.from_memory.unwrap_or(f64::NAN);
            assert!(share(first) > 0.99 && share(last) < 0.95, "{curve:?}");
        });
    }

    #[test]
    fn a_curve_whose_time_is_over_says_so() {
        in_a_child(|directory| {
            let request = Request { time: Duration::ZERO, ..request(directory, &|| false) };
            let Some(curve) = value_or_skip(measure_size_curve(&request)) else { return };
            assert!(curve.points.is_empty() && curve.ended.is_some_and(|why| why.contains("--for")));
        });
    }

    #[test]
    fn a_directory_without_room_is_missing() {
        let sentence = check_disk_space(Path::new("/"), 1 << 60).expect_err("no room").to_string();
        assert!(
            sentence.contains("of which it may take half") && sentence.ends_with("(`--within 1GiB`)"),
            "{sentence}"
        );
    }
}
