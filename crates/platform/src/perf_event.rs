//! Counters of `perf_event_open(2)`, and the scale that the kernel publishes for the time-stamp counter.
//!
//! # Invariants
//!
//! * **ATTRIBUTES**: the kernel reads as many bytes of the structure as its `size` field says, which is the size of the Rust type.
//! * **OWN-DESCRIPTOR**: the kernel has just made the descriptor, which has no other owner.
//! * **PAGE**: the first page of the mapping is the kernel's `perf_event_mmap_page`, valid as long as the
//!   mapping. The scale in it changes only when the clock source does, so its sequence lock is not taken.
#![allow(unsafe_code)]

mod known_work;
pub mod probe;

use super::kernel_files::KernelFiles;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};

/// The events that can be counted. Names are those of `perf list`.
pub const EVENTS: &[Event] = &[
    Event { name: "cpu-cycles", kind: 0, config: 0, hardware: true },
    Event { name: "instructions", kind: 0, config: 1, hardware: true },
    Event { name: "cache-references", kind: 0, config: 2, hardware: true },
    Event { name: "cache-misses", kind: 0, config: 3, hardware: true },
    Event { name: "branch-misses", kind: 0, config: 5, hardware: true },
    Event { name: "dTLB-load-misses", kind: 3, config: 3 | 1 << 16, hardware: true },
    Event { name: "task-clock", kind: 1, config: 1, hardware: false },
    Event { name: "page-faults", kind: 1, config: 2, hardware: false },
    Event { name: "context-switches", kind: 1, config: 3, hardware: false },
    Event { name: "cpu-migrations", kind: 1, config: 4, hardware: false },
    Event { name: "minor-faults", kind: 1, config: 5, hardware: false },
    Event { name: "major-faults", kind: 1, config: 6, hardware: false },
];

/// One row of [`EVENTS`], with the two numbers that identify the event (`linux/perf_event.h`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Name as in `perf list`.
    pub name: &'static str,
    kind: u32,
    config: u64,
    /// Whether the processor's PMU counts the event, which a guest may lack; otherwise the kernel counts it.
    pub hardware: bool,
}

impl Event {
    /// The event of this name.
    ///
    /// # Errors
    /// No event has this name; the sentence lists the known ones.
    pub fn from_name(name: &str) -> std::result::Result<Self, String> {
        let names = || EVENTS.iter().map(|event| event.name).collect::<Vec<_>>().join(", ");
        let found = EVENTS.iter().find(|event| event.name == name).copied();
        found.ok_or_else(|| format!("there is no event {name}; there are {}", names()))
    }

    /// A sentence: why the event cannot be counted here, by the error that counting it caused.
    pub fn refusal_message(&self, error: &Error) -> String {
        let name = self.name;
        // The event can be opened, but does not count, or not all the time.
        if let Error::Missing(sentence) | Error::Disturbed(sentence) = error {
            return sentence.clone();
        }
        let errno = match error {
            Error::Kernel { cause, .. } => cause.raw_os_error().unwrap_or(0),
            _ => 0,
        };
        match errno {
            libc::EACCES | libc::EPERM => {
                format!("{name} may not be counted here ({error}): {}", permission_message())
            }
            libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP if self.hardware => format!(
                "{name} is counted by the processor's PMU, which the kernel does not offer here ({error}); \
                 page-faults and context-switches are counted by the kernel and work everywhere"
            ),
            _ => format!("{name} cannot be counted here ({error})"),
        }
    }
}

/// A sentence: what may forbid an event, as far as this process can see.
fn permission_message() -> String {
    const PARANOID: &str = "proc/sys/kernel/perf_event_paranoid";
    match KernelFiles::live().read_number::<i64>(PARANOID) {
        // Up to level 2 a user may count the events of his own processes.
        Some(level) if level > 2 => format!("/{PARANOID} is {level}: 2 allows it"),
        Some(level) => {
            format!("/{PARANOID} is {level}, which allows it: a sandbox's filter of system calls denies it")
        }
        None => {
            format!("/{PARANOID} cannot be read: this kernel has no perf events, or a sandbox hides them")
        }
    }
}

/// `struct perf_event_attr` at its size of Linux 4.8. An older kernel accepts it if the fields that it does not know are zero.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup: u32,
    pub(crate) breakpoint: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branches: u64,
    pub(crate) user_registers: u64,
    pub(crate) user_stack: u32,
    pub(crate) clock: i32,
    pub(crate) interrupt_registers: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) deepest_stack: u16,
    pub(crate) reserved: u16,
}

