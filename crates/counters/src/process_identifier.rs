//! What the functions of a process take: its number, or its handle.

use super::process_handle::process_label;
use super::{Fault, Process};

/// The process that a function reads: a number (`i32`), as the kernel and [`enumeration::pids`](super::enumeration::pids)
/// give it, or a `&Process`, as [`process_identifiers`](super::camp::process_identifiers) gives it.
///
/// A number may have passed to a later process since the caller learned it, and then the function reads that one. For an
/// ended [`Process`] it answers [`Fault::Gone`].
pub trait ProcessIdentifier: Copy {
    /// The number of the process.
    fn pid(self) -> i32;

    /// Passes on what was read by the number, if the number still belonged to the process afterwards.
    ///
    /// # Errors
    /// [`Fault::Gone`] where the process has ended.
    fn confirm<T>(self, reading: T) -> Result<T, Fault>;
}

impl ProcessIdentifier for i32 {
    fn pid(self) -> i32 {
        self
    }

    fn confirm<T>(self, reading: T) -> Result<T, Fault> {
        Ok(reading)
    }
}

impl ProcessIdentifier for &Process {
    fn pid(self) -> i32 {
        Process::pid(self)
    }

    fn confirm<T>(self, reading: T) -> Result<T, Fault> {
        if self.is_there() { Ok(reading) } else { Err(Fault::Gone(process_label(Process::pid(self)))) }
    }
}
