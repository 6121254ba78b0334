//! The kernel and the hardware as we touch them.
//!
//! This is the only floor where `unsafe` is spoken: the crate denies it, the files below allow it at
//! their head, name their invariants once, and cite one at every block. What leaves this floor is safe.
//!
//! [`arch`] has one file a processor architecture with the same function names in each, so that a reader
//! can hold one against the other, and against the disassembly: the hot loops are free functions with
//! primitive arguments.

pub mod account;
pub mod alarm;
pub mod arch;
pub mod bounce;
pub mod burden;
pub mod call;
pub mod child;
pub mod confined;
pub mod cpu;
pub mod crew;
pub mod delivery;
pub mod descriptors;
pub mod device;
pub mod displace;
pub mod entry;
pub mod evictable;
pub mod fault;
pub mod fluid;
pub mod futex;
pub mod hang_up;
pub mod heap;
pub mod heir;
pub mod interface;
#[cfg(test)]
mod invented;
pub mod line;
pub mod lock;
pub mod mapped;
pub mod memory_module;
pub mod mount;
pub mod name;
pub mod namespace;
pub mod node;
pub mod order;
pub mod output;
pub mod parking;
pub mod partner;
pub mod perf_event;
pub mod pidfd;
pub mod policy;
pub mod pool;
pub mod process;
pub mod program;
pub mod readiness;
pub mod region;
pub mod ring;
pub mod room;
pub mod sampler;
pub mod shared;
pub mod signal;
pub mod socket;
pub mod stamped;
pub mod stream;
pub mod task;
pub mod thread;
pub mod time;
pub mod timer;
pub mod touched;
pub mod trace;
pub mod uring;
pub mod userfault;
pub mod volume;
pub mod watchdog;
