//! # What is timed
//! Taking a lock, one addition, and releasing it: a mutex of one word and `futex(2)`, the C library's mutex, a POSIX
//! and a System V semaphore. `free` is one thread alone. `contended-2` and `contended-all` are two threads, or one on
//! each CPU, each of which takes the lock equally often, from the start signal until the last has finished: in an
//! iteration each thread takes it once. `atomic-add` is an addition that needs no lock, by one thread, and by several
//! threads to the same word. `futex-lock-pi` is the kernel's mutex with inheritance of priority, always by two calls.
//!
//! `futex-wake` and `futex-requeue` are calls that wake 16 sleeping threads, or move them to another word. In `cascade` eight tasks on
//! one CPU stand in a ring, each waits for the lock of the one before, and an iteration is one round.
//!
//! # What is not
//! Starting the threads, and their wait for the start signal. Before each `futex-wake` all 16 threads fall asleep again, untimed.
//!
//! # How we know
//! The protected operation is a load, an addition and a store: if two threads are inside at once, one addition is lost,
//! and after each batch the sum must be complete. A witness counts that a free mutex, a free POSIX semaphore and an
//! atomic addition never enter the kernel. The kernel is asked how many threads sleep on the word before each `futex-wake`, answers
//! how many it woke, and counts their sleeps. In a cascade each task must have left the CPU at least once a round. Every thread must have run on its own CPU only.
//!
//! # What fools it
//! A contended mutex is unfair: the thread that has just released it finds it in its cache and takes it again, before a
//! sleeping thread has woken. Many such takings in a row make the mean small, and it says nothing about the longest
//! wait. How often the threads meet depends on where they run; the numbers of two machines differ by more than their
//! clock frequencies. In a process that never had a second thread the C library's mutex does no atomic operation: here it has had
//! one. System V semaphores take a lock of their whole namespace.
//!
//! # Reading the number
//! Free, a mutex is two atomic operations, some 20 cycles each. Contended, it costs at least the transfer of a cache
//! line (`core_to_core/neighbour`), and waking a sleeper costs what `ping_pong/futex-threads` says. The control of
//! `atomic-add/shared-2` has the same threads with a cache line each.
//!
//! # Source
//! perf bench's `futex-wake`, `futex-wake-parallel`, `futex-requeue` and `futex-lock-pi`; libMicro's `cascade_mutex`, `cascade_cond`,
//! `cascade_flock` and `cascade_fcntl`; U. Drepper, *Futexes Are Tricky* (2011); lmbench's `lat_sem`; will-it-scale's `pthread_mutex1` and `futex1`;
//! pthread_mutex_lock(3), sem_wait(3), semop(2).

mod cascade;
mod operation;
pub mod waiters;

use crate::kit::contract::*;
use crate::kit::ipc::PosixSemaphore;
use crate::kit::parallel::{Parallelism, all_partners_stayed, parallel_subject};
use crate::platform::partner::Kind;
use crate::platform::shared::Word;
use Parallelism::{All, Count};
use operation::{FutexMutex, InheritingMutex, LibraryMutex, Lock, set_semaphore};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

pub const GROUP: Group = Group::new("lock", include_str!("lock.rs"), cases)
    .version(2)
    .headlines(&[Headline::new(114, "atomic-add/private", "an atomic addition")]);

fn cases() -> Vec<Case> {
    let (mutex, library) = (|| Ok(FutexMutex::default()), LibraryMutex::new);
    let mut cases = vec![free_lock_case("futex-mutex", mutex).claim(Claim::NeverEnters)];
    cases.extend([Count(2), All].map(|crowd| contended_lock_case("futex-mutex", mutex, crowd)));
    cases.push(free_lock_case("pthread-mutex", library).claim(Claim::NeverEnters));
    cases.extend([Count(2), All].map(|crowd| contended_lock_case("pthread-mutex", library, crowd)));
    cases.push(free_lock_case("posix-semaphore", || PosixSemaphore::new(1)).claim(Claim::NeverEnters));
    let set = free_lock_case("sysv-semaphore", set_semaphore);
    let set = set.need(Need::new(|_| set_semaphore().map(drop).map_err(|e| e.to_string())));
    cases.push(set.predict(200.0, 700.0, "two entries, the set looked up and locked twice"));
    cases.push(
        Case::looped("atomic-add/private", "an atomic addition to a word of the thread's own", |n| {
            let word = Word::default();
            add(&word, n);
        })
        .claim(Claim::NeverEnters)
        .claim(Claim::Executes(1.0))
        .claim(Claim::Linear)
        .predict(18.0, 0.0, "a locked instruction that waits for the stores before it"),
    );
    cases.extend([Count(2), All].map(shared_add_case));
    cases.extend(inheriting_cases());
    cases.extend(waiters::waiter_cases());
    cases.extend(cascade::cascade_cases());
    cases
}

fn inheriting_cases() -> Vec<Case> {
    const NAME: &str = "futex-lock-pi";
    let futex = ("futex", libc::SYS_futex);
    let free = free_lock_case(NAME, InheritingMutex::new).claim(Claim::Enters(vec![futex, futex]));
    let free = free.predict(200.0, 500.0, "two entries, and the owner looked up by its number");
    let contended = [Count(2), All].map(|crowd| contended_lock_case(NAME, InheritingMutex::new, crowd));
    [free].into_iter().chain(contended).map(|case| case.need(FULL_SCALE)).collect()
}

