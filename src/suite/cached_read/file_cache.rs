//! Files that fit into the file cache and files that do not, read round and round.

use super::MIB;
use crate::kit::blocks::{DISK, OWN_NUMBER};
use crate::kit::contract::*;
use crate::platform::control_group::own_group::LimitedMemory;
use crate::platform::pattern_file::{self, PatternFile, Way};
use crate::platform::volume;
use memmap2::MmapMut;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of one read.
const BLOCK: usize = 1 << 20;

/// Files that are read within one limit of memory; all sizes in MiB.
struct Series {
    name: &'static str,
    limit: u64,
    files: &'static [u64],
}

/// A quick series, and one with the memory of the report's time.
#[rustfmt::skip]
const SERIES: [Series; 2] = [
    Series { name: "64MiB", limit: 64, files: &[16, 32, 48, 56, 60, 64, 72, 96] },
    Series { name: "1GiB", limit: 1024, files: &[256, 512, 640, 704, 768, 832, 896, 960, 1024, 1152, 1280, 1536] },
];

pub(super) fn cases() -> Vec<Case> {
    let series_cases =
        |series: Series| series.files.iter().map(move |file| file_case(&series, *file)).collect::<Vec<_>>();
    SERIES.into_iter().flat_map(series_cases).collect()
}

fn file_case(series: &Series, file: u64) -> Case {
    let (limit, bytes) = (series.limit * MIB, file * MIB);
    let set_up = set_up(move |place| {
        check_free_space(&place.scratch, bytes)?;
        Round::new(PatternFile::create_filled(&place.scratch, bytes, Way::Cached)?, limit)
    });
    let name = format!("file-cache-in-{}/{file}MiB", series.name);
    let title = format!("1 MiB of a file of {file} MiB, read round and round in {} of memory", series.name);
    let case = Case::new(name, title, set_up)
        .need(if limit > SMALL { TAKES_SECONDS } else { NOT_SMOKE })
        .need(DISK)
        .one_by_one()
        // The kernel chooses which part of the file stays in the cache, so a sample is whole rounds.
        .lap_length(file)
        // The kernel's own threads reclaim pages.
        .own_tasks(OwnTasks::Elsewhere)
        .claim(Claim::Checked(LIMITED))
        .claim(Claim::Checked(OWN_NUMBER));
    match file < series.limit {
        true => case.predict(130_000.0, 60_000.0, "copied from memory, 8 bytes a cycle"),
        false => case.predict(3_000_000.0, 400_000.0, "read from a flash disk, a gigabyte a second"),
    }
}

/// The largest limit that is filled at default scale, bytes.
const SMALL: u64 = 64 * MIB;

const LIMITED: &str = "a control group limited memory, and by its own account cached no more than that";

const NOT_SMOKE: Need = Need::new(|place| match place.scale {
    Scale::Smoke => Err("smoke scale: a file cache is filled at default and full scale".into()),
    _ => Ok(()),
});

/// Checks that the directory has room for these bytes and a quarter more.
fn check_free_space(directory: &Path, bytes: u64) -> Result<()> {
    let unknown =
        || Error::Missing(format!("{}: the free space is unknown (statvfs failed)", directory.display()));
    let free = volume::free_bytes(directory).ok_or_else(unknown)?;
    if free >= bytes + bytes / 4 {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "a file of {} MiB is needed in {} and {} MiB are free there: make room, or give another directory (`--dir`)",
        bytes >> 20,
        directory.display(),
        free >> 20
    )))
}

/// A file that is read in order, again and again, in a memory cgroup.
struct Round {
    cgroup: LimitedMemory,
    /// Bytes that the group may use.
    limit: u64,
    file: PatternFile,
    at: u64,
    buffer: MmapMut,
    /// The time of the current round until now.
    spent: Ticks,
    /// The bandwidth of each complete round, GB/s.
    rounds: Vec<f64>,
    /// The group's cached memory after each batch, MiB.
    cached: Vec<f64>,
}

