//! The size of this machine's file cache: how long a file may be that is still read at memory's speed.
//!
//! A file grows at its end, past the cache, and each new piece is read once, through the cache. As long as there is room
//! the cache keeps all of it; then the kernel gives up what was read longest ago, and what stays is the size that is
//! sought. Short reads at places all over the file tell how much comes from memory: the kernel says for which of them it
//! read from a device ([`Boundary`]). A bisection over the distance from the end was tried, and so were times alone: each zone of
//! the memory gives up its own oldest pages, so that there are gaps in the middle, and memory that a host has taken from
//! its guest is as slow as a disk (of 20.3 GiB that were kept the bisection found 19.0, and times 16 of 19 GiB). A search by
//! reading whole files of several sizes would move a hundred gigabytes; here each byte is written and read once.
//!
//! mincore(2) is asked afterwards. What it says and what the reads say must agree.
//!
//! What is found is what a file that is read *now* gets, beside what the cache holds for others: the kernel gives up
//! pages of each control group by its share, so that a group that begins to read late may get far less than is
//! available. `MemAvailable` is an upper bound.
//!
//! The machine stays usable: [`Guard`].

mod boundary;
mod machine_guard;
mod search;
mod size_curve;

pub use boundary::{BLOCK, Boundary};
pub use machine_guard::{Bounds, Guard, Toll};
pub use search::{Answer, Request, find_cache_size};
pub use size_curve::{SizeCurve, SizePoint, measure_size_curve};
