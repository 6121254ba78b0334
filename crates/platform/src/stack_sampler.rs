//! Samples the stacks of a thread and of the children it makes, at even intervals of the time for which they run, by
//! `perf_event_open(2)` with a ring buffer and without another program.
//!
//! # Invariants
//!
//! * **OWN-DESCRIPTOR**: the descriptor is that of an event, and has no other owner.
//! * **IDENTIFICATION-FLAG**: the code changes one bit of the flags (`ID`), which a processor that has `cpuid` ignores. It uses
//!   the stack, as the compiler assumes.
//! * **RING**: the mapping lives as long as the sampler and is one page of `perf_event_mmap_page` followed by `RING_PAGES` pages
//!   of data. The kernel writes the head and the data before it, and this type alone writes the tail. Offsets are those of
//!   `linux/perf_event.h`, and aligned.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::kernel_files::KernelFiles;
use crate::perf_event::{
    ANY_CPU, Attributes, Counter, Event, WITH_CHILDREN, WITHOUT_HYPERVISOR, WITHOUT_KERNEL, open_attributes,
};
use crate::process;
use memmap2::{MmapOptions, MmapRaw};
#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time from one sample to the next, ns. A sample takes 3 µs. The period is prime, so that samples meet all places of a 100 µs batch.
pub const PERIOD_NS: u64 = 97_001;
/// Pages of the ring: 256 KiB of pages of 4 KiB, which an ordinary user may have (`kernel.perf_event_mlock_kb` is 516).
const RING_PAGES: usize = 64;
/// Most addresses of a stack. Those of the kernel are seldom more than 30.
const DEEPEST: u16 = 48;

/// `PERF_SAMPLE_TID` and `PERF_SAMPLE_CALLCHAIN`, in this order in a record.
const THREAD_AND_STACK: u64 = 1 << 1 | 1 << 5;
/// `PERF_SAMPLE_REGS_USER`, which follows them in a record: the flags register only (`PERF_REG_X86_FLAGS`).
const USER_REGISTERS: u64 = 1 << 12;
const FLAGS_REGISTER: u64 = 1 << 9;
/// The flag `ID`, which is set while a bracket is open. Every sample contains it, those of the kernel too. A time stamp would
/// not do: the kernel takes it a microsecond after the sampled moment.
const BRACKET_FLAG: u64 = 1 << 21;
/// Whether this processor has a flag that marks brackets. On other processors whole batches are sampled.
const HAS_FLAG: bool = cfg!(target_arch = "x86_64");
/// `disabled`.
const DISABLED: u64 = 1;
/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
const ENABLE: libc::Ioctl = libc::_IO(b'$' as u32, 0);
const DISABLE: libc::Ioctl = libc::_IO(b'$' as u32, 1);
/// `data_head` and `data_tail` in the first page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// The least number in a stack that is no address but one of the marks between its parts, `PERF_CONTEXT_…`.
const LEAST_CONTEXT: u64 = -4095_i64 as u64;

/// The events that may be sampled: name, and the two numbers of `linux/perf_event.h`.
const CYCLES: (&str, u32, u64) = ("cpu-cycles", 0, 0);
const CPU_CLOCK: (&str, u32, u64) = ("cpu-clock", 1, 0);

/// The executed address, and an address within the call instruction of each caller: first the kernel's, then the program's.
pub type Stack = Vec<u64>;

/// Marks this thread as inside a bracket.
#[inline(always)]
pub fn open_bracket() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: IDENTIFICATION-FLAG.
    unsafe {
        asm!("pushfq", "or dword ptr [rsp], {}", "popfq", const BRACKET_FLAG);
    }
}

/// Marks this thread as outside of brackets.
#[inline(always)]
pub fn close_bracket() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: IDENTIFICATION-FLAG.
    unsafe {
        asm!("pushfq", "and dword ptr [rsp], {}", "popfq", const !(BRACKET_FLAG as u32) as i32);
    }
}

/// Samples the calling thread inside its brackets while it is enabled.
pub struct StackSampler {
    file: File,
    ring: MmapRaw,
    /// What is sampled: `cpu-cycles` where there is a PMU, otherwise `cpu-clock`.
    pub event: &'static str,
    /// Whether the kernel's functions are sampled too, which may be forbidden. Without them samples miss that time.
    pub with_kernel: bool,
}

