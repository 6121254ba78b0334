//! Threads created and joined: by the C library, and by the kernel's call alone.
//!
//! Every function answers 0, or a negative error number.
//!
//! # Invariants
//!
//! * **NOTHING**: a thread of the library runs a function that does next to nothing and returns. It is joined once,
//!   at the latest when the value that names it goes, and so before what it was created with.
//! * **REGISTERS**: a thread without the library ends by the next instruction and touches registers only; its stack
//!   and the word that holds its number outlive it, because both belong to who waits until the kernel has
//!   cleared the word.
#![allow(unsafe_code)]

use crate::kit::start_order::Order;
use crate::kit::task::{self, Stack};
use crate::platform::futex::{self, Reach};
use crate::{Error, Result};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the C library is told of a thread beforehand.
pub struct Attributes(libc::pthread_attr_t);

impl Attributes {
    /// A stack of this size, with a guard page below it or without.
    ///
    /// # Errors
    /// [`Error::Missing`] where the library gives none so small: on AArch64 glibc's smallest has 128 KiB.
    pub fn new(stack_bytes: usize, guarded: bool) -> Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: NOTHING: the library initialises the value before it is read.
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

    /// Creates a thread that says that it has begun, and does nothing else. It must be joined while `order` lives,
    /// which the borrow in the answer sees to.
    #[inline(always)]
    pub fn create_arriving<'a>(&self, thread: &mut Arriving<'a>, order: &'a Order) -> i64 {
        let argument = std::ptr::from_ref(order).cast_mut().cast();
        thread.1 = Some(order);
        self.start(&mut thread.0, arrive, argument)
    }

    /// Creates a thread that does nothing.
    #[inline(always)]
    pub fn create(&self, thread: &mut Thread) -> i64 {
        self.start(thread, nothing, null_mut())
    }

    #[inline(always)]
    fn start(&self, thread: &mut Thread, body: Body, argument: *mut libc::c_void) -> i64 {
        thread.join();
        let mut name = MaybeUninit::uninit();
        // SAFETY: NOTHING: what a body is given outlives the thread, which is joined through `thread`.
        let refused = unsafe { libc::pthread_create(name.as_mut_ptr(), &raw const self.0, body, argument) };
        if refused == 0 {
            // SAFETY: NOTHING: the library has written the name of a thread that it created.
            thread.0 = Some(unsafe { name.assume_init() });
        }
        -i64::from(refused)
    }
}

/// What a thread runs.
type Body = extern "C" fn(*mut libc::c_void) -> *mut libc::c_void;

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: NOTHING: it was initialised, and no thread needs it after its creation.
        unsafe { libc::pthread_attr_destroy(&raw mut self.0) };
    }
}

extern "C" fn nothing(_: *mut libc::c_void) -> *mut libc::c_void {
    null_mut()
}

extern "C" fn arrive(order: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: NOTHING: it lives until this thread has been joined.
    unsafe { (*order.cast::<Order>()).arrive() };
    null_mut()
}

/// A thread that says when it begins, and to whom.
#[derive(Default)]
pub struct Arriving<'a>(pub Thread, Option<&'a Order>);

/// A thread that was created and not yet joined, or none.
#[derive(Default)]
pub struct Thread(Option<libc::pthread_t>);

impl Thread {
    /// Waits for it.
    #[inline(always)]
    pub fn join(&mut self) -> i64 {
        let Some(name) = self.0.take() else { return 0 };
        // SAFETY: NOTHING: the name is that of a thread created and not joined.
        -i64::from(unsafe { libc::pthread_join(name, null_mut()) })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.join();
    }
}

/// A place for a thread without the library.
pub struct Bare {
    stack: Stack,
    id: AtomicU32,
}

impl Bare {
    /// A stack, and a word for the number.
    pub fn new() -> Result<Self> {
        Ok(Self { stack: Stack::new()?, id: AtomicU32::new(0) })
    }

    /// Creates a thread that ends at once, and waits until the kernel says so.
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

/// How many threads this process has.
pub fn count() -> u64 {
    use std::os::unix::fs::MetadataExt;
    // A directory has a link for each directory in it, and two of its own.
    std::fs::metadata("/proc/self/task").map_or(0, |directory| directory.nlink().saturating_sub(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_created_and_joined() {
        for guarded in [true, false] {
            let attributes = Attributes::new(256 << 10, guarded).expect("a stack");
            for _ in 0..100 {
                let mut thread = Thread::default();
                assert_eq!(attributes.create(&mut thread), 0);
                assert_eq!(thread.join(), 0);
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
        assert!(count() >= 1);
    }
}
