//! The kernel and the hardware as we touch them.
//!
//! This is the only floor where `unsafe` is spoken: the crate denies it, the files below allow it at
//! their head, name their invariants once, and cite one at every block. What leaves this floor is safe.
//!
//! [`arch`] has one file a processor architecture with the same function names in each, so that a reader
//! can hold one against the other, and against the disassembly: the hot loops are free functions with
//! primitive arguments.

pub mod arch;
pub mod burden;
pub mod call;
pub mod cpu;
pub mod displace;
pub mod entry;
pub mod name;
pub mod output;
pub mod perf_event;
pub mod process;
pub mod signal;
pub mod time;
pub mod trace;
