//! Locks that are handed round a ring of tasks: each waits for the lock of the task before it, and then gives up its own.
//!
//! Each task has two locks, of which it holds one. In a round it takes the held lock of its predecessor, takes its own free
//! one for the next round, and releases the two others. The measuring thread is task 0, and begins each round.

use super::operation::{FutexMutex, LibraryMutex, Lock, flock};
use crate::kit::contract::*;
use crate::kit::ipc::Condition;
use crate::kit::kernel_call::{byte_lock, check_granted};
use crate::kit::placement::Placement;
use crate::kit::round_trip::{Exchange, both_left_cpu};
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::shared::Words;
use nix::fcntl::{FcntlArg, fcntl};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Tasks of the ring.
const TASKS: usize = 8;
/// The number of locks. The two locks of a task have adjacent indices.
const LOCKS: usize = 2 * TASKS;

/// Indices into the shared page: the number of tasks that hold their first lock, and that of the last round, 0 until the end.
const READY: usize = 0;
const LAST: usize = 1;

/// What a task needs to use the locks. Each call returns 0 or a negative error number.
trait Locks: Send + 'static {
    /// Takes this lock, and waits as long as another task holds it.
    fn take(&self, index: usize) -> i64;
    /// Releases this lock.
    fn give(&self, index: usize) -> i64;
}

impl<L: Lock> Locks for Arc<Vec<L>> {
    fn take(&self, index: usize) -> i64 {
        self[index].acquire();
        0
    }

    fn give(&self, index: usize) -> i64 {
        self[index].release();
        0
    }
}

/// Locks of whole files, each opened by the task itself: a lock of flock(2) belongs to an open file description.
struct WholeFiles(Vec<File>);

impl Locks for WholeFiles {
    fn take(&self, index: usize) -> i64 {
        flock(&self.0[index], libc::LOCK_EX)
    }

    fn give(&self, index: usize) -> i64 {
        flock(&self.0[index], libc::LOCK_UN)
    }
}

/// Locks of single bytes of a file by `fcntl`, which belong to a process. lockf(3) is the same call.
struct Records(File);

impl Records {
    fn set(&self, index: usize, kind: i32) -> i64 {
        fcntl(&self.0, FcntlArg::F_SETLKW(&byte_lock(index, kind)))
            .map_or_else(|errno| -i64::from(errno as i32), i64::from)
    }
}

impl Locks for Records {
    fn take(&self, index: usize) -> i64 {
        self.set(index, libc::F_WRLCK)
    }

    fn give(&self, index: usize) -> i64 {
        self.set(index, libc::F_UNLCK)
    }
}

fn open_file(place: &Place, index: usize) -> Result<File> {
    let path = place.scratch.join(format!("lock-{index}"));
    let file = File::options().create(true).truncate(false).read(true).write(true).open(&path);
    file.map_err(|e| Error::file(path, "opening", e))
}

/// Sets up a cascade of threads that share locks of one kind.
fn threads_share<L: Lock>(make: fn() -> L) -> SetUp {
    set_up(move |place| {
        let locks: Arc<Vec<L>> = Arc::new((0..LOCKS).map(|_| make()).collect());
        Cascade::start(place, Kind::Thread, move || Ok(Arc::clone(&locks)))
    })
}

pub(super) fn cascade_cases() -> Vec<Case> {
    let whole_files = set_up(|place| {
        Cascade::start(place, Kind::Thread, || {
            Ok(WholeFiles((0..LOCKS).map(|index| open_file(place, index)).collect::<Result<_>>()?))
        })
    });
    let records =
        set_up(|place| Cascade::start(place, Kind::Process, || Ok(Records(open_file(place, LOCKS)?))));
    vec![
        cascade_case("futex-mutex", "a mutex", threads_share(FutexMutex::default), true),
        cascade_case("pthread-mutex", "the C library's mutex", threads_share(LibraryMutex::default), false),
        cascade_case("condition", "a condition variable", threads_share(Condition::full), false),
        cascade_case("flock", "flock", whole_files, false),
        cascade_case("record-lock", "fcntl", records, false),
    ]
}