impl StackSampler {
    /// Opens a disabled sampler of the calling thread, and of the children it makes from now on, while they run on `cpu`. Without a
    /// CPU it samples this thread alone, wherever it runs. `core_hz` is the frequency of the core, Hz, which turns the period into
    /// cycles.
    ///
    /// # Errors
    /// [`Error::Missing`] if perf events are not available. The sentence names the setting.
    pub fn open(cpu: Option<usize>, core_hz: f64) -> Result<Self> {
        let has_cycles = Event::from_name(CYCLES.0).is_ok_and(|event| Counter::open(event).is_ok());
        let cycles = (PERIOD_NS as f64 * core_hz / 1e9) as u64;
        let (event, period) = if has_cycles { (CYCLES, cycles.max(1_000)) } else { (CPU_CLOCK, PERIOD_NS) };
        let (file, with_kernel) = match open_event(event, period, cpu, 0) {
            Ok(file) => (file, true),
            Err(_) => (open_event(event, period, cpu, WITHOUT_KERNEL).map_err(refusal_sentence)?, false),
        };
        let length = (1 + RING_PAGES) * process::page_size() as usize;
        let ring = MmapOptions::new().len(length).map_raw(file.as_raw_fd());
        let ring = ring.map_err(|cause| {
            Error::Missing(format!(
                "stacks cannot be sampled here: no buffer for them ({cause}); raise kernel.perf_event_mlock_kb, or `ulimit -l`"
            ))
        })?;
        Ok(Self { file, ring, event: event.0, with_kernel })
    }

    /// Begins to sample.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn enable(&self) -> Result<()> {
        self.control(ENABLE)
    }

    /// Ceases to sample.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn disable(&self) -> Result<()> {
        self.control(DISABLE)
    }

    fn control(&self, request: libc::Ioctl) -> Result<()> {
        // SAFETY: OWN-DESCRIPTOR. These requests take no memory.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), request, 0) } {
            0 => Ok(()),
            _ => Err(Error::from_last_errno("ioctl of the sampled perf event")),
        }
    }

    /// The stacks since the last call, and the number of those that were lost because the ring was full. Stacks of this thread
    /// outside of brackets are left out.
    pub fn take_stacks(&mut self) -> (Vec<Stack>, u64) {
        let size = RING_PAGES * process::page_size() as usize;
        let place = |offset: usize| {
            // SAFETY: RING.
            unsafe { &*self.ring.as_mut_ptr().add(offset).cast::<AtomicU64>() }
        };
        let (head, tail) = (place(HEAD).load(Ordering::Acquire), place(TAIL).load(Ordering::Relaxed));
        let written = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(size);
        let mut bytes = vec![0; written];
        let begin = (tail % size as u64) as usize;
        let first = written.min(size - begin);
        let data = self.ring.as_ptr().wrapping_add(process::page_size() as usize);
        // SAFETY: RING: both parts lie in the data, between the tail and the head, where the kernel does not write.
        unsafe {
            std::ptr::copy_nonoverlapping(data.add(begin), bytes.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr().add(first), written - first);
        }
        place(TAIL).store(head, Ordering::Release);
        read_records(&bytes, nix::unistd::gettid().as_raw() as u32)
    }
}

fn open_event(
    (name, kind, config): (&str, u32, u64),
    period: u64,
    cpu: Option<usize>,
    flags: u64,
) -> Result<File> {
    // The kernel lets children share a ring only on one CPU.
    let flags = if cpu.is_some() { flags | WITH_CHILDREN } else { flags };
    let (registers, user_registers) = if HAS_FLAG { (USER_REGISTERS, FLAGS_REGISTER) } else { (0, 0) };
    let attributes = Attributes {
        kind,
        config,
        sample_period: period,
        sample_type: THREAD_AND_STACK | registers,
        flags: flags | DISABLED | WITHOUT_HYPERVISOR,
        user_registers,
        deepest_stack: DEEPEST,
        ..Attributes::default()
    };
    open_attributes(attributes, name, (0, cpu.map_or(ANY_CPU, |cpu| cpu as i32)))
}

fn refusal_sentence(error: Error) -> Error {
    let remedy = match KernelFiles::live().read_number::<i32>("proc/sys/kernel/perf_event_paranoid") {
        Some(level) if level > 2 => format!(
            "kernel.perf_event_paranoid is {level}: `sysctl kernel.perf_event_paranoid=1` allows it, and 2 without the kernel's \
             functions"
        ),
        Some(level) => format!(
            "kernel.perf_event_paranoid is {level}, which allows it: a sandbox's filter of system calls denies it"
        ),
        None => "this kernel has no perf events (kernel.perf_event_paranoid cannot be read)".into(),
    };
    Error::Missing(format!("stacks cannot be sampled here ({error}): {remedy}"))
}

/// The stacks in the records of a ring, and the number of lost ones. Stacks of `thread` outside of brackets, and records of other
/// kinds, are left out.
fn read_records(mut bytes: &[u8], thread: u32) -> (Vec<Stack>, u64) {
    let (mut stacks, mut lost) = (Vec::new(), 0);
    while let Some(header) = word(bytes, 0) {
        // A kind of four bytes, flags of two, and the length of two.
        let length = (header >> 48) as usize;
        let Some(record) = bytes.get(..length).filter(|record| record.len() >= 8) else { break };
        match header as u32 {
            SAMPLE => stacks.extend(read_sample(record, thread)),
            LOST => lost += word(record, 16).unwrap_or(0),
            _ => {}
        }
        bytes = &bytes[length..];
    }
    (stacks, lost)
}

