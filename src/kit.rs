//! Parts that several groups of the suite share.

pub mod alarm;
pub mod blocks;
pub mod crew;
pub mod crowd;
pub mod evictable;
pub mod fault_count;
pub mod ipc;
pub mod message_size;
pub mod pattern_file;
pub mod placement;
pub mod remote;
pub mod repeated;
pub mod sampler;
pub mod scheduling_policy;
pub mod sleep;
pub mod socket;
pub mod start_order;
pub mod stream;
pub mod task;
pub mod token;
pub mod watchdog;
