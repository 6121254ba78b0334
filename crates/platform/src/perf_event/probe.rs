//! Events at an address: a hardware breakpoint, a probe of a function of this program or of the kernel, a tracepoint.
//!
//! # Invariants
//!
//! * **NO-MEMORY**: the request has no argument.
#![allow(unsafe_code)]

use super::{ANY_CPU, Attributes, USER_SPACE_ONLY, open_attributes};
use crate::error::{Error, Result};
use crate::proc::own_code_mappings;
use nix::errno::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

/// `PERF_TYPE_BREAKPOINT` and `HW_BREAKPOINT_W` of linux/perf_event.h and linux/hw_breakpoint.h.
const BREAKPOINT: u32 = 5;
const ON_WRITE: u32 = 2;
/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
const ENABLE: u64 = 0x2400;
const DISABLE: u64 = 0x2401;
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// Directories in which the kernel shows its tracepoints, if tracefs is mounted there.
const TRACE_FILES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The kernel's function that implements getppid(2).
pub const GETPPID: &CStr = if cfg!(target_arch = "x86_64") {
    c"__x64_sys_getppid"
} else if cfg!(target_arch = "aarch64") {
    c"__arm64_sys_getppid"
} else if cfg!(target_arch = "riscv64") {
    c"__riscv_sys_getppid"
} else {
    c"sys_getppid"
};

/// A probe of this thread, which counts how often it was hit. Dropping the value removes it.
pub struct Probe(File);

impl Probe {
    /// A breakpoint on writes to this aligned word of four bytes.
    ///
    /// # Errors
    /// [`Error::Missing`] where the processor or its hypervisor has no breakpoint left, or the kernel forbids it.
    pub fn on_write(word: *const u32) -> Result<Self> {
        let attributes = Attributes {
            kind: BREAKPOINT,
            breakpoint: ON_WRITE,
            config1: word as u64,
            config2: size_of::<u32>() as u64,
            flags: USER_SPACE_ONLY,
            ..Default::default()
        };
        Self::open(attributes, "a hardware breakpoint")
    }

    /// A probe of the instruction at this address of this program, or of the return from the function that begins there.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel has no uprobes, or forbids them.
    pub fn on_function(address: usize, is_return: bool) -> Result<Self> {
        let kind = kind_number("uprobe")?;
        let (path, offset) = place_in_file(address)?;
        let attributes = Attributes {
            kind,
            config: is_return.into(),
            config1: path.as_ptr() as u64,
            config2: offset,
            ..Default::default()
        };
        Self::open(attributes, "a uprobe")
    }

    /// A probe of the beginning of the kernel's function of this name.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel has no kprobes or no such function, or forbids them.
    pub fn on_kernel_function(name: &CStr) -> Result<Self> {
        let attributes =
            Attributes { kind: kind_number("kprobe")?, config1: name.as_ptr() as u64, ..Default::default() };
        Self::open(attributes, "a kprobe")
    }

    /// A tracepoint of the kernel, such as `syscalls/sys_enter_getppid`.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel does not show it, or forbids it.
    pub fn on_tracepoint(name: &str) -> Result<Self> {
        let read = |directory| read_number(&format!("{directory}/events/{name}/id"));
        let config = TRACE_FILES.into_iter().find_map(read).ok_or_else(|| {
            Error::Missing(format!(
                "the tracepoint {name} is not shown here: as root, `mount -t tracefs tracefs {}`",
                TRACE_FILES[0]
            ))
        })?;
        Self::open(Attributes { kind: TRACEPOINT, config, ..Default::default() }, "a tracepoint")
    }

    fn open(attributes: Attributes, what: &str) -> Result<Self> {
        open_attributes(attributes, what, (0, ANY_CPU)).map(Self).map_err(|error| {
            Error::Missing(format!("{what} cannot be set here ({error}): {}", super::permission_message()))
        })
    }

    /// How often the probe was hit.
    ///
    /// # Errors
    /// The count cannot be read.
    pub fn count(&self) -> Result<u64> {
        let mut count = [0; 8];
        let read = (&self.0).read_exact(&mut count);
        read.map_err(|cause| Error::Kernel { call: "read of a probe's count".into(), cause })?;
        Ok(u64::from_ne_bytes(count))
    }

    /// Switches the probe off and on again: two system calls.
    ///
    /// # Errors
    /// The kernel refuses.
    #[inline(always)]
    pub fn switch_off_and_on(&self) -> nix::Result<()> {
        [DISABLE, ENABLE].into_iter().try_for_each(|request| {
            // SAFETY: NO-MEMORY.
            Errno::result(unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, 0) }).map(drop)
        })
    }
}

fn read_number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number of a kind of event; [`Error::Missing`] if the kernel does not have this kind.
fn kind_number(name: &str) -> Result<u32> {
    let path = format!("/sys/bus/event_source/devices/{name}/type");
    let number = read_number(&path).and_then(|number| number.try_into().ok());
    number.ok_or_else(|| Error::Missing(format!("this kernel has no {name}s ({path})")))
}

/// The file of this program, and the offset in it of the code at this address.
fn place_in_file(address: usize) -> Result<(CString, u64)> {
    let mappings = own_code_mappings().map_err(|e| Error::file("/proc/self/maps", "reading", e))?;
    let offset = mappings
        .iter()
        .find_map(|mapping| mapping.place_in_file(address as u64))
        .ok_or_else(|| Error::Missing("the program does not find its own code in memory".into()))?;
    let path = std::env::current_exe().map_err(|e| Error::file("/proc/self/exe", "reading", e))?;
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Usage("a zero byte in a path".into()))?;
    Ok((path, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::value_or_skip;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn a_breakpoint_counts_writes_to_its_word_alone() {
        let words = [AtomicU32::new(0), AtomicU32::new(0)];
        let Some(probe) = value_or_skip(Probe::on_write(words[0].as_ptr())) else { return };
        for _ in 0..7 {
            words.iter().for_each(|word| word.store(1, Relaxed));
        }
        assert_eq!(probe.count().expect("read"), 7);
        probe.switch_off_and_on().expect("switched");
        words[0].store(2, Relaxed);
        assert_eq!(probe.count().expect("read"), 8);
    }

    #[inline(never)]
    extern "C" fn probed(n: u64) -> u64 {
        std::hint::black_box(n) + 1
    }

    #[test]
    fn an_event_of_the_kernel_counts_calls() {
        let probes =
            [|| Probe::on_kernel_function(GETPPID), || Probe::on_tracepoint("syscalls/sys_enter_getppid")];
        // One at a time: printing that the first is skipped calls getppid too.
        for probe in probes {
            let Some(probe) = value_or_skip(probe()) else { continue };
            (0..5).for_each(|_| _ = nix::unistd::getppid());
            assert_eq!(probe.count().expect("read"), 5);
        }
    }

    #[test]
    fn a_probe_counts_calls_and_returns() {
        for is_return in [false, true] {
            let Some(probe) = value_or_skip(Probe::on_function(probed as *const () as usize, is_return))
            else {
                return;
            };
            (0..5).for_each(|n| _ = probed(n));
            assert_eq!(probe.count().expect("read"), 5, "{is_return}");
        }
    }
}
