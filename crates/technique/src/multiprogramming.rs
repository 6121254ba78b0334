//! Adaptive control of the degree of multiprogramming (DMP): how many jobs may run at a time for nearly the best
//! throughput.
//!
//! With too few jobs the machine is idle while they wait. With too many they take each other's pages, and all wait for the
//! paging device: they *thrash*. Let F be the mean time between two major page faults, and S the mean time to bring a page
//! in. The machine is well used at F ≈ S.
//!
//! The control uses S/F, because F is undefined without faults. By Little's law S/F is the mean number of jobs that wait for
//! the paging device. Far below 1 the device is idle and another job may run; above 1 jobs queue and one must be suspended.
//! [`Pilot`] uses the damped S/F as its performance index, with 1 as the goal.
//!
//! A [`Computer`] is real: its jobs read random pages of files of their own, on one CPU, in a memory control group that
//! holds only some of them. Mapped files are paged, so that no swap is needed. Each job times its own page-ins, as the
//! page fault handler does in the slides. A job is swapped out by suspending it (SIGSTOP): the kernel then reclaims its
//! unused pages first. The jobs end with the thread that started the computer; a cleanup process removes the group,
//! also after a kill.
//!
//! Source: slides 86 to 91 of the [module's](super) slides; P. J. Denning, *Thrashing: Its Causes and Prevention* (1968)
//! and the L = S criterion (Denning and others, 1976).
//!
//! The control group limits the memory of all jobs together, and is removed with the process that made it. A job reads random
//! pages of its file, computes, waits, and times its page-ins.

mod computer;

use crate::index::PerformanceIndex;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use syscost_platform::child::CleanupProcess;
use syscost_platform::control_group::own_group::MemoryCgroup;
use syscost_platform::error::{Error, Result};
use syscost_platform::evictable::Evictable;
use syscost_platform::region::Order;
use syscost_platform::shared::Words;
use syscost_platform::{arch, cpu, process, time};
use syscost_statistic::Random;

pub use computer::{Computer, Paging};

/// The pause between two tries to remove a group that still has tasks, and the number of tries: killed tasks take a moment to
/// end.
const AGAIN: (Duration, u32) = (Duration::from_millis(10), 1000);

/// A memory control group with a limit. It is removed when this value is dropped, or when its process ends, even by a kill.
#[derive(Debug)]
pub struct MemoryGroup {
    group: MemoryCgroup,
    _cleanup: CleanupProcess,
}

impl MemoryGroup {
    /// Makes a group below that of this process, or below one of its ancestors.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is no memory controller, or where this process may not make a group.
    pub fn with_limit(bytes: u64) -> Result<Self> {
        let group = MemoryCgroup::with_limit(bytes).map_err(|why| {
            Error::Missing(format!(
                "a memory control group is needed: {why}; run as root, or in a group that was delegated (`systemd-run \
                 --user --scope -p Delegate=yes`)"
            ))
        })?;
        let directory = group.directory().to_owned();
        let cleanup = CleanupProcess::start(move || remove_group(&directory));
        let cleanup = cleanup.inspect_err(|_| remove_group(group.directory()))?;
        // The jobs must be paged, not swapped.
        group.forbid_swap();
        Ok(Self { group, _cleanup: cleanup })
    }

    /// Moves a process into the group, with its threads. Memory that it touched earlier stays charged to its former group.
    ///
    /// # Errors
    /// [`Error::File`] where the kernel refuses.
    pub fn add_process(&self, pid: i32) -> Result<()> {
        self.group.add_process(pid)
    }

    /// Sets another limit, bytes. The kernel takes away the pages beyond it.
    ///
    /// # Errors
    /// [`Error::File`] where the kernel refuses, for example a limit below the memory that it cannot reclaim.
    pub fn set_limit(&mut self, bytes: u64) -> Result<()> {
        self.group.set_limit(bytes)
    }

    /// The directory of the group.
    #[cfg(test)]
    pub(super) fn directory(&self) -> &Path {
        self.group.directory()
    }
}

fn remove_group(directory: &Path) {
    for _ in 0..AGAIN.1 {
        match fs::remove_dir(directory) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(AGAIN.0),
            _ => return,
        }
    }
}

/// The parameters of a job.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Size of its file, bytes. All pages of the file are read with equal probability.
    pub bytes: usize,
    /// The number of page reads in a transaction.
    pub touches: u32,
    /// Iterations of a register loop after each read.
    pub turns: u64,
    /// Mean wait after a transaction, as for a terminal or for a device other than the paging device.
    pub wait: Duration,
}

/// The duration, ns, above which a read may have been a page-in; the count of major faults then decides. An ordinary read
/// takes a hundredth of this.
const SLOW_NS: u64 = 4_000;
/// The duration, ns, above which a read was interrupted by a suspension.
const SUSPENDED_NS: u64 = 100_000_000;

