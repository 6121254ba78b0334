//! Faults at a hole: a mapped file of 40 GB without a block on the disk, touched at index 0 or at a random page. Each
//! iteration opens and maps the file anew, as each run of the CSE 221 report's program did.

use super::disk_page::check_major_faults;
use super::touch::Tally;
use crate::kit::contract::*;
use crate::kit::fault_count::{self, FAULTS_COUNTED, Faults};
use crate::platform::kernel_files::KernelFiles;
use crate::platform::region::{Order, PAGE, Region};
use crate::platform::volume;
use crate::statistic::Random;
use crate::trial::scratch;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::resource::{Resource, getrlimit};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Length of the file in the CSE 221 report, bytes, and in pages. Only its magnitude matters, as no page stays in the cache.
const BYTES: u64 = 40_000_000_000;
const PAGES: usize = (BYTES / PAGE as u64) as usize;
/// The most bytes that a file of holes may have on the disk: some file systems write data at the end of a file.
const MOST_STORED: u64 = 1 << 20;
/// The number of attempts to evict, one millisecond apart.
const ATTEMPTS: u32 = 100;

#[rustfmt::skip]
pub(super) fn cases() -> Vec<Case> {
    let around = "an exception, page tables, and the pages of the device's read-ahead allocated, zeroed and cached";
    let alone = "an exception, page tables, one page allocated, zeroed and cached";
    let ahead = 4_000.0 + CYCLES_A_PAGE * (read_ahead_pages(&KernelFiles::live(), &scratch::scratch_parent()) - 1.0);
    vec![
        hole_case("major-index-0/sparse-40GB", "index 0 of a mapped file of 40 GB touched, all of it a hole", false, Order::Untold)
            .predict(3_000.0, ahead, around),
        hole_case("major-random/sparse-40GB", "a random page of a mapped file of 40 GB touched, all of it a hole", true, Order::Untold)
            .predict(3_000.0, ahead, around),
        hole_case("major-random/sparse-40GB-alone", "the same, where the kernel is advised to take no page around it", true, Order::Random)
            .predict(3_000.0, 4_000.0, alone),
    ]
}

/// Predicted core cycles for each page of read-ahead: 500 to fill it with zeroes, 700 to allocate it and enter it into the cache.
const CYCLES_A_PAGE: f64 = 1_200.0;

/// The read-ahead of the device below this directory, pages. If the kernel does not report it, that of a usual disk, 128 KiB.
fn read_ahead_pages(files: &KernelFiles, directory: &Path) -> f64 {
    const USUAL_KIB: f64 = 128.0;
    let kib = || {
        let device = directory.metadata().ok()?.dev();
        let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
        files.read_first_line(&format!("sys/class/bdi/{major}:{minor}/read_ahead_kb"))?.trim().parse().ok()
    };
    (kib().unwrap_or(USUAL_KIB) / (PAGE >> 10) as f64).max(1.0)
}

fn hole_case(name: &str, title: &str, random: bool, advice: Order) -> Case {
    let set_up = set_up(move |place| Hole::new(&place.scratch, random, advice));
    Case::new(name, title, set_up)
        .need(FOUR_KIB)
        .need(FAULTS_COUNTED)
        .one_by_one()
        .claim(Claim::Checked("every touch that was counted was one major fault and no other"))
        .claim(Claim::Checked("before it was touched the page was not in the page cache, by mincore"))
        .claim(Claim::Checked(
            "the file has no block on the disk, what was read is zero, and the kernel has charged this thread with no \
             byte read from a device, where it counts them",
        ))
        .claim(Claim::Counted(check_major_faults))
}

/// The file, its mapping of this iteration, and the outcome.
struct Hole {
    file: File,
    mapped: Option<Region>,
    advice: Order,
    /// Chooses the pages; `None` for index 0.
    random: Option<Random>,
    page: usize,
    /// The counts before the touch: faults of this thread, and bytes read from devices.
    before: (Faults, Option<u64>),
    tally: Tally,
}

impl Hole {
    fn new(directory: &Path, random: bool, advice: Order) -> Result<Self> {
        if let Some(why) = volume::no_disk_reason(directory) {
            return Err(Error::Missing(format!("{why}; {}", volume::tmpdir_advice(MOST_STORED))));
        }
        let file = make_sparse_file(directory, BYTES)?;
        let random = random.then(|| Random::new(BYTES));
        let (mapped, page, before, tally) = Default::default();
        Ok(Self { file, mapped, advice, random, page, before, tally })
    }

