//! How much a server gives: to one client, and to all.

use std::time::Duration;

/// How many connections may wait to be let in. One more, and the oldest of whose address has most must go.
pub const MOST_WAITING: usize = 256;
/// How long one may take to prove itself, however it drips.
pub const PROOF_PATIENCE: Duration = Duration::from_secs(5);
/// How many streams may wait at a data door until their secret has come. One more, and the oldest must go.
pub const MOST_AT_DOOR: usize = 64;
/// How long a data socket may take to come and to show its secret.
pub const DATA_PATIENCE: Duration = Duration::from_secs(5);
/// How long a client may leave what is sent to it unread.
pub const READ_PATIENCE: Duration = Duration::from_secs(10);
/// How often a server looks whether it is to end, and a conversation whether it has had enough.
pub const GLANCE: Duration = Duration::from_millis(200);
/// Stack of a thread of the server's, bytes: what it keeps is on the heap.
pub const STACK: usize = 256 << 10;

/// What a person may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients at a time.
    pub clients: usize,
    /// Bytes that one client may send.
    pub bytes: u64,
    /// How long one client may stay.
    pub time: Duration,
    /// How long one may stay without asking or sending anything.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { clients: 4, bytes: 1 << 40, time: Duration::from_secs(3600), idle: Duration::from_secs(60) }
    }
}