/// The counts of a job in shared memory. They wrap around.
#[derive(Clone, Copy)]
pub(super) struct Account<'a> {
    /// 0 until the job may begin.
    pub(super) may_begin: &'a AtomicU32,
    pub(super) touches: &'a AtomicU32,
    /// The number of page-ins, and their total time in nanoseconds.
    pub(super) page_ins: &'a AtomicU32,
    pub(super) nanoseconds: &'a AtomicU32,
}

impl<'a> Account<'a> {
    /// The maximum number of jobs, set by the size of the shared page.
    pub(super) const MOST: usize = syscost_platform::shared::COUNT / 4;

    pub(super) fn new(words: &'a Words, job: usize) -> Self {
        let word = |at: usize| &words[4 * job + at].value;
        Self { may_begin: word(0), touches: word(1), page_ins: word(2), nanoseconds: word(3) }
    }
}

/// Makes the file of a job and evicts it from the page cache, since pages are charged to the first process that reads them.
///
/// # Errors
/// [`Error::Missing`] where the file cannot be evicted.
pub(super) fn make_job_file(directory: &Path, job: &Job) -> Result<Evictable> {
    let mut file = Evictable::new(directory, job.bytes)?;
    file.evict()?;
    // Switches read-ahead off.
    file.region().advise_order(Order::Random)?;
    Ok(file)
}