/// `exclude_kernel`.
pub(crate) const WITHOUT_KERNEL: u64 = 1 << 5;
/// `exclude_hv`.
pub(crate) const WITHOUT_HYPERVISOR: u64 = 1 << 6;
/// The bits that an unprivileged user must set at paranoia level 2.
const USER_SPACE_ONLY: u64 = WITHOUT_KERNEL | WITHOUT_HYPERVISOR;

/// `inherit`: children that the task makes from now on are counted, too.
pub(crate) const WITH_CHILDREN: u64 = 1 << 1;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `PERF_FORMAT_TOTAL_TIME_RUNNING`: two times follow the count, ns, during which the event
/// was enabled and was counted.
const WITH_TIMES: u64 = 1 << 0 | 1 << 1;

/// Least share of its enabled time in which a counter must count. The two times are of one clock, and equal unless
/// another event had the PMU.
const COUNTED_SHARE: f64 = 0.999;

/// `PERF_FLAG_FD_CLOEXEC` of `linux/perf_event.h`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// In place of a thread number: all tasks on one CPU.
const ALL_TASKS: i32 = -1;
/// In place of a CPU number: every CPU on which the thread runs.
pub(crate) const ANY_CPU: i32 = -1;

/// Opens an event of a thread (0: the calling one) on a CPU, outside of any group and close-on-exec.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn open_attributes(attributes: Attributes, name: &str, (thread, cpu): (i32, i32)) -> Result<File> {
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes };
    // SAFETY: ATTRIBUTES.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, cpu, -1, CLOSE_ON_EXEC)
    };
    let fd = i32::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(Error::from_last_errno(format!("perf_event_open of {name}")));
    }
    // SAFETY: OWN-DESCRIPTOR.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// A running counter of this thread.
pub struct Counter {
    file: File,
    name: &'static str,
    /// Whether events in the kernel are not counted.
    pub user_space_only: bool,
}

impl Counter {
    /// Opens a counter of the calling thread, which includes events in the kernel if that is allowed. Switches and
    /// migrations happen only in the kernel, so they need it. A counter of this event must first count known work.
    ///
    /// # Errors
    /// The kernel refuses `perf_event_open`, or [`Error::Missing`]: the counter does not count.
    pub fn open(event: Event) -> Result<Self> {
        known_work::prove_event(event)?;
        Self::open_with_fallback(event, 0, 0)
    }

    /// As [`Counter::open`], for the thread of this number (0: the calling one), and for the children that it makes from
    /// now on.
    ///
    /// # Errors
    /// As of [`Counter::open`].
    pub fn open_with_children(event: Event, thread: i32) -> Result<Self> {
        known_work::prove_event(event)?;
        Self::open_with_fallback(event, thread, WITH_CHILDREN)
    }

    /// As [`Counter::open`], for all tasks that run on a CPU.
    ///
    /// # Errors
    /// As of [`Counter::open`]; [`Error::Missing`] where only the events of own tasks may be counted.
    pub fn open_on_cpu(event: Event, cpu: usize) -> Result<Self> {
        known_work::prove_event(event)?;
        Self::open_event(event, (ALL_TASKS, cpu as i32), 0).map_err(|error| match error {
            Error::Kernel { cause, .. }
                if matches!(cause.raw_os_error(), Some(libc::EACCES | libc::EPERM)) =>
            {
                Error::Missing(format!(
                    "{} of all tasks may not be counted here ({cause}): root may, and others where \
                     /proc/sys/kernel/perf_event_paranoid is 0 or less",
                    event.name
                ))
            }
            error => error,
        })
    }

    fn open_with_fallback(event: Event, thread: i32, flags: u64) -> Result<Self> {
        let task = (thread, ANY_CPU);
        let whole = Self::open_event(event, task, flags);
        if whole.is_err() && (event.hardware || event.name.ends_with("-faults")) {
            return Self::open_event(event, task, flags | USER_SPACE_ONLY);
        }
        whole
    }

    fn open_event(event: Event, task: (i32, i32), flags: u64) -> Result<Self> {
        let Event { name, kind, config, .. } = event;
        let attributes = Attributes { kind, config, read_format: WITH_TIMES, flags, ..Default::default() };
        let file = open_attributes(attributes, name, task)?;
        Ok(Self { file, name, user_space_only: flags & USER_SPACE_ONLY != 0 })
    }

