//! Creating and joining threads: by the C library, and by the system call alone.
//!
//! Functions that return an `i64` return 0, or a negative error number.
//!
//! # Invariants
//!
//! * **NOTHING**: a thread of the library runs a function that at most notes its start, and returns. It is joined once,
//!   at the latest when its [`Thread`] is dropped, and so before its argument is.
//! * **REGISTERS**: a thread without the library exits at once and uses registers only. Its stack and the word that
//!   holds its id outlive it: both belong to [`Bare`], whose method returns after the kernel has cleared the word.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::kit::start_order::Order;
use crate::kit::task::{self, Stack};
use crate::platform::futex::{self, Reach};
use crate::platform::shared::Word;
use crate::platform::{cpu, process};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Attributes of the C library's threads.
pub struct Attributes(libc::pthread_attr_t);

impl Attributes {
    /// Attributes with a stack of this size, with or without a guard page below it.
    ///
    /// # Errors
    /// [`Error::Missing`] if the size is below the library's minimum, which is 128 KiB on AArch64 with glibc.
    pub fn new(stack_bytes: usize, guarded: bool) -> Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: NOTHING: the library initialises the value before reading it.
        let refused = unsafe {
            let at = attributes.as_mut_ptr();
            let mut refused = libc::pthread_attr_init(at);
            refused |= libc::pthread_attr_setstacksize(at, stack_bytes);
            if !guarded {
                refused |= libc::pthread_attr_setguardsize(at, 0);
            }
            refused
        };
        if refused != 0 {
            return Err(Error::Missing(format!(
                "this C library gives no thread a stack of {} KiB: its smallest has {} (PTHREAD_STACK_MIN)",
                stack_bytes >> 10,
                libc::PTHREAD_STACK_MIN >> 10
            )));
        }
        // SAFETY: NOTHING: it is initialised.
        Ok(Self(unsafe { attributes.assume_init() }))
    }

    /// Creates a thread that notes its start in `order` and does nothing else. `thread` borrows `order`, so that the
    /// thread is joined while `order` lives.
    #[inline(always)]
    pub fn create_arriving<'a>(&self, thread: &mut Arriving<'a>, order: &'a Order) -> i64 {
        let argument = std::ptr::from_ref(order).cast_mut().cast();
        thread.1 = Some(order);
        self.create_thread(&mut thread.0, note_arrival, argument)
    }

    /// Creates a thread that does nothing, and joins it.
    #[inline(always)]
    pub fn create_and_join(&self) -> i64 {
        let mut thread = Thread::default();
        let created = self.create_thread(&mut thread, return_at_once, null_mut());
        if created < 0 { created } else { thread.join() }
    }

    #[inline(always)]
    fn create_thread(&self, thread: &mut Thread, body: Body, argument: *mut libc::c_void) -> i64 {
        thread.join();
        let mut id = MaybeUninit::uninit();
        // SAFETY: NOTHING: the argument outlives the thread, which is joined through `thread`.
        let refused = unsafe { libc::pthread_create(id.as_mut_ptr(), &raw const self.0, body, argument) };
        if refused == 0 {
            // SAFETY: NOTHING: the library has written the id of the thread that it created.
            thread.0 = Some(unsafe { id.assume_init() });
        }
        -i64::from(refused)
    }
}

/// The start routine of a thread.
type Body = extern "C" fn(*mut libc::c_void) -> *mut libc::c_void;

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: NOTHING: it is initialised, and threads do not use it after their creation.
        unsafe { libc::pthread_attr_destroy(&raw mut self.0) };
    }
}

extern "C" fn return_at_once(_: *mut libc::c_void) -> *mut libc::c_void {
    null_mut()
}

extern "C" fn note_arrival(order: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: NOTHING: the argument lives until this thread has been joined.
    unsafe { (*order.cast::<Order>()).note_start() };
    null_mut()
}

/// A thread that notes its start, and the [`Order`] in which it does.
#[derive(Default)]
pub struct Arriving<'a>(pub Thread, Option<&'a Order>);

/// A thread that has not been joined yet, or none. Dropping it joins the thread.
#[derive(Default)]
pub struct Thread(Option<libc::pthread_t>);

impl Thread {
    /// Joins the thread, if there is one.
    #[inline(always)]
    pub fn join(&mut self) -> i64 {
        let Some(id) = self.0.take() else { return 0 };
        // SAFETY: NOTHING: the id is that of a thread that has not been joined.
        -i64::from(unsafe { libc::pthread_join(id, null_mut()) })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.join();
    }
}

/// Stack and id of a thread that is created without the library.
pub struct Bare {
    stack: Stack,
    id: AtomicU32,
}

impl Bare {
    /// Maps the stack.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel refuses the mapping.
    pub fn new() -> Result<Self> {
        Ok(Self { stack: Stack::new()?, id: AtomicU32::new(0) })
    }

    /// Creates a thread that exits at once, and waits until the kernel has cleared its id.
    #[inline(always)]
    pub fn create_and_join(&mut self) -> i64 {
        const FLAGS: i32 = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SYSVSEM
            | libc::CLONE_PARENT_SETTID
            | libc::CLONE_CHILD_CLEARTID;
        // SAFETY: REGISTERS.
        let created = unsafe { task::clone_exit(FLAGS, self.stack.top(), self.id.as_ptr()) };
        if created < 0 {
            return created;
        }
        loop {
            match self.id.load(Ordering::Acquire) {
                0 => return 0,
                id => futex::wait(&self.id, id, Reach::Shared),
            };
        }
    }
}