/// Runs a job for ever. It is called in the job's own process.
pub(super) fn run_job(job: &Job, file: &Evictable, account: Account<'_>, on: usize, seed: u64) {
    while account.may_begin.load(Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    if cpu::pin_thread(on).is_err() {
        return;
    }
    let (region, mut random) = (file.region(), Random::new(seed));
    let mut faults = major_faults();
    loop {
        for _ in 0..job.touches {
            let page = random.number_below(region.page_count());
            let begun = time::clock_gettime_ns(libc::CLOCK_MONOTONIC);
            std::hint::black_box(region.read_first_byte(page));
            let took = time::clock_gettime_ns(libc::CLOCK_MONOTONIC) - begun;
            if took > SLOW_NS {
                let now = major_faults();
                if now > faults && took < SUSPENDED_NS {
                    account.page_ins.fetch_add(1, Relaxed);
                    account.nanoseconds.fetch_add(took as u32, Relaxed);
                }
                faults = now;
            }
            arch::register_loop(job.turns);
        }
        account.touches.fetch_add(job.touches, Relaxed);
        if !job.wait.is_zero() {
            std::thread::sleep(job.wait.mul_f64(2.0 * random.number_below(1000) as f64 / 1000.0));
        }
    }
}

fn major_faults() -> i64 {
    process::thread_usage().map_or(0, |usage| usage.major_page_faults())
}

// The controller: one job fewer while jobs queue for the paging device, one job more while the device is idle.

/// The goal: F = S.
const GOAL: f64 = 1.0;
/// Windows before a degree that was too high is tried again. The number doubles after each failure, up to the maximum.
const PATIENCE: u32 = 12;
const MOST_PATIENCE: u32 = 192;

/// A controller of the degree of multiprogramming.
///
/// The best degree is a whole number: one value leaves the device idle, and the next overloads it. A simple comparison would
/// alternate between the two and thrash half of the time. This controller remembers the degree that was too high, and retries
/// it at growing intervals. It also ignores the first windows after a change: in these the jobs bring their pages in, which
/// looks like thrashing.
#[derive(Clone, Debug)]
pub struct Pilot {
    index: PerformanceIndex,
    degree: usize,
    limit: usize,
    /// The highest degree that was not too high when it was last tried.
    ceiling: usize,
    /// Windows until a higher degree is tried.
    rest: u32,
    patience: u32,
    /// The number of windows to ignore after a change, and how many of them are left.
    lag: u32,
    changing: u32,
}

impl Pilot {
    /// A controller that starts with one job of at most `limit`, and with an index of this damping. `lag` is the number of
    /// windows in which a new job brings its pages in.
    ///
    /// # Errors
    /// The errors of [`PerformanceIndex::new`].
    pub fn new(limit: usize, damping: f64, lag: u32) -> Result<Self> {
        let index = PerformanceIndex::new(1, damping)?;
        Ok(Self { index, degree: 1, limit, ceiling: limit, rest: 0, patience: PATIENCE, lag, changing: lag })
    }

    /// The same controller with another initial degree.
    pub fn with_initial_degree(self, degree: usize) -> Self {
        Self { degree: degree.clamp(1, self.limit), ..self }
    }

    /// The current degree.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// The damped S/F after the last window.
    pub fn index(&self) -> f64 {
        self.index.value().unwrap_or(0.0)
    }

    /// Takes the paging of a window and returns the new degree. During the windows after a change it returns the old one.
    pub fn update_degree(&mut self, paging: &Paging) -> usize {
        self.rest = self.rest.saturating_sub(1);
        if self.changing > 0 {
            self.changing -= 1;
            return self.degree;
        }
        let Some(queue) = self.index.add_response(paging.mean_queue_length()) else { return self.degree };
        if queue > GOAL && self.degree > 1 {
            // Only a failed retry lengthens the wait; a lower ceiling alone does not.
            let retry_failed = self.degree == self.ceiling + 1;
            self.patience = if retry_failed { (2 * self.patience).min(MOST_PATIENCE) } else { PATIENCE };
            self.rest = self.patience;
            self.change_degree(self.degree - 1);
            self.ceiling = self.degree;
        } else if queue < 0.5 * GOAL
            && self.degree < self.limit
            && (self.degree < self.ceiling || self.rest == 0)
        {
            self.change_degree(self.degree + 1);
        }
        self.degree
    }

    /// Changes the degree. The index restarts, since its past belongs to another degree.
    fn change_degree(&mut self, degree: usize) {
        (self.degree, self.changing) = (degree, self.lag);
        self.index = self.index.clone().with_initial_value(0.5 * GOAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use syscost_platform::testing::print_skipped;

    #[test]
    fn a_real_group_is_removed_with_its_value() {
        match MemoryGroup::with_limit(32 << 20) {
            Ok(group) => {
                let directory = group.directory().to_owned();
                assert!(directory.join("cgroup.procs").exists());
                drop(group);
                assert!(!directory.exists());
            }
            Err(error) => {
                assert!(error.to_string().contains("a memory control group is needed"), "{error}");
                print_skipped(&error.to_string());
            }
        }
    }

    /// A window on a machine where `fits` jobs fit.
    fn window(degree: usize, fits: usize) -> Paging {
        let window = Duration::from_millis(100);
        let queue = if degree <= fits { 0.05 } else { (degree - fits) as f64 + 0.8 };
        Paging { window, touches: 1, page_ins: 1, waited: window.mul_f64(queue) }
    }

    fn run_windows(pilot: &mut Pilot, fits: usize, windows: usize) -> Vec<usize> {
        (0..windows).map(|_| pilot.update_degree(&window(pilot.degree(), fits))).collect()
    }

    fn share_at(degrees: &[usize], degree: usize) -> f64 {
        degrees.iter().filter(|now| **now == degree).count() as f64 / degrees.len() as f64
    }

    #[test]
    fn it_finds_the_best_degree_from_either_side_and_stays_there() {
        for from in [1, 8] {
            for fits in 1..=8 {
                let mut pilot = Pilot::new(8, 0.3, 0).expect("a damping").with_initial_degree(from);
                run_windows(&mut pilot, fits, 60);
                let degrees = run_windows(&mut pilot, fits, 200);
                assert!(share_at(&degrees, fits) > 0.9, "from {from}, {fits} fit: {degrees:?}");
            }
        }
    }

    #[test]
    fn it_follows_a_changing_best_degree() {
        let mut pilot = Pilot::new(8, 0.3, 0).expect("a damping");
        for fits in [3, 6, 2, 8, 1] {
            run_windows(&mut pilot, fits, 500);
            assert!(share_at(&run_windows(&mut pilot, fits, 100), fits) > 0.9, "{fits}");
        }
    }

    #[test]
    fn the_page_ins_after_a_change_are_not_taken_for_thrashing() {
        let share = |lag| {
            let mut pilot = Pilot::new(8, 0.3, lag).expect("a damping");
            let (mut before, mut since, mut degrees) = (1, 0, Vec::new());
            for _ in 0..300 {
                // For five windows a new job waits only for its own pages.
                let queue = if since < 5 { 1.4 } else { 0.05 };
                let paging = Paging { waited: Duration::from_millis(100).mul_f64(queue), ..window(1, 1) };
                let degree = pilot.update_degree(&if pilot.degree() <= 5 {
                    paging
                } else {
                    window(pilot.degree(), 5)
                });
                since = if degree == before { since + 1 } else { 0 };
                before = degree;
                degrees.push(degree);
            }
            share_at(&degrees[100..], 5)
        };
        assert!(share(6) > 0.8, "{}", share(6));
        assert!(share(0) < 0.5, "{}", share(0));
    }

    #[test]
    fn a_degree_that_was_too_high_is_retried_ever_more_rarely() {
        let mut pilot = Pilot::new(8, 0.0, 0).expect("a damping");
        let degrees = run_windows(&mut pilot, 3, 400);
        let tried: Vec<usize> =
            (1..degrees.len()).filter(|at| degrees[*at] == 4 && degrees[at - 1] != 4).collect();
        let gaps: Vec<usize> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.windows(2).all(|pair| pair[1] >= pair[0]) && gaps.last() > gaps.first(), "{gaps:?}");
        assert!(gaps.iter().all(|gap| *gap <= MOST_PATIENCE as usize + 2), "{gaps:?}");
    }
}
