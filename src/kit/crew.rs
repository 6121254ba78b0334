//! A crew: partners, each on a CPU of its own, that do the same number of operations at the same time as the measuring
//! thread. Between batches they sleep.

use crate::error::{Error, Result};
use crate::platform::futex::{Reach, wait, wake_all};
use crate::platform::partner::{Class, Kind, Partner, Task};
use crate::platform::shared::Words;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Indices into the crew's shared page.
mod word {
    /// The number of the current batch. Partners without work sleep on this word.
    pub(super) const TURN: usize = 0;
    /// The operations that each partner does in this batch.
    pub(super) const OPERATIONS: usize = 1;
    /// Partners that are awake and wait for the signal.
    pub(super) const READY: usize = 2;
    /// The signal: the number of the batch that begins.
    pub(super) const GO: usize = 3;
    /// Partners that have finished.
    pub(super) const DONE: usize = 4;
    /// The error number of a partner whose operation was refused.
    pub(super) const REFUSED: usize = 5;
}

/// Time after which a crew that has not woken up, or has not finished, counts as hung.
const PATIENCE: Duration = Duration::from_secs(5);
/// Polls of a word between two readings of the time.
const POLLS: u32 = 1 << 16;

/// The partners of a measuring thread that does the same work.
pub struct Crew {
    partners: Vec<Partner>,
    page: Arc<Words>,
}

