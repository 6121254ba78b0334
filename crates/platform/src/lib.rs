//! Linux and the processor as safe functions, and the error type of syscost.
//!
//! Files here may contain `unsafe`: each allows it at its head, names its invariants once, and cites one at every
//! block. A public function is safe to call unless it is declared `unsafe`.
//!
//! [`arch`] has a file for each processor architecture with the same function names in each. Its hot loops are free
//! functions with primitive arguments, so that they can be compared with each other and with the disassembly.

#![deny(unsafe_code)]

pub mod allocation;
pub mod arch;
pub mod bpf;
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "bracket_steps/absent.rs")]
pub mod bracket_steps;
pub mod callgrind;
pub mod child;
pub mod control_group;
pub mod cpu;
pub mod emulator_mark;
pub mod error;
pub mod evictable;
pub mod fluid;
pub mod futex;
pub mod host_address;
pub mod inert;
pub mod instruction;
pub mod interface;
pub mod kernel_files;
pub mod landlock;
pub mod limit;
pub mod mount;
pub mod namespace;
pub mod numa;
pub mod output;
pub mod partner;
pub mod patch;
pub mod pattern_file;
pub mod perf_event;
pub mod plain_file;
pub mod proc;
pub mod process;
pub mod ptrace;
pub mod region;
pub mod resident;
pub mod sampler;
pub mod seccomp;
pub mod shared;
pub mod signal;
pub mod sleep;
pub mod socket_handle;
pub mod stack_sampler;
pub mod symbols;
pub mod syscall;
pub mod testing;
pub mod time;
pub mod volume;
