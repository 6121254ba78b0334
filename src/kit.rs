//! Parts that several groups of the suite share.
//!
//! Tasks beside the measuring thread: [`placement`] says where a partner runs, [`round_trip`] sends a token to it and
//! back over a channel of [`ipc`], [`crew`] and [`parallel`] run the same operation on several CPUs at once,
//! [`watchdog`] ends a wait for a partner that hangs. [`operation_table`] makes cases of the rows of a table. [`socket`] holds sockets
//! on this machine, [`remote`] those to another one. The other modules are about files, memory, sleeps and the timed loops
//! around single calls.

pub mod blocks;
pub mod contract;
pub mod crew;
pub mod evidence;
pub mod fault_count;
pub mod ipc;
pub mod kernel_call;
pub mod operation_table;
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
pub mod watchdog;