    /// The count so far.
    ///
    /// # Errors
    /// The counter cannot be read, or [`Error::Disturbed`]: it did not count all the time.
    pub fn read(&self) -> Result<u64> {
        let mut answer = [[0; 8]; 3];
        let read = (&self.file).read_exact(answer.as_flattened_mut());
        read.map_err(|e| Error::Kernel { call: format!("read of the counter of {}", self.name), cause: e })?;
        let [count, enabled, counted] = answer.map(u64::from_ne_bytes);
        self.check_counted_share(enabled, counted)?;
        Ok(count)
    }

    /// The number of events since the counter read `before`.
    ///
    /// # Errors
    /// As of [`Counter::read`], or [`Error::Disturbed`]: the counter went back.
    pub fn count_since(&self, before: u64) -> Result<u64> {
        let now = self.read()?;
        now.checked_sub(before).ok_or_else(|| {
            Error::Disturbed(format!(
                "the counter of {} went back from {before} to {now}, so that its counts say nothing: measure time",
                self.name
            ))
        })
    }

    /// Checks that the event was counted for all the time, ns, for which it was enabled.
    fn check_counted_share(&self, enabled: u64, counted: u64) -> Result<()> {
        if counted as f64 >= COUNTED_SHARE * enabled as f64 {
            return Ok(());
        }
        Err(Error::Disturbed(format!(
            "{} was counted in {:.1} % of the time only, since other events share the PMU: stop what else counts \
             (`perf`, a watchdog: kernel.nmi_watchdog=0), or measure time",
            self.name,
            100.0 * counted as f64 / enabled as f64
        )))
    }
}

/// The counter frequency by which the kernel computes time, Hz, from the scale (`time_mult`,
/// `time_shift`) in the page of a software event. `None` where the kernel does not publish it.
pub fn published_frequency() -> Option<f64> {
    let event = EVENTS.iter().find(|e| e.name == "page-faults")?;
    let counter = Counter::open_with_fallback(*event, 0, 0).ok()?;
    // SAFETY: PAGE. The mapping is private to this function and the kernel keeps it valid.
    let page = unsafe { memmap2::MmapOptions::new().len(4096).map(counter.file.as_raw_fd()) }.ok()?;
    let at = page.as_ptr();
    // SAFETY: PAGE: the offsets are those of `linux/perf_event.h` (lock 8, capabilities 40, shift 50,
    // mult 52), all inside one page and aligned.
    let (capabilities, shift, mult) = unsafe {
        (
            at.add(40).cast::<u64>().read_volatile(),
            at.add(50).cast::<u16>().read_volatile(),
            at.add(52).cast::<u32>().read_volatile(),
        )
    };
    let user_time = capabilities & (1 << 3) != 0;
    (user_time && mult != 0).then(|| 1e9 * 2f64.powi(i32::from(shift)) / f64::from(mult))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::print_skipped;

    #[test]
    fn a_software_event_counts_what_happened() {
        let event = EVENTS.iter().find(|e| e.name == "minor-faults").expect("in the table");
        let Ok(counter) = Counter::open(*event) else {
            print_skipped("this kernel or sandbox refuses perf_event_open");
            return;
        };
        let before = counter.read().expect("readable");
        let mut memory = memmap2::MmapMut::map_anon(64 * 4096).expect("mapped");
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        let faults = counter.count_since(before).expect("readable");
        assert!(faults > 0, "64 fresh pages were touched and no fault was counted");
        let Err(Error::Disturbed(sentence)) = counter.count_since(u64::MAX) else { panic!("it went back") };
        assert!(sentence.contains("minor-faults went back from 18446744073709551615"), "{sentence}");
    }

    #[test]
    fn a_count_from_a_shared_pmu_is_refused() {
        let Ok(counter) = Counter::open_with_fallback(EVENTS[6], 0, 0) else {
            print_skipped("this kernel or sandbox refuses perf_event_open");
            return;
        };
        assert!(
            counter.check_counted_share(1_000_000, 1_000_000).is_ok()
                && counter.check_counted_share(0, 0).is_ok()
        );
        let Err(Error::Disturbed(sentence)) = counter.check_counted_share(1_000, 400) else {
            panic!("believed")
        };
        assert!(sentence.contains("40.0 %"), "{sentence}");
    }
}