/// The stack of a sample; `None` for one of `thread` outside of brackets. Children have no brackets: they run for its operation.
fn read_sample(record: &[u8], thread: u32) -> Option<Stack> {
    let sampled_thread = (word(record, 8)? >> 32) as u32;
    let count = usize::try_from(word(record, 16)?).ok()?;
    let stack = (0..count).map_while(|index| word(record, 24 + 8 * index));
    // Behind the stack: the kind of the registers (0: there are none), and the flags.
    let flags = word(record, 32 + 8 * count);
    if HAS_FLAG && sampled_thread == thread && flags.is_none_or(|flags| flags & BRACKET_FLAG == 0) {
        return None;
    }
    let mut addresses: Vec<_> = stack.filter(|address| *address < LEAST_CONTEXT).collect();
    // A return address may be the start of the next function, so the byte before it is taken.
    addresses.iter_mut().skip(1).for_each(|address| *address = address.saturating_sub(1));
    Some(addresses)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    word.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{print_skipped, value_or_skip};
    use crate::{arch, cpu, time};

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let header = u64::from(kind) | (8 + 8 * words.len() as u64) << 48;
        std::iter::once(&header).chain(words).flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn records_are_read_up_to_one_that_is_cut_off() {
        let (kernel, user) = (-128_i64 as u64, -512_i64 as u64);
        let sample = |flags| record(SAMPLE, &[5 << 32, 4, kernel, 100, user, 90, 2, flags]);
        let cut = sample(BRACKET_FLAG)[..20].to_vec();
        let ring = [sample(BRACKET_FLAG), record(LOST, &[1, 3]), sample(!BRACKET_FLAG), record(99, &[]), cut]
            .concat();
        assert_eq!(read_records(&ring, 6), (vec![vec![100, 89]; 2], 3), "another thread");
        assert_eq!(read_records(&ring, 5).0.len(), if HAS_FLAG { 1 } else { 2 });
        assert_eq!(read_records(&record(SAMPLE, &[]), 5).0, [[0; 0]; 0]);
        assert_eq!(read_records(&[0; 64], 5).0, [[0; 0]; 0], "a length of 0 ends it");
    }

    /// Runs for 30 ms, in calls of `work` that take far less.
    fn run_for_a_while(mut work: impl FnMut()) {
        let end = time::monotonic_raw_ns() + 30_000_000;
        while time::monotonic_raw_ns() < end {
            work();
        }
    }

    fn add() {
        std::hint::black_box(arch::add_chain(10_000));
    }

    #[test]
    fn a_busy_thread_is_sampled_in_its_brackets_while_the_sampler_is_enabled() {
        let cpu = cpu::current_cpu();
        let sampled = cpu::run_on_cpu(cpu, || -> Result<_> {
            let mut sampler = StackSampler::open(Some(cpu), 3e9)?;
            let mut stacks = |open: bool, enabled: bool| -> Result<_> {
                if enabled {
                    sampler.enable()?;
                }
                if open {
                    open_bracket()
                }
                run_for_a_while(add);
                close_bracket();
                sampler.disable()?;
                Ok(sampler.take_stacks())
            };
            Ok([stacks(true, false)?, stacks(false, true)?, stacks(true, true)?])
        });
        let Ok(sampled) = sampled else { return print_skipped("the thread cannot be moved to a CPU") };
        let Some([disabled, outside, (stacks, lost)]) = value_or_skip(sampled) else { return };
        assert_eq!((disabled.0.len(), lost), (0, 0));
        assert!(!HAS_FLAG || outside.0.is_empty(), "{} outside a bracket", outside.0.len());
        assert!(stacks.len() > 20, "{} samples in 30 ms", stacks.len());
        let chain = arch::add_chain as *const () as u64;
        let inside = stacks.iter().filter(|stack| stack[0].wrapping_sub(chain) < 4_096).count();
        assert!(2 * inside > stacks.len(), "{inside} of {} are in the chain of additions", stacks.len());
    }

    #[test]
    fn children_are_sampled_too() {
        let cpu = cpu::current_cpu();
        let sampled = cpu::run_on_cpu(cpu, || -> Result<_> {
            let mut sampler = StackSampler::open(Some(cpu), 3e9)?;
            sampler.enable()?;
            std::thread::scope(|scope| scope.spawn(|| run_for_a_while(add)).join()).expect("no panic");
            sampler.disable()?;
            Ok(sampler.take_stacks().0.len())
        });
        let Ok(sampled) = sampled else { return print_skipped("the thread cannot be moved to a CPU") };
        let Some(count) = value_or_skip(sampled) else { return };
        assert!(count > 20, "{count} samples of a thread that ran for 30 ms");
    }
}
