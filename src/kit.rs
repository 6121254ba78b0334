//! Parts that several groups of the suite share.
//!
//! Tasks beside the measuring thread: [`placement`] says where a partner runs, [`round_trip`] sends a token to it and
//! back over a channel of [`ipc`], [`crew`] and [`parallel`] run the same operation on several CPUs at once, [`threads`] does that
//! for a bench of one's own, [`alarm`] ends a wait for a partner that hangs. [`operation_table`] makes cases of the rows of a table,
//! [`own_process`] runs a batch in a child. Sockets: [`socket`] on this machine, [`remote`] to
//! another one. The other modules are files, memory, sleeps and the timed loops around single calls.

pub mod alarm;
pub mod blocks;
pub mod crew;
pub mod fault_count;
pub mod in_flight;
pub mod io_priority;
pub mod io_uring_refusal;
pub mod ipc;
pub mod kernel_call;
pub mod message_size;
pub mod operation_table;
pub mod own_process;
pub mod parallel;
pub mod placement;
pub mod remote;
pub mod round_trip;
#[cfg(test)]
pub mod runnable;
pub mod scheduling_policy;
pub mod smallest_program;
pub mod socket;
pub mod start_order;
pub mod stream;
pub mod task;
pub mod threads;
pub mod watchdog;
