//! Plain data of comparisons, and the file in which records are carried.

pub mod bundle;
pub mod paired;
