//! Comparing kernels: as guests that take turns, by counted instructions, and over reboots of the machine.
//!
//! [`guest`] boots kernels in QEMU or user-mode Linux; [`reboot`] measures them on the machine itself, boot by boot. [`kernels`]
//! is the command `syscost kernels`. [`instruction_counts`] is the record of counted instructions, and [`counted_change`] gives
//! the verdicts on them.
#![deny(unsafe_code)]

pub mod counted_change;
pub mod executed;
pub mod guest;
pub mod instruction_counts;
pub mod kernels;
pub mod reboot;
