//! Counts the allocations of an operation besides its time. A bench declares a counting allocator; the table and the record of
//! every run then show the allocations of an iteration, their bytes, and the most bytes held at once:
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
//! Allocations are counted in separate, untimed batches, inside the brackets of the clock: the preparation of an iteration and
//! the drop of its result are left out. In all other code, the allocator adds one relaxed load to each allocation.

pub use crate::platform::allocation::Counting;
