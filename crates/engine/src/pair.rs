//! One side of a comparison by pairs of processes (`syscost-analysis`): a measuring process that waits for its turns.
//!
//! A side proves what it times like any measuring process: in the first pair of a case the witness is called and
//! proportionality is checked, and the case's counters are judged in every turn. A claim that fails on a side ends the
//! case without a result.

pub mod protocol;
pub mod side;

pub use protocol::is_side_process;
