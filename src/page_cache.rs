//! The size of this machine's file cache: the speed of reading a file again, against its length.
//!
//! A file that is read in order again and again comes from memory as long as the cache can keep all of it. Longer than that, it
//! leaves the cache before it is read again, and the disk is measured. The size is what a file that is read *now* gets, beside what
//! the cache holds for others. `MemAvailable` is an upper bound.
//!
//! The machine stays usable: [`Guard`].

mod machine_guard;
mod size_curve;

pub use machine_guard::{Bounds, Cost, Guard};
pub use size_curve::{Request, SizeCurve, SizePoint, measure_size_curve};
