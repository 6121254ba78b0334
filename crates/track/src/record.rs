//! The records of many nights and of many machines, as plain data.

pub mod fleet_record;
pub mod history_log;
pub mod history_point;
