//! Plain data of comparisons, and the file format of portable records.

pub mod bundle;
pub mod paired;
