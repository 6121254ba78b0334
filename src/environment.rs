//! What else was true at the time: the [`Fingerprint`] of a machine, and the [`doctor`] who looks and
//! never touches.
//!
//! Everything is read through [`KernelFiles`], the one seam where a machine can be faked. What has a
//! structure is parsed by pure functions ([`cpuinfo`], [`cpu_list`], [`cgroup`], [`process`])
//! that are tested on captured text.

pub mod accounting;
pub mod cache;
pub mod cpu_list;
pub mod cpuinfo;
pub mod doctor;
mod fingerprint;
pub mod interface;

pub use accounting::Accounting;
pub use cache::Cache;
pub use fingerprint::{Difference, Fingerprint, Smt, Weight};
pub use interface::{Interface, Station, Wire};
