//! One file for each architecture, with the same names in each.
//!
//! | function | what it does |
//! |---|---|
//! | `start`, `stop` | the ordered pair of counter reads that brackets what is timed |
//! | `read` | one unordered read |
//! | `frequency` | the counter's frequency as the processor states it |
//! | `unfit` | why the counter cannot be used as a clock, if it cannot |
//! | `register_loop`, `memory_loop` | n turns of an empty loop, counted in a register or in memory |
//! | `mixed_loop` | n turns of a loop of eight instructions of known kinds |
//! | `add_chain`, `multiply_chain` | n operations, each of which needs the result of the previous one |
//! | `chase` | loads, each of which needs the address that the previous one has loaded |
//! | `syscall0` … `syscall6` | an entry into the kernel without the C library |
//! | `repeat_syscall` …, `repeat_no_syscall` | loops of entries, each within a cache line, and the same loop without an entry |
//! | `evict`, `CAN_EVICT` | evicts a cache line from all caches, where user space may do so |
//! | `is_kernel_entry` | whether these bytes of code are the instruction that enters the kernel |
//! | `JUMP`, `RETURN`, `publish` | machine code of a jump 16 bytes ahead and of a return; a function that makes written code safe to run |
//! | `COUNTER` | the counter's name in a record |

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
#[macro_use]
mod chain_functions;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
#[macro_use]
mod entry_functions;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod portable;
#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub use portable::*;
#[cfg(target_arch = "riscv64")]
pub use riscv64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

/// The range of the values that repeated system calls returned; without a call, the empty interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The lowest return value.
    pub lowest: i64,
    /// The highest return value.
    pub highest: i64,
}

impl Default for Answers {
    fn default() -> Self {
        Self { lowest: i64::MAX, highest: i64::MIN }
    }
}

/// Why the hardware counter is not used as the clock.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// The counter's rate follows the core's frequency.
    #[error("the counter's rate changes with the core's frequency (no constant_tsc)")]
    NotConstant,
    /// The counter stops in deep sleep states.
    #[error("the counter stops in deep sleep (no nonstop_tsc)")]
    NotNonstop,
    /// The processor lacks `rdtscp`, the counter read that waits for earlier instructions.
    #[error("{}", NO_RDTSCP)]
    NoRdtscp,
    /// The counters of two CPUs differ by more than the uncertainty of a reading.
    #[error("CPU {cpu}'s counter differs from the first CPU's by {by_ns:.0} ns")]
    DiffersBetweenCpus {
        /// The CPU that disagrees with the first.
        cpu: usize,
        /// The difference, nanoseconds.
        by_ns: f64,
    },
    /// Two calibrations in one process disagree: the guest was moved to a host of another frequency.
    #[error("two calibrations differ by {by_ppm:.0} ppm: the guest may have been moved")]
    Migrates {
        /// Relative difference, parts per million.
        by_ppm: f64,
    },
    /// A read takes so long that a hypervisor must be emulating it.
    #[error("two reads take {pair_ns:.0} ns: the hypervisor answers in the counter's place")]
    Trapped {
        /// Cost of one ordered pair, nanoseconds.
        pair_ns: f64,
    },
    /// This crate does not know how to read this processor's counter.
    #[error("how the counter of {} is read is not known here", std::env::consts::ARCH)]
    NotKnown,
    /// The user switched the counter off by `SYSCOST_CLOCK=monotonic-raw`.
    #[error("SYSCOST_CLOCK asks for monotonic-raw")]
    Declined,
}

/// The message for a processor without `rdtscp`: an old one, or an emulated one whose CPU model is old.
pub const NO_RDTSCP: &str = "this processor has no RDTSCP instruction (CPUID leaf 0x80000001, EDX bit 27): a guest's may be named, as by `-cpu host`";
