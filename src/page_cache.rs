//! The size of this machine's file cache: how long a file may be that is still read at memory's speed.
//!
//! A file grows at its end, past the cache, and each new piece is read once, through the cache. As long as there is room
//! the cache keeps all of it; then the kernel gives up what was read longest ago, so that what stays is the end of the
//! file, and the length of that end is the size that is sought. It is found by bisection over the distance from the end: two or
//! three short reads tell whether the file comes from memory or from the disk there ([`Boundary`]). A search by reading
//! whole files of several sizes would move a hundred gigabytes; here each byte is written and read once, and not one
//! more than is needed.
//!
//! mincore(2) is asked afterwards. What it says and what the times say must agree.
//!
//! What is found is what a file that is read *now* gets, beside what the cache holds for others: the kernel gives up
//! pages of each control group by its share, so that a group that begins to read late may get far less than is
//! available. `MemAvailable` is an upper bound.
//!
//! The machine stays usable: [`Guard`].

mod boundary;
mod machine_guard;
mod search;

pub use boundary::Boundary;
pub use machine_guard::{Bounds, Guard, Toll};
pub use search::{Answer, Request, search};