fn cascade_case(name: &str, title: &str, set_up: SetUp, is_default: bool) -> Case {
    let title = format!("a lock by {title} handed round {TASKS} tasks, on one CPU");
    let case = Placement::Same.add_needs(Case::new(format!("cascade/{name}-{TASKS}"), title, set_up));
    let case = if is_default { case } else { case.need(FULL_SCALE) };
    let why = "a wake-up and a switch for each task, and four operations on locks";
    case.derived_figure("hand-over", Rule::OfCost(1.0 / TASKS as f64))
        .claim(Claim::Counted(both_left_cpu))
        .predict(TASKS as f64 * 1_000.0, TASKS as f64 * 2_500.0, why)
}

/// The measuring thread's part.
struct Cascade<L: Locks> {
    locks: L,
    page: Arc<Words>,
    /// Rounds so far.
    round: u32,
    /// Whether a round has failed, after which the tasks may wait for ever.
    is_broken: bool,
}

impl<L: Locks> Cascade<L> {
    /// Starts the tasks, and waits until each holds its first lock.
    fn start(place: &Place, kind: Kind, make: impl Fn() -> Result<L>) -> Result<Box<dyn Subject>> {
        let page = Arc::new(Words::new()?);
        let at = (Placement::Same.partner_cpu(place)?, Class::Ordinary);
        let start = |index: usize| {
            let mut member = Member { index, locks: make()?, page: Arc::clone(&page), round: 0 };
            Partner::start(kind, at, move || member.step(), || ())
        };
        let mut partners = (1..TASKS).map(start).collect::<Result<Vec<_>>>()?;
        // Only now: a process loses its record locks when it closes any descriptor of the file, as the parent of a fork does.
        let locks = make()?;
        check_granted("a lock", locks.take(0))?;
        page[READY].value.fetch_add(1, SeqCst);
        while page[READY].value.load(SeqCst) as usize != TASKS {
            if let Some(fate) = partners.iter_mut().find_map(Partner::fate) {
                return Err(fate.into_error("a lock: "));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        let mut cascade = Self { locks, page, round: 0, is_broken: false };
        let once = move || {
            let answer = hand_round(&cascade.locks, &mut cascade.round);
            if answer < 0 {
                cascade.is_broken = true;
            }
            answer
        };
        Ok(Box::new(Exchange::new("a lock", partners, TASKS as u64, once)?))
    }
}

/// Does the measuring thread's part of a round. Returns 0 or a negative error number.
#[inline(always)]
fn hand_round(locks: &impl Locks, round: &mut u32) -> i64 {
    let (held, free) = (*round as usize % 2, (*round as usize + 1) % 2);
    let before = 2 * (TASKS - 1) + held;
    *round += 1;
    let begun = locks.take(free).min(locks.give(held));
    if begun < 0 { begun } else { locks.take(before).min(locks.give(before)) }
}

/// A task of the ring other than the first.
struct Member<L> {
    index: usize,
    locks: L,
    page: Arc<Words>,
    /// 0 before the first step; after it 1, and 1 more for each round that the task has begun.
    round: u32,
}

impl<L: Locks> Member<L> {
    /// Takes the first lock, and in each later call does the task's part of a round. Returns 0 or a negative error number.
    fn step(&mut self) -> i64 {
        let own = 2 * self.index;
        if self.round == 0 {
            self.round = 1;
            let taken = self.locks.take(own);
            self.page[READY].value.fetch_add(1, SeqCst);
            return taken;
        }
        let is_ready = self.page[READY].value.load(SeqCst) as usize == TASKS;
        let last = self.page[LAST].value.load(SeqCst);
        if !is_ready || (last != 0 && self.round > last) {
            std::thread::sleep(Duration::from_micros(100));
            return 0;
        }
        let (held, free) = ((self.round as usize + 1) % 2, self.round as usize % 2);
        self.round += 1;
        let before = own - 2 + held;
        let passed = self.locks.take(before).min(self.locks.take(own + free));
        if passed < 0 { passed } else { self.locks.give(before).min(self.locks.give(own + held)) }
    }
}

/// Runs a last round, after which no thread waits for a lock: such a wait could not be ended otherwise.
impl<L: Locks> Drop for Cascade<L> {
    fn drop(&mut self) {
        if !self.is_broken {
            self.page[LAST].value.store(self.round + 1, SeqCst);
            hand_round(&self.locks, &mut self.round);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::{assert_cases_run, test_place};

    #[test]
    fn every_lock_goes_round_and_every_task_ends() {
        let directory = tempfile::tempdir().unwrap();
        let place = test_place(directory.path(), Scale::Full);
        assert_cases_run(cascade_cases(), &place);
    }
}
