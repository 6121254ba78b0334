//! POSIX message queues.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the call reads or writes only a local variable, in its full length.
//! * **OWN-QUEUE**: the descriptor was opened here and is closed once, by its owner.
#![allow(unsafe_code)]

use super::{Channel, ChannelPair};
use crate::error::{Error, Result};
use crate::platform::arch::syscall6;
use crate::platform::plain_file::random_word;
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// A queue of messages of one byte.
pub struct Queue(OwnedFd);

impl Queue {
    /// A queue in each direction.
    ///
    /// # Errors
    /// The kernel refuses them: its limits are named.
    pub fn pair(_: &Path) -> ChannelPair<Self> {
        Ok([Self::new()?, Self::new()?])
    }

    /// The name is removed at once; the opened queue stays.
    fn new() -> Result<Self> {
        const MOST: libc::c_long = 4;
        let name = format!("/syscost-{}", random_word(12));
        let name = CString::new(name).map_err(|e| Error::Disproved(e.to_string()))?;
        // SAFETY: plain numbers, for which zero is a valid value.
        let mut form: libc::mq_attr = unsafe { std::mem::zeroed() };
        form.mq_maxmsg = MOST;
        form.mq_msgsize = 1;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: the name ends in a zero byte; OWN-BUFFER, OWN-QUEUE.
        let descriptor = unsafe { libc::mq_open(name.as_ptr(), flags, 0o600, &raw mut form) };
        if descriptor < 0 {
            return Err(Error::from_last_errno("mq_open (`ulimit -q`, /proc/sys/fs/mqueue/queues_max)"));
        }
        // SAFETY: the name ends in a zero byte.
        unsafe { libc::mq_unlink(name.as_ptr()) };
        // SAFETY: OWN-QUEUE: on Linux a queue is a descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }
}

impl Channel for Queue {
    #[inline(always)]
    fn send(&self) -> i64 {
        let byte = 1u8;
        let arguments = [self.0.as_raw_fd() as usize, &raw const byte as usize, 1, 0, 0, 0];
        // SAFETY: OWN-BUFFER: one byte is read.
        unsafe { syscall6(libc::SYS_mq_timedsend, arguments) }
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        let mut byte = 0u8;
        let arguments = [self.0.as_raw_fd() as usize, &raw mut byte as usize, 1, 0, 0, 0];
        // SAFETY: OWN-BUFFER: one byte is written.
        unsafe { syscall6(libc::SYS_mq_timedreceive, arguments) }
    }
}