impl Round {
    /// Evicts the file from the cache, limits the memory, and reads the file once.
    fn new(file: PatternFile, limit: u64) -> Result<Self> {
        file.evict()?;
        let cgroup = LimitedMemory::enter(limit)?;
        let buffer = pattern_file::map_buffer(BLOCK)?;
        let (rounds, cached) = (Vec::new(), Vec::new());
        let mut round = Self { cgroup, limit, file, at: 0, buffer, spent: Ticks(0), rounds, cached };
        // This round fills the cache; from the next on the kernel knows which pages are used again.
        for _ in 0..round.file.bytes() / BLOCK as u64 {
            let got = round.file.file().read_at(&mut round.buffer, round.at);
            round.verify_and_advance(got)?;
        }
        Ok(round)
    }

    /// Verifies the block and advances to the next.
    #[inline(always)]
    fn verify_and_advance(&mut self, got: std::io::Result<usize>) -> Result<()> {
        self.file.check_block(got, &self.buffer, self.at)?;
        self.at = (self.at + BLOCK as u64) % self.file.bytes();
        Ok(())
    }

    /// Times the read of one block. At the end of a round, stores the round's bandwidth.
    fn read(&mut self, clock: &Clock) -> Result<Ticks> {
        let mut got = Ok(0);
        let ticks = clock.time(|| got = self.file.file().read_at(&mut self.buffer, self.at));
        self.verify_and_advance(got)?;
        self.spent += ticks;
        if self.at == 0 {
            self.rounds.push(self.file.bytes() as f64 / clock.nanoseconds(self.spent).0.max(1.0));
            self.spent = Ticks(0);
        }
        Ok(ticks)
    }
}

impl Subject for Round {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        // Which part of the file stays in the cache is the kernel's choice, so samples begin after a whole round. The
        // reads of that round are no samples: their clock keeps no single times.
        let unrecorded = Clock::with_scale(clock.scale());
        while self.rounds.is_empty() {
            self.read(&unrecorded)?;
        }
        let ticks = (0..iterations).map(|_| self.read(clock)).sum::<Result<_>>()?;
        let cached = self.cgroup.cached_bytes()?;
        check_cached_amount(cached, self.limit).map_err(Error::Contradicted)?;
        self.cached.push(cached as f64 / MIB as f64);
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report {
            found: vec![
                Found::new("bandwidth", "GB/s", self.rounds.clone()),
                Found::new("cached", "MiB", self.cached.clone()),
            ],
            ..Report::default()
        }
    }
}

/// The group must have cached something, and no more than its limit.
fn check_cached_amount(cached: u64, limit: u64) -> std::result::Result<(), String> {
    match cached {
        0 => Err("the control group has cached nothing: the reads were charged to another".into()),
        cached if cached > limit => {
            Err(format!("the control group has cached {cached} bytes of {limit}: it limits nothing"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_clock;
    use crate::platform::process::page_size;
    use crate::platform::testing::run_in_child_process;
    use crate::platform::testing::value_or_skip;

    #[test]
    fn a_group_that_limits_nothing_or_caches_nothing_is_an_error() {
        assert!(
            check_cached_amount(0, 10).is_err()
                && check_cached_amount(11, 10).is_err()
                && check_cached_amount(10, 10).is_ok()
        );
    }

    /// A file that fits stays in the cache; a larger one does not. The limit holds for a whole process, hence the child.
    #[test]
    fn a_file_above_the_limit_is_not_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        run_in_child_process(|| {
            for (bytes, fits) in [(8 * MIB, true), (96 * MIB, false)] {
                let file = PatternFile::create_filled(directory.path(), bytes, Way::Cached).expect("a file");
                let Some(mut round) = value_or_skip(Round::new(file, 32 * MIB)) else { return };
                round.run(1, &test_clock()).expect("read");
                let kept = round.file.count_resident_pages(0..bytes).expect("mincore") as u64 * page_size();
                assert_eq!(kept == bytes, fits, "{kept} of {bytes}");
            }
        });
    }

    #[test]
    fn a_disk_without_room_is_missing() {
        assert!(matches!(check_free_space(Path::new("/"), 1 << 60), Err(Error::Missing(_))));
    }
}
