//! The machine around a measurement: its [`Fingerprint`], and the [`doctor`], which finds what would disturb. Both read
//! and change nothing.
//!
//! Everything is read through [`KernelFiles`](crate::platform::kernel_files::KernelFiles), so that tests can fake a
//! machine. Structured text is parsed by pure functions that are tested on captured text.

mod accounting;
mod cpuinfo;
pub mod doctor;
mod fingerprint;
mod inherited;
pub mod memory_module;
mod network_path;

pub use crate::platform::cpu::cpu_list;
pub use accounting::Accounting;
pub use cpuinfo::Cache;
pub use fingerprint::{Difference, Fingerprint, Hardware, Series, Smt, Surroundings, Weight, unknown_reason};
pub use inherited::Inherited;
pub use network_path::{Interface, Station, Wire};
