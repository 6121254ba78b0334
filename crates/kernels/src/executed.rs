//! Executed instructions by function: which functions make up a difference between two kernels.
//!
//! The plugin's file ([`execution_log`]) has the counts by address; [`Symbols`](syscost_platform::symbols::Symbols) maps an address
//! to its function; [`function_table`] compares two kernels function by function; [`call_tree`] has the callers of each function.

pub mod call_tree;
pub mod execution_log;
pub mod function_table;
