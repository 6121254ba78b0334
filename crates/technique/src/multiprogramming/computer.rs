//! Jobs on one CPU in a memory control group that is too small for all of them.

use super::{Account, Job, MemoryGroup, make_job_file, run_job};
use crate::control::Background;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use syscost_platform::child::Child;
use syscost_platform::cpu;
use syscost_platform::error::{Error, Result};
use syscost_platform::shared::Words;

/// The paging during a window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paging {
    /// The length of the window.
    pub window: Duration,
    /// The number of page reads, which measures the work done.
    pub touches: u64,
    /// The number of page-ins.
    pub page_ins: u64,
    /// The total time of the page-ins.
    pub waited: Duration,
}

impl Paging {
    /// Page reads per second.
    pub fn throughput(&self) -> f64 {
        self.touches as f64 / self.window.as_secs_f64()
    }

    /// F: the mean time between two page-ins; `None` without a page-in.
    pub fn mean_fault_interval(&self) -> Option<Duration> {
        (self.page_ins > 0).then(|| self.window.div_f64(self.page_ins as f64))
    }

    /// S: the mean time of a page-in; `None` without a page-in.
    pub fn mean_page_in_time(&self) -> Option<Duration> {
        (self.page_ins > 0).then(|| self.waited.div_f64(self.page_ins as f64))
    }

    /// S/F: the mean number of jobs that waited for the paging device during the window.
    pub fn mean_queue_length(&self) -> f64 {
        self.waited.as_secs_f64() / self.window.as_secs_f64()
    }
}

/// The jobs, their memory and their CPU.
pub struct Computer {
    jobs: Background,
    words: Arc<Words>,
    /// Counts of each job at the end of the last window: reads, page-ins, nanoseconds.
    seen: Vec<[u32; 3]>,
    since: Instant,
    /// Dropped after the jobs, since only an empty group can be removed.
    memory: MemoryGroup,
}

impl Computer {
    /// Starts `count` jobs on the CPU `on`, all of them suspended. Their files are in `directory`, and all jobs share
    /// `memory` bytes.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is no disk, no space or no control group; [`Error::Usage`] if `count` is 0 or too
    /// large.
    pub fn start(directory: &Path, memory: u64, count: usize, job: Job, on: usize) -> Result<Self> {
        if !(1..=Account::MOST).contains(&count) {
            return Err(Error::Usage(format!("{count} jobs: expected 1 to {}", Account::MOST)));
        }
        let group = MemoryGroup::with_limit(memory)?;
        let words = Arc::new(Words::new()?);
        cpu::initial_cpus(); // initialised here: a forked child must not wait for a lock
        let start = |number: usize| {
            let file = make_job_file(directory, &job)?;
            let theirs = Arc::clone(&words);
            let child = Child::start(move || {
                run_job(&job, &file, Account::new(&theirs, number), on, number as u64);
            })?;
            group.add_process(child.pid().as_raw())?;
            Account::new(&words, number).may_begin.store(1, Relaxed);
            Ok(child)
        };
        let mut jobs = Background::new((0..count).map(start).collect::<Result<_>>()?);
        jobs.run_first(0)?;
        Ok(Self { jobs, words, seen: vec![[0; 3]; count], since: Instant::now(), memory: group })
    }

    /// The number of all jobs.
    pub fn job_count(&self) -> usize {
        self.jobs.process_count()
    }

    /// The number of running jobs: the degree of multiprogramming.
    pub fn degree(&self) -> usize {
        self.jobs.running_count()
    }

    /// The memory that the jobs share.
    pub fn memory(&mut self) -> &mut MemoryGroup {
        &mut self.memory
    }

    /// Lets the first `degree` jobs run and suspends the others.
    ///
    /// # Errors
    /// [`Error::Kernel`] where one of the jobs has ended.
    pub fn run_first(&mut self, degree: usize) -> Result<()> {
        self.jobs.run_first(degree)
    }

    /// Lets the jobs run for `window`, and returns the paging since the last call.
    pub fn measure_paging(&mut self, window: Duration) -> Paging {
        std::thread::sleep(window);
        let mut paging = Paging::default();
        for (number, seen) in self.seen.iter_mut().enumerate() {
            let account = Account::new(&self.words, number);
            let now = [account.touches, account.page_ins, account.nanoseconds].map(|word| word.load(Relaxed));
            let [touches, page_ins, waited] = [0, 1, 2].map(|at| u64::from(now[at].wrapping_sub(seen[at])));
            *seen = now;
            paging.touches += touches;
            paging.page_ins += page_ins;
            paging.waited += Duration::from_nanos(waited);
        }
        let now = Instant::now();
        paging.window = now - self.since;
        self.since = now;
        paging
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::ControlParameter;
    use syscost_platform::testing::print_skipped;

    #[test]
    fn two_jobs_that_do_not_fit_page_and_one_that_fits_does_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let job = Job { bytes: 4 << 20, touches: 100, turns: 500, wait: Duration::ZERO };
        let on = cpu::allowed_cpus()[0];
        let mut computer = match Computer::start(directory.path(), 7 << 20, 2, job, on) {
            Err(Error::Missing(why)) => return print_skipped(&why.to_string()),
            made => made.expect("started"),
        };
        let group = computer.memory.directory().to_owned();
        let mut settled = |degree| {
            computer.run_first(degree).expect("they run");
            // In the first window the job's file is read in, and older pages are evicted.
            computer.measure_paging(Duration::from_millis(400));
            computer.measure_paging(Duration::from_millis(400))
        };
        let (alone, both) = (settled(1), settled(2));
        assert!(alone.touches > 0 && both.touches > 0, "{alone:?} {both:?}");
        let share = |paging: &Paging| paging.page_ins as f64 / paging.touches as f64;
        assert!(share(&both) > 2.0 * share(&alone), "{alone:?} {both:?}");
        assert!(
            both.mean_queue_length() > alone.mean_queue_length() && both.mean_fault_interval().is_some(),
            "{both:?}"
        );
        computer.memory().apply((16 << 20) as f64).expect("ours");
        computer.measure_paging(Duration::from_millis(400));
        let roomy = computer.measure_paging(Duration::from_millis(400));
        assert!(share(&both) > 2.0 * share(&roomy), "{both:?} {roomy:?}");
        drop(computer);
        assert!(!group.exists(), "the group is gone");
    }

    #[test]
    fn throughput_fault_interval_and_page_in_time_follow_from_the_counts() {
        let paging = Paging {
            window: Duration::from_millis(100),
            touches: 5_000,
            page_ins: 50,
            waited: Duration::from_millis(150),
        };
        assert!((paging.throughput() - 50_000.0).abs() < 1e-6);
        assert_eq!(paging.mean_fault_interval(), Some(Duration::from_millis(2)));
        assert_eq!(paging.mean_page_in_time(), Some(Duration::from_millis(3)));
        assert!((paging.mean_queue_length() - 1.5).abs() < 1e-12);
        assert_eq!(Paging { page_ins: 0, ..paging }.mean_fault_interval(), None);
    }

    #[test]
    fn more_jobs_than_accounts_are_refused() {
        let refused = Computer::start(
            Path::new("."),
            1 << 20,
            Account::MOST + 1,
            Job { bytes: 1, touches: 1, turns: 1, wait: Duration::ZERO },
            0,
        );
        assert!(matches!(refused, Err(Error::Usage(_))));
    }
}
