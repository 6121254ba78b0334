//! Linux and the processor as safe functions that belong to no group of measurements.
//!
//! Files here may contain `unsafe`: each allows it at its head, names its invariants once, and cites one at every
//! block. What this room offers to others is safe.
//!
//! [`arch`] has a file for each processor architecture with the same function names in each. Its hot loops are free
//! functions with primitive arguments, so that they can be compared with each other and with the disassembly.

pub mod arch;
pub mod child;
pub mod cleanup;
pub mod control_group;
pub mod cpu;
pub mod fluid;
pub mod futex;
pub mod inert;
pub mod interface;
pub mod kernel_files;
pub mod limit;
pub mod mount;
pub mod namespace;
pub mod output;
pub mod partner;
pub mod patch;
pub mod perf_event;
pub mod plain_file;
pub mod proc;
pub mod process;
pub mod ptrace;
pub mod region;
pub mod resident;
pub mod shared;
pub mod signal;
pub mod slowdown;
pub mod socket_handle;
pub mod syscall;
pub mod time;
pub mod volume;
