//! The kernel and the hardware as we touch them.
//!
//! This is the only floor where `unsafe` is spoken: the crate denies it, the files below allow it at
//! their head, name their invariants once, and cite one at every block. What leaves this floor is safe.
//!
//! [`arch`] has one file a processor architecture with the same function names in each, so that a reader
//! can hold one against the other, and against the disassembly: the hot loops are free functions with
//! primitive arguments.

pub mod arch;
pub mod block_device;
pub mod child;
pub mod cleanup;
pub mod control_group;
pub mod cpu;
#[cfg(test)]
mod fixture;
pub mod fluid;
pub mod futex;
pub mod interface;
pub mod io_account;
pub mod kernel_files;
pub mod limit;
pub mod memory_cgroup;
pub mod mount;
pub mod name;
pub mod namespace;
pub mod output;
pub mod partner;
pub mod perf_event;
pub mod pidfd;
pub mod proc;
pub mod process;
pub mod ptrace;
pub mod region;
pub mod resident;
pub mod shared;
pub mod shutdown;
pub mod signal;
pub mod slowdown;
pub mod syscall;
pub mod time;
pub mod volume;
