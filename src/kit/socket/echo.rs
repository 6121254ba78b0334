//! The far end of a round trip: it says who it is, and then sends every message back.

use super::way::Way;
use std::mem::swap;

/// A greeting: the number of the process that answers.
pub const GREETING_BYTES: usize = 4;

/// Who answers. Its two buffers take turns: what has come is sent while the other waits for the next.
pub struct Echo<W> {
    way: W,
    come: Vec<u8>,
    next: Vec<u8>,
    greeted: bool,
}

impl<W: Way> Echo<W> {
    /// For messages of so many bytes. Nothing is allocated afterwards.
    pub fn new(way: W, bytes: usize) -> Self {
        Self { way, come: vec![0; bytes], next: vec![0; bytes], greeted: false }
    }

    /// One message answered and the next one awaited, or a negative error number. The first step greets.
    #[inline(always)]
    pub fn step(&mut self) -> i64 {
        if !self.greeted {
            self.greeted = true;
            let number = std::process::id().to_ne_bytes();
            let greeted = self.way.send(&number);
            return if greeted < 0 { greeted } else { self.way.receive(&mut self.come) };
        }
        let answer = self.way.turn(&self.come, &mut self.next);
        swap(&mut self.come, &mut self.next);
        answer
    }
}
