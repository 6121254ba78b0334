//! Sizes of messages as ids spell them, how many make an iteration, and whether loopback is there.

use crate::case::Need;
use crate::kit::socket::loopback;

/// The network of this machine answers.
pub const LOOPBACK: Need = Need::new(|_| loopback());

/// A length as it stands in an id.
pub fn length(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 20 => format!("{}MiB", bytes >> 20),
        _ if bytes >= 1 << 10 => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

/// Messages of an iteration: so many bytes that waking the receiver is little beside them, but not more messages than take a
/// millisecond.
const ITERATION_BYTES: usize = 1 << 20;
const MOST_MESSAGES: usize = 1024;

pub fn messages(bytes: usize) -> usize {
    (ITERATION_BYTES / bytes).clamp(1, MOST_MESSAGES)
}