/// A lock and what it protects: a number whose increment is not atomic.
#[derive(Default)]
struct Guarded<L> {
    lock: L,
    number: Word,
}

/// Takes the lock, adds 1 to the number, and releases the lock, `n` times.
#[inline(always)]
fn lock_and_add<L: Lock>(guarded: &Guarded<L>, n: u64) {
    let number = &guarded.number.value;
    for _ in 0..n {
        guarded.lock.acquire();
        number.store(number.load(Relaxed).wrapping_add(1), Relaxed);
        guarded.lock.release();
    }
}

/// The case of a lock that a single thread takes.
fn free_lock_case<L: Lock>(name: &str, make: impl Fn() -> Result<L> + 'static) -> Case {
    let alone = set_up(move |_| {
        let guarded = Guarded { lock: make()?, number: Word::default() };
        Ok(move |n: u64, clock: &Clock| Ok(clock.time(|| lock_and_add(black_box(&guarded), n))))
    });
    Case::new(format!("{name}/free"), format!("{name}, taken and given back by one thread alone"), alone)
        .control(|n| {
            let number = Word::default();
            for _ in 0..n {
                let number = black_box(&number.value);
                number.store(number.load(Relaxed).wrapping_add(1), Relaxed);
            }
        })
        .claim(Claim::AboveControl)
        .claim(Claim::Linear)
        .predict(36.0, 10.0, "an atomic operation to take it and one to give it back")
}

/// Adds the needs of several threads, and the claim that they stayed on their CPUs.
fn with_crowd_needs(crowd: Parallelism, case: Case) -> Case {
    let case = case.need(PINNED).need(TWO_CPUS).claim(Claim::Counted(all_partners_stayed));
    if crowd == All { case.need(THREE_CPUS) } else { case }
}

/// The case of a lock that several threads take at the same time.
fn contended_lock_case<L: Lock>(name: &str, make: fn() -> Result<L>, crowd: Parallelism) -> Case {
    let at_once = set_up(move |place| {
        let guarded = Arc::new(Guarded { lock: make()?, number: Word::default() });
        let theirs = Arc::clone(&guarded);
        let work = move |_| {
            let guarded = Arc::clone(&theirs);
            Ok(move |n: u64| {
                lock_and_add(&guarded, n);
                0
            })
        };
        parallel_subject(Kind::Thread, crowd, place, work, move |all| check_sum(&guarded.number, all))
    });
    let title = format!("{name}, taken by each of {} threads at once", thread_count_words(crowd));
    let why = "a cache line fetched a few times, and now and then a sleep and a wake-up";
    let name = format!("{name}/contended-{}", crowd.name());
    with_crowd_needs(crowd, Case::new(name, title, at_once)).predict(400.0, 200.0, why)
}

/// The number of threads in the words of a title.
fn thread_count_words(crowd: Parallelism) -> &'static str {
    if crowd == Count(2) { "two" } else { "all CPUs'" }
}

/// Checks that no addition was lost, and resets the number.
fn check_sum(number: &Word, all: u64) -> std::result::Result<(), String> {
    let found = number.value.swap(0, SeqCst);
    // The word counts modulo 2^32, and so does the comparison.
    ensure(found == all as u32, || {
        format!("the lock did not keep others out: {found} of {all} additions were found")
    })
}

#[inline(never)]
fn add(word: &Word, n: u64) {
    for _ in 0..n {
        word.value.fetch_add(1, SeqCst);
    }
}

fn shared_add_case(crowd: Parallelism) -> Case {
    let adding = |word: Arc<Word>| {
        move |n: u64| {
            add(&word, n);
            0
        }
    };
    let shared = set_up(move |place| {
        let word = Arc::new(Word::default());
        let theirs = Arc::clone(&word);
        let check = move |all| check_sum(&word, all);
        parallel_subject(Kind::Thread, crowd, place, move |_| Ok(adding(Arc::clone(&theirs))), check)
    });
    let private = set_up(move |place| {
        parallel_subject(Kind::Thread, crowd, place, move |_| Ok(adding(Arc::default())), |_| Ok(()))
    });
    let title = format!("an atomic addition to one word by each of {} threads", thread_count_words(crowd));
    let case = Case::new(format!("atomic-add/shared-{}", crowd.name()), title, shared);
    let case = with_crowd_needs(crowd, case).control_set_up(private);
    case.predict(150.0, 0.0, "the line goes to and fro after every few additions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_lets_two_in_is_caught() {
        struct Open;
        impl Lock for Open {
            fn acquire(&self) {}
            fn release(&self) {}
        }
        let guarded = Guarded { lock: Open, number: Word::default() };
        lock_and_add(&guarded, 5);
        guarded.number.value.fetch_sub(1, SeqCst); // as if two had stored the same sum
        assert!(check_sum(&guarded.number, 5).unwrap_err().contains("4 of 5"));
        lock_and_add(&guarded, 5);
        assert_eq!(check_sum(&guarded.number, 5), Ok(()));
    }
}
