//! Adaptive control of the degree of multiprogramming (DMP): how many jobs may run at a time, so that throughput stays
//! near its best.
//!
//! Too few jobs leave the machine idle while they wait; too many take each other's pages away, and all wait for the paging
//! device: they *thrash*. With F the mean time between two page faults that the device must serve, and S the mean time
//! in which it brings a page in, the machine is well used where F ≈ S.
//!
//! S/F is a number that one can steer by, where F alone has no mean when nobody faults: by Little's law it is how many jobs
//! wait for the paging device at a time. Far below 1 the device is idle, and a job more may come in; above 1 they queue, and
//! one must go. [`Pilot`] takes S/F as its performance index, damped, with 1 as the goal.
//!
//! A [`Computer`] is real: jobs that read pages of a file of their own at random, on one CPU, in a memory control group that
//! holds only some of them. It needs no swap: a mapped file is paged like anything else. Each job times its own page-ins,
//! as the slides have the page fault handler do it. To swap a job out is to suspend it (SIGSTOP): the kernel then takes its
//! pages, which nobody uses, before all others. The jobs end with the thread that made the computer, the group by an
//! [heir](crate::platform::cleanup), also when the process is killed.
//!
//! Source: slides 86 to 91 of the [module's](super) own; P. J. Denning, *Thrashing: Its Causes and Prevention* (1968) and the
//! L = S criterion (Denning and others, 1976).

mod computer;
mod group;
mod job;
mod pilot;

pub use computer::{Computer, Paging};
pub use job::Job;
pub use pilot::Pilot;
