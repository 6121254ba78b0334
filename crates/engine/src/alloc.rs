//! Allocations of an operation beside its times. A bench declares an allocator that counts, and the table and the record of
//! every run show the allocations of an iteration, their bytes, and the most bytes at once:
//!
//! ```
//! use std::alloc::System;
//! use syscost_engine::alloc::Counting;
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting<System> = Counting::new(System);
//! # fn main() {}
//! ```
//!
//! They are counted in batches that are not timed, inside the brackets of the clock: what prepares an iteration, or drops its
//! result, is left out. Otherwise an allocation costs one relaxed load more.

pub use crate::platform::allocation::Counting;
