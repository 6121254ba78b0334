//! The size of this machine's file cache: the speed of reading a file again, against its length.
//!
//! A file that is read in order again and again comes from memory as long as the cache can keep all of it. The pages of a longer
//! file leave the cache before they are read again, so the disk is measured. The size is the share of the cache that a file gets
//! when it is read *now*, beside the files of other programs. `MemAvailable` is an upper bound.
//!
//! A [`Guard`] keeps the machine usable meanwhile.

mod machine_guard;
mod size_curve;

pub use machine_guard::{Bounds, Cost, Guard};
pub use size_curve::{Request, SizeCurve, SizePoint, measure_size_curve};
