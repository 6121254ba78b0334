//! A monitor that reads the memory of another process without its cooperation, as DMA reads the memory of another machine.
//!
//! The measured program keeps counters or a buffer for its own purposes, and calls no probe. The monitor knows the number of the
//! process and the address of the region, from a file or the environment, and copies the whole region by process_vm_readv(2).
//! The program pays only for the cache lines that the copy takes from its CPU.
//!
//! ```
//! use syscost_technique::foreign_memory::ForeignMemory;
//!
//! # fn main() -> syscost_technique::Result<()> {
//! let counters = [7_u64, 8]; // of this process, which every process may read
//! let memory = ForeignMemory::new(std::process::id() as i32, counters.as_ptr() as usize, counters.len());
//! assert_eq!(memory.read()?, [7, 8]);
//! # Ok(())
//! # }
//! ```
//!
//! A copy takes time: its words may be of different moments. Sums over them are exact only while the program does not write.
//!
//! Source: Kraemer, slide 63.

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::io::IoSliceMut;
use syscost_platform::error::{Error, Result};

/// A region of words of 64 bits in the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignMemory {
    process: i32,
    address: usize,
    words: usize,
}

impl ForeignMemory {
    /// The region of `words` words at `address` in the memory of `process`.
    pub fn new(process: i32, address: usize, words: usize) -> Self {
        Self { process, address, words }
    }

    /// Copies the region and returns its words.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel refuses the copy; [`Error::Disturbed`] if the process has ended, or if the region
    /// is not in its memory.
    pub fn read(&self) -> Result<Vec<u64>> {
        let mut bytes = vec![0; size_of::<u64>() * self.words];
        let region = RemoteIoVec { base: self.address, len: bytes.len() };
        let copied =
            process_vm_readv(Pid::from_raw(self.process), &mut [IoSliceMut::new(&mut bytes)], &[region]);
        let (process, address) = (self.process, self.address);
        match copied {
            Ok(length) if length == bytes.len() => {}
            Ok(_) | Err(Errno::EFAULT) => {
                let words = format!("process {process} has no {} bytes at {address:#x}", bytes.len());
                return Err(Error::Disturbed(words));
            }
            Err(Errno::ESRCH) => return Err(Error::Disturbed(format!("process {process} has ended"))),
            Err(errno) => {
                return Err(Error::Missing(format!(
                    "the memory of process {process} may not be read ({errno}): start it from the monitor, or allow it by \
                     kernel.yama.ptrace_scope or the sandbox's filter of system calls"
                )));
            }
        }
        let words = bytes.chunks_exact(size_of::<u64>());
        Ok(words.map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn exactly_the_words_of_the_region_are_read() {
        let words: Vec<u64> = (0..10_000).collect();
        let own = std::process::id() as i32;
        let read =
            ForeignMemory::new(own, words[1..].as_ptr() as usize, 9_000).read().expect("its own memory");
        assert_eq!(read, words[1..=9_000]);
        assert_eq!(ForeignMemory::new(own, 0, 0).read().expect("no word"), [0; 0]);
    }

    #[test]
    fn a_missing_region_or_process_is_named_in_the_error() {
        let own = std::process::id() as i32;
        let nowhere = ForeignMemory::new(own, 16, 2).read().expect_err("no page is there").to_string();
        assert!(nowhere.contains("has no 16 bytes at 0x10"), "{nowhere}");
        let mut child = Command::new("true").stdin(Stdio::null()).spawn().expect("started");
        child.wait().expect("ended");
        let gone = ForeignMemory::new(child.id() as i32, 16, 2).read().expect_err("ended").to_string();
        assert!(gone.contains("has ended"), "{gone}");
    }
}
