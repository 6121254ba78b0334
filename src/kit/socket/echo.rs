//! The far end of a round trip: it sends its process id, and then every message back.

use super::endpoint::Endpoint;
use std::mem::swap;

/// Length of the greeting: the id of the process that answers.
pub const GREETING_BYTES: usize = 4;

/// The answering end. Its two buffers alternate: one is sent while the other receives the next message.
pub struct Echo<E> {
    endpoint: E,
    received: Vec<u8>,
    next: Vec<u8>,
    greeted: bool,
}

impl<E: Endpoint> Echo<E> {
    /// For messages of `bytes`. Allocates here and never later.
    pub fn new(endpoint: E, bytes: usize) -> Self {
        Self { endpoint, received: vec![0; bytes], next: vec![0; bytes], greeted: false }
    }

    /// Answers one message and waits for the next. The first call sends the greeting. Returns bytes or a negative error
    /// number.
    #[inline(always)]
    pub fn answer_message(&mut self) -> i64 {
        if !self.greeted {
            self.greeted = true;
            let number = std::process::id().to_ne_bytes();
            let greeted = self.endpoint.send(&number);
            return if greeted < 0 { greeted } else { self.endpoint.receive(&mut self.received) };
        }
        let answer = self.endpoint.exchange(&self.received, &mut self.next);
        swap(&mut self.received, &mut self.next);
        answer
    }
}
