//! Sizes of messages as ids spell them, the number of messages in an iteration, and the need for loopback.

use crate::case::Need;
use crate::kit::socket::check_loopback;

/// 127.0.0.1 can be reached.
pub const LOOPBACK: Need = Need::new(|_| check_loopback());

/// A length as ids spell it.
pub fn size_text(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 20 => format!("{}MiB", bytes >> 20),
        _ if bytes >= 1 << 10 => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

/// Bytes of an iteration: enough that waking the receiver costs little in comparison.
const ITERATION_BYTES: usize = 1 << 20;
/// Messages of an iteration at most, so that it takes no longer than a millisecond.
const MOST_MESSAGES: usize = 1024;

/// Messages of this length in an iteration.
pub fn messages_per_iteration(bytes: usize) -> usize {
    (ITERATION_BYTES / bytes).clamp(1, MOST_MESSAGES)
}