impl Crew {
    /// Starts a partner on each of these CPUs, with the work that `make` returns for its index. The work is called with
    /// the number of operations, and returns a negative error number if one was refused.
    ///
    /// # Errors
    /// The errors of `make`; the kernel refuses a partner.
    pub fn start<W: FnMut(u64) -> i64 + Send + 'static>(
        kind: Kind,
        cpus: &[usize],
        make: impl Fn(usize) -> Result<W>,
    ) -> Result<Self> {
        let page = Arc::new(Words::new()?);
        let start = |(index, &cpu): (usize, &usize)| {
            let (theirs, nudged) = (Arc::clone(&page), Arc::clone(&page));
            let (mut work, mut seen) = (make(index)?, 0);
            let step = move || {
                wait(&theirs[word::TURN].value, seen, Reach::Shared);
                let turn = theirs[word::TURN].value.load(SeqCst);
                if turn != seen {
                    seen = turn;
                    work_in_turn(&theirs, turn, &mut work);
                }
                0
            };
            let nudge = move || {
                nudged[word::OPERATIONS].value.store(0, SeqCst);
                let turn = start_turn(&nudged);
                nudged[word::GO].value.store(turn, SeqCst);
            };
            Partner::start(kind, (cpu, Class::Ordinary), step, nudge)
        };
        let partners = cpus.iter().enumerate().map(start).collect::<Result<_>>()?;
        Ok(Self { partners, page })
    }

    /// The partners, for reports.
    pub fn partner_tasks(&self) -> Vec<Task> {
        self.partners.iter().map(Partner::task).collect()
    }

    /// Wakes the crew and waits until every partner is ready. Returns the number of the batch, for [`Crew::signal_start`].
    ///
    /// # Errors
    /// [`Error::Disproved`] for a partner that has ended, [`Error::Disturbed`] for one that is not ready within 5 s.
    pub fn wake_and_wait(&mut self, operations: u64) -> Result<u32> {
        let operations = u32::try_from(operations).unwrap_or(u32::MAX);
        for (at, value) in [(word::OPERATIONS, operations), (word::READY, 0), (word::DONE, 0)] {
            self.page[at].value.store(value, SeqCst);
        }
        let turn = start_turn(&self.page);
        self.poll_until_all(word::READY)?;
        Ok(turn)
    }

    /// Gives the signal to begin.
    #[inline(always)]
    pub fn signal_start(&self, turn: u32) {
        self.page[word::GO].value.store(turn, SeqCst);
    }

    /// Waits until every partner has finished.
    ///
    /// # Errors
    /// The errors of [`Crew::wake_and_wait`]; an operation that was refused to a partner.
    pub fn wait_until_finished(&mut self) -> Result<()> {
        self.poll_until_all(word::DONE)?;
        match self.page[word::REFUSED].value.load(SeqCst) {
            0 => Ok(()),
            errno => {
                let errno = nix::errno::Errno::from_raw(i32::try_from(errno).unwrap_or(0));
                Err(Error::from_errno("an operation of a partner", errno))
            }
        }
    }

    /// Polls until the word at this index has counted every partner. It does not sleep, since the measured time would then
    /// include a wake-up.
    fn poll_until_all(&mut self, at: usize) -> Result<()> {
        let begun = Instant::now();
        loop {
            for _ in 0..POLLS {
                if self.page[at].value.load(SeqCst) as usize == self.partners.len() {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            if let Some(fate) = self.partners.iter_mut().find_map(Partner::fate) {
                return Err(fate.into_error(""));
            }
            if begun.elapsed() > PATIENCE {
                let count = self.page[at].value.load(SeqCst);
                let all = self.partners.len();
                let seconds = PATIENCE.as_secs();
                return Err(Error::Disturbed(format!("only {count} of {all} partners came in {seconds} s")));
            }
        }
    }
}

/// Begins the next turn and wakes the partners. Returns the number of the turn.
fn start_turn(page: &Words) -> u32 {
    let turn = page[word::TURN].value.fetch_add(1, SeqCst) + 1;
    wake_all(&page[word::TURN].value, Reach::Shared);
    turn
}

/// One turn of a partner: it reports that it is ready, polls for the signal, and does the operations.
fn work_in_turn(page: &Words, turn: u32, work: &mut impl FnMut(u64) -> i64) {
    page[word::READY].value.fetch_add(1, SeqCst);
    while page[word::GO].value.load(SeqCst) != turn {
        std::hint::spin_loop();
        // A later batch has replaced this one.
        if page[word::TURN].value.load(SeqCst) != turn {
            return;
        }
    }
    let answer = work(u64::from(page[word::OPERATIONS].value.load(SeqCst)));
    if answer < 0 {
        page[word::REFUSED].value.store(u32::try_from(-answer).unwrap_or(1), SeqCst);
    }
    page[word::DONE].value.fetch_add(1, SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;

    fn all_cpus_but_one() -> Vec<usize> {
        let mut cpus = cpu::allowed_cpus();
        cpus.pop();
        cpus
    }

    #[test]
    fn every_partner_does_the_same_number_of_operations() {
        for kind in [Kind::Process, Kind::Thread] {
            let sum = Arc::new(Words::new().expect("mapped"));
            let theirs = Arc::clone(&sum);
            let make = move |_| {
                let sum = Arc::clone(&theirs);
                Ok(move |n: u64| {
                    (0..n).map(|_| i64::from(sum[0].value.fetch_add(1, SeqCst))).min().unwrap_or(0)
                })
            };
            let mut crew = Crew::start(kind, &all_cpus_but_one(), make).expect("started");
            for batch in [1, 1000] {
                sum[0].value.store(0, SeqCst);
                let turn = crew.wake_and_wait(batch).expect("ready");
                assert_eq!(sum[0].value.load(SeqCst), 0, "no partner begins before the signal");
                crew.signal_start(turn);
                crew.wait_until_finished().expect("done");
                assert_eq!(sum[0].value.load(SeqCst) as usize, batch as usize * all_cpus_but_one().len());
            }
        }
    }

    #[test]
    fn an_operation_that_was_refused_is_an_error() {
        if all_cpus_but_one().is_empty() {
            return crate::platform::testing::print_skipped("there is one CPU");
        }
        let make = |_| Ok(|_: u64| -i64::from(libc::EMFILE));
        let mut crew = Crew::start(Kind::Process, &all_cpus_but_one(), make).expect("started");
        let turn = crew.wake_and_wait(1).expect("ready");
        crew.signal_start(turn);
        assert!(crew.wait_until_finished().expect_err("refused").to_string().contains("open files"));
    }
}