/// The number of threads of this process; 0 if the kernel does not report it.
pub fn thread_count() -> u64 {
    use std::os::unix::fs::MetadataExt;
    // The link count of a directory is two more than the number of its subdirectories.
    std::fs::metadata("/proc/self/task").map_or(0, |directory| directory.nlink().saturating_sub(2))
}

/// The value that ends the thread. The numbers of turns count up below it.
const END: u32 = u32::MAX;

#[derive(Default)]
struct Shared {
    handed: Word,
    answered: Word,
    /// Whether the thread fills in `cpu` and `switches` before its next answer.
    usage_wanted: AtomicBool,
    cpu: AtomicUsize,
    switches: AtomicU64,
}

/// A pool of one thread. Dropping it ends and joins the thread.
pub struct Pool {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    turn: u32,
}

impl Pool {
    /// Starts the thread and pins it to this CPU.
    ///
    /// # Errors
    /// [`Error::Kernel`] if no thread can be created.
    pub fn start_on(cpu: usize) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let refused = |cause| Error::Kernel { call: "pthread_create of a pool's thread".into(), cause };
        let thread = std::thread::Builder::new()
            .spawn(move || {
                // If pinning fails, the CPU that the thread reports later will show it.
                let _ = cpu::pin_thread(cpu);
                serve_turns(&theirs);
            })
            .map_err(refused)?;
        Ok(Self { shared, thread: Some(thread), turn: 0 })
    }

    /// The number of the next turn.
    pub fn next_turn_number(&self) -> u32 {
        self.turn + 1
    }

    /// Gives the thread a turn and sleeps until the thread has answered. Returns 0, or a negative error number.
    #[inline(always)]
    pub fn run_turn(&mut self) -> i64 {
        self.turn = if self.turn == END - 1 { 0 } else { self.turn + 1 };
        let before = self.shared.answered.value.load(Ordering::Relaxed);
        self.shared.handed.value.store(self.turn, Ordering::Release);
        let woken = futex::wake(&self.shared.handed.value, Reach::Private);
        if woken < 0 {
            return woken;
        }
        loop {
            if self.shared.answered.value.load(Ordering::Acquire) == self.turn {
                return 0;
            }
            match futex::wait(&self.shared.answered.value, before, Reach::Private) {
                answer if answer == -i64::from(libc::EINTR) => return answer,
                _ => {}
            }
        }
    }

    /// Takes one turn in which the thread reports its CPU and its context switches.
    pub fn read_usage(&mut self) -> Usage {
        self.shared.usage_wanted.store(true, Ordering::Relaxed);
        while self.run_turn() != 0 {}
        Usage {
            cpu: self.shared.cpu.load(Ordering::Relaxed),
            switches: self.shared.switches.load(Ordering::Relaxed),
        }
    }
}

/// The CPU and the context switches that the pool's thread reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The CPU on which the thread runs.
    pub cpu: usize,
    /// The number of times that the kernel switched away from the thread, because it slept or was preempted.
    pub switches: u64,
}

/// The thread's loop.
fn serve_turns(shared: &Shared) {
    let mut done = 0;
    loop {
        let turn = shared.handed.value.load(Ordering::Acquire);
        if turn == END {
            return;
        }
        if turn == done {
            futex::wait(&shared.handed.value, done, Reach::Private);
            continue;
        }
        if shared.usage_wanted.load(Ordering::Relaxed) {
            shared.usage_wanted.store(false, Ordering::Relaxed);
            shared.cpu.store(cpu::current_cpu(), Ordering::Relaxed);
            let switches = process::thread_usage()
                .map_or(0, |usage| usage.voluntary_context_switches() + usage.involuntary_context_switches());
            shared.switches.store(switches as u64, Ordering::Relaxed);
        }
        done = turn;
        shared.answered.value.store(turn, Ordering::Release);
        futex::wake(&shared.answered.value, Reach::Private);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.handed.value.store(END, Ordering::Release);
        futex::wake(&self.shared.handed.value, Reach::Private);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // the thread does not panic
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_created_and_joined() {
        for guarded in [true, false] {
            let attributes = Attributes::new(256 << 10, guarded).expect("a stack");
            for _ in 0..100 {
                assert_eq!(attributes.create_and_join(), 0);
            }
        }
    }

    #[test]
    fn a_bare_thread_is_created_and_ends() {
        let mut bare = Bare::new().expect("a stack");
        for _ in 0..100 {
            assert_eq!(bare.create_and_join(), 0);
            assert_eq!(bare.id.load(Ordering::Acquire), 0);
        }
    }

    #[test]
    fn a_stack_that_is_too_small_is_refused() {
        assert!(matches!(Attributes::new(1 << 10, true), Err(Error::Missing(_))));
    }

    #[test]
    fn threads_are_counted() {
        assert!(thread_count() >= 1);
    }

    #[test]
    fn a_turn_is_answered_on_the_cpu_that_was_asked_for() {
        let cpu = cpu::allowed_cpus()[0];
        let mut pool = Pool::start_on(cpu).expect("a thread");
        for turn in 1..=100 {
            assert_eq!(pool.next_turn_number(), turn);
            assert_eq!(pool.run_turn(), 0);
        }
        assert_eq!(pool.read_usage().cpu, cpu);
    }
}
