//! A place in running code that is patched: it returns at once, or jumps to a routine.
//!
//! The first byte of a page of our own decides: `ret` or `nop`. Both are instructions of one byte, a byte is stored
//! whole, and the bytes behind it never change: a thread that executes it meanwhile executes one or the other.
//! `membarrier(SYNC_CORE)` then makes every thread of this process see the new byte (membarrier(2); Intel SDM vol. 3A,
//! 9.1.3).
//!
//! # Invariants
//!
//! * **PAGE**: `code` is a page of this value's own, written before any thread can execute it; afterwards only its first
//!   byte changes, atomically.
//! * **OURS**: the code is called as `extern "C" fn(*const F, u64)` with the routine of this value, which lives as long
//!   as the page does; it is `Sync`, so that any thread may call it.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

const LENGTH: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");
const RETURN: u8 = 0xc3;
const GO_ON: u8 = 0x90;
/// `jmp [rip + 9]`, after the patched byte: a jump to the address that is stored at [`TARGET`].
const JUMP: [u8; 6] = [0xff, 0x25, 9, 0, 0, 0];
const TARGET: usize = 16;

/// The patched place and its routine.
pub struct Patch<F> {
    code: NonNull<c_void>,
    routine: Box<F>,
}

// SAFETY: PAGE and OURS: what threads share is one atomic byte, and a routine that is `Sync`.
unsafe impl<F: Send> Send for Patch<F> {}
// SAFETY: as above.
unsafe impl<F: Sync> Sync for Patch<F> {}

impl<F: Fn(u64) + Sync> Patch<F> {
    /// Makes a place that returns at once.
    ///
    /// # Errors
    /// [`Error::Missing`] on a processor other than x86-64; [`Error::Kernel`] if memory that is both writable and
    /// executable is forbidden, or membarrier(2) is.
    pub fn new(routine: F) -> Result<Self> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Error::Missing("code is patched on x86-64 only".into()));
        }
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)?;
        let all = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE | ProtFlags::PROT_EXEC;
        // SAFETY: a new mapping replaces none.
        let code = unsafe { mmap_anonymous(None, LENGTH, all, MapFlags::MAP_PRIVATE) };
        let code = code.map_err(|errno| Error::from_errno("mmap of a page to be executed", errno))?;
        let target = call_routine::<F> as *const () as usize;
        let mut text = [RETURN; TARGET + 8];
        text[1..=JUMP.len()].copy_from_slice(&JUMP);
        text[TARGET..].copy_from_slice(&target.to_ne_bytes());
        // SAFETY: PAGE: no other code knows its address yet, and the text is shorter than it.
        unsafe { code.cast::<[u8; TARGET + 8]>().write(text) };
        Ok(Self { code, routine: Box::new(routine) })
    }

    /// Executes the patched place, which passes `value` to the routine if it jumps.
    #[inline(always)]
    pub fn execute(&self, value: u64) {
        // SAFETY: OURS. The page holds code of this signature, which returns or jumps to `call_routine::<F>`.
        unsafe {
            let code: extern "C" fn(*const F, u64) = std::mem::transmute(self.code.as_ptr());
            code(&raw const *self.routine, value);
        }
    }

    /// Makes the place jump to its routine, or return at once. When this returns, no thread executes the old byte any
    /// more; one that has jumped may still be in the routine.
    ///
    /// # Errors
    /// [`Error::Kernel`] where membarrier(2) is refused.
    pub fn set_jumping(&self, jumps: bool) -> Result<()> {
        // SAFETY: PAGE: this byte is accessed only atomically, and executed.
        let byte = unsafe { AtomicU8::from_ptr(self.code.as_ptr().cast()) };
        byte.store(if jumps { GO_ON } else { RETURN }, SeqCst);
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)
    }

    /// The routine.
    pub fn routine(&self) -> &F {
        &self.routine
    }
}

impl<F> Drop for Patch<F> {
    fn drop(&mut self) {
        // SAFETY: PAGE: it is this value's own, and no code can call into it without this value.
        let _ = unsafe { munmap(self.code, LENGTH.get()) };
    }
}

/// The target of the page's jump: calls the routine. A routine that panics ends the process.
extern "C" fn call_routine<F: Fn(u64)>(routine: *const F, value: u64) {
    // SAFETY: OURS.
    unsafe { (*routine)(value) };
}

fn membarrier(command: libc::c_int) -> Result<()> {
    // SAFETY: the call takes numbers only.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    nix::errno::Errno::result(done)
        .map(drop)
        .map_err(|errno| Error::from_errno("membarrier SYNC_CORE", errno))
}
