//! Limits of a server, for each client and for all.

use std::time::Duration;

/// Connections that wait for authentication. One more evicts the oldest of the address with most of them.
pub const MOST_WAITING: usize = 256;
/// Time for a connection to authenticate.
pub const PROOF_PATIENCE: Duration = Duration::from_secs(5);
/// Data streams that wait for their secret. One more evicts the oldest.
pub const MOST_AT_DOOR: usize = 64;
/// Time for a data socket to connect and to send its secret.
pub const DATA_PATIENCE: Duration = Duration::from_secs(5);
/// Time for which a client may leave data unread.
pub const READ_PATIENCE: Duration = Duration::from_secs(10);
/// Period of the tests whether a server should end and whether a session has reached a limit.
pub const GLANCE: Duration = Duration::from_millis(200);
/// Stack of a server thread, bytes: its buffers are on the heap.
pub const STACK: usize = 256 << 10;

/// Limits that the user can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Simultaneous clients.
    pub clients: usize,
    /// Bytes from one client.
    pub bytes: u64,
    /// Duration of a session.
    pub time: Duration,
    /// Duration without a request or data.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { clients: 4, bytes: 1 << 40, time: Duration::from_secs(3600), idle: Duration::from_secs(60) }
    }
}
