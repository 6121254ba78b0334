//! Adaptive control of the degree of multiprogramming (DMP): how many jobs may run at a time for nearly the best
//! throughput.
//!
//! With too few jobs the machine is idle while they wait. With too many they take each other's pages, and all wait for
//! the paging device: they *thrash*. If F is the mean time between two major page faults, and S the mean time to bring
//! a page in, the machine is well used at F ≈ S.
//!
//! The control uses S/F, because F is undefined without faults. By Little's law it is the mean number of jobs that wait
//! for the paging device: far below 1 the device is idle and another job may run; above 1 jobs queue and one must be
//! suspended. [`Pilot`] uses the damped S/F as its performance index, with 1 as the goal.
//!
//! A [`Computer`] is real: its jobs read random pages of files of their own, on one CPU, in a memory control group that
//! holds only some of them. Mapped files are paged, so that no swap is needed. Each job times its own page-ins, as the
//! page fault handler does in the slides. A job is swapped out by suspending it (SIGSTOP): the kernel then reclaims its
//! unused pages first. The jobs end with the thread that started the computer; a cleanup process removes the group,
//! also after a kill.
//!
//! Source: slides 86 to 91 of the [module's](super) own; P. J. Denning, *Thrashing: Its Causes and Prevention* (1968)
//! and the L = S criterion (Denning and others, 1976).

mod computer;
mod job;
mod memory_group;
mod pilot;

pub use computer::{Computer, Paging};
pub use job::Job;
pub use memory_group::MemoryGroup;
pub use pilot::Pilot;