    /// Opens and maps the file anew, so that the kernel reads around the touch as it does at the first touch of a program.
    fn prepare_touch(&mut self) -> Result<()> {
        self.page = self.random.as_mut().map_or(0, |random| random.number_below(PAGES));
        for _ in 0..ATTEMPTS {
            // Mapped pages cannot be evicted.
            self.mapped = None;
            posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
                .map_err(|errno| Error::from_errno("posix_fadvise POSIX_FADV_DONTNEED", errno))?;
            let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            let opened = File::open(&path).map_err(|e| Error::file(&path, "opening again", e))?;
            let region = Region::map_file(&opened, BYTES as usize)?;
            region.advise_order(self.advice)?;
            let is_cached = region.count_resident(self.page..self.page + 1, &mut [0])? > 0;
            self.mapped = Some(region);
            if !is_cached {
                self.before = (Faults::count_so_far()?, fault_count::bytes_read_from_devices());
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(Error::Missing(
            "the file system keeps a page in the cache that was given up (POSIX_FADV_DONTNEED)".into(),
        ))
    }

    fn check_touch(&mut self, byte: Option<u8>) -> Result<Counts> {
        let faults = Faults::count_so_far()?.since(self.before.0);
        check_hole(byte, self.before.1.zip(fault_count::bytes_read_from_devices()))?;
        if faults == (Faults { minor: 0, major: 1 }) {
            return Ok(self.tally.count(1, faults));
        }
        self.tally.leave_out(faults).map_err(Error::Missing)
    }
}

/// A file without a name that consists of one hole of this length, bytes.
fn make_sparse_file(directory: &Path, bytes: u64) -> Result<File> {
    let name = directory.display();
    // The kernel kills a process that exceeds this limit, without an explanation.
    if getrlimit(Resource::RLIMIT_FSIZE).is_ok_and(|(limit, _)| limit < bytes) {
        return Err(Error::Missing(format!(
            "a file of {bytes} bytes is longer than RLIMIT_FSIZE allows: raise `ulimit -f`"
        )));
    }
    let file = tempfile::tempfile_in(directory).map_err(|e| Error::file(directory, "making a file in", e))?;
    file.set_len(bytes).map_err(|e| {
        Error::Missing(format!("the file system of {name} takes no file of {bytes} bytes: {e}"))
    })?;
    let stored =
        file.metadata().map_err(|e| Error::file(directory, "asking for a file in", e))?.blocks() * 512;
    if stored > MOST_STORED {
        return Err(Error::Missing(format!(
            "the file system of {name} makes no holes: a file of {bytes} bytes took {stored} bytes of it"
        )));
    }
    Ok(file)
}

/// Checks that the touched byte is zero and that no device was read, as for a hole.
fn check_hole(byte: Option<u8>, charged: Option<(u64, u64)>) -> Result<()> {
    ensure(byte == Some(0), || Error::Disproved(format!("a hole held {byte:?} and no zero")))?;
    match charged {
        Some((before, after)) if after > before => Err(Error::Contradicted(format!(
            "the kernel has read {} bytes from a device for a touch of a hole",
            after - before
        ))),
        _ => Ok(()),
    }
}

impl Subject for Hole {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.tally.last = 0;
        let touch = |hole: &mut Self| hole.mapped.as_ref().map(|region| region.read_first_byte(hole.page));
        clock.time_each(iterations, self, Self::prepare_touch, touch, Self::check_touch)
    }

    fn report(&self) -> Report {
        self.tally.report()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_clock;
    use crate::platform::testing::value_or_skip;
    use std::io::Write;

    #[test]
    fn each_touch_of_a_hole_is_a_major_fault_without_the_disk() {
        let scratch = tempfile::tempdir().expect("a directory");
        for (random, advice) in [(false, Order::Untold), (true, Order::Untold), (true, Order::Random)] {
            let Some(mut hole) = value_or_skip(Hole::new(scratch.path(), random, advice)) else { return };
            hole.run(20, &test_clock()).expect("touched");
            let (next, region) = (hole.page + 1, hole.mapped.as_ref().expect("mapped"));
            let is_beside = region.count_resident(next..next + 1, &mut [0]).expect("asked") == 1;
            assert_eq!(is_beside, advice == Order::Untold, "page {next} after a touch of the one before");
            assert_eq!((hole.report().events, hole.tally.faults.major), (Some(20), 20));
            assert_eq!(hole.page != 0, random, "index 0, or one of ten million");
        }
        assert_eq!(std::fs::read_dir(scratch.path()).expect("listed").count(), 0, "the file has a name");
    }

    #[test]
    fn a_longer_read_ahead_is_predicted_to_take_longer() {
        let (root, place) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
        let files = KernelFiles::under(root.path());
        assert_eq!(read_ahead_pages(&files, place.path()), 32.0, "the kernel does not tell");
        let device = place.path().metadata().expect("there").dev();
        let name = format!("{}:{}", nix::sys::stat::major(device), nix::sys::stat::minor(device));
        let bdi = root.path().join("sys/class/bdi").join(name);
        std::fs::create_dir_all(&bdi).expect("made");
        std::fs::write(bdi.join("read_ahead_kb"), "8192\n").expect("written");
        assert_eq!(read_ahead_pages(&files, place.path()), 2048.0);
    }

    #[test]
    fn what_was_written_is_no_hole() {
        assert!(check_hole(Some(0), Some((7, 7))).is_ok() && check_hole(Some(0), None).is_ok());
        assert!(check_hole(Some(1), None).is_err() && check_hole(Some(0), Some((7, 4103))).is_err());
        let scratch = tempfile::tempdir().expect("a directory");
        let Some(mut hole) = value_or_skip(Hole::new(scratch.path(), false, Order::Untold)) else { return };
        hole.file.write_all(&[9; PAGE]).expect("written");
        hole.file.sync_all().expect("stored");
        assert!(matches!(hole.run(1, &test_clock()), Err(Error::Disproved(why)) if why.contains("Some(9)")));
    }
}
