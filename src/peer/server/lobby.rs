//! Connections that have not authenticated yet. One thread handles all of them without blocking, and keeps at most one
//! line of each, so that many silent connections cost only small buffers for a short time.

use super::super::control_protocol::{
    Answer, Ask, Hello, LONGEST_BEFORE, MOST_WAITING, PROOF_PATIENCE, VERSION,
};
use super::super::proof::{End, Nonces, Token, generate_nonce};
use crate::json_line::{Lines, NoMessage, to_line};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

/// Connections that wait, the oldest first.
#[derive(Default)]
pub(super) struct Lobby {
    waiting: Vec<Waiting>,
}

struct Waiting {
    stream: TcpStream,
    from: SocketAddr,
    since: Instant,
    lines: Lines,
    /// Set after the exchange of hellos: the nonces for the proof, or `None` if that of the client is invalid.
    greeted: Option<Option<Nonces>>,
}

/// A connection that has authenticated.
pub(super) struct Proved {
    pub(super) stream: TcpStream,
    pub(super) from: SocketAddr,
    pub(super) lines: Lines,
    /// The proof of the server.
    pub(super) proof: String,
}

/// What happens to a connection that has sent something.
enum Fate {
    Waits,
    Goes,
    Proves(String),
}

impl Lobby {
    /// Adds a connection, and evicts another one if there are too many.
    pub(super) fn add_connection(&mut self, stream: TcpStream, from: SocketAddr) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.waiting.len() >= MOST_WAITING {
            self.evict_connection();
        }
        let lines = Lines::new(LONGEST_BEFORE);
        self.waiting.push(Waiting { stream, from, since: Instant::now(), lines, greeted: None });
    }

    /// Evicts the oldest connection of the addresses with most of them. Ties are decided by age, so that no address is
    /// always the victim.
    pub(super) fn evict_connection(&mut self) {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        self.waiting.iter().for_each(|waiting| *counts.entry(waiting.counted_address()).or_default() += 1);
        let most = counts.values().max().copied().unwrap_or_default();
        if let Some(oldest) =
            self.waiting.iter().position(|waiting| counts[&waiting.counted_address()] == most)
        {
            self.waiting.remove(oldest);
        }
    }

    /// The sockets to wait for.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.waiting.iter().map(|waiting| waiting.stream.as_fd())
    }

    /// The addresses of waiting connections, the oldest first.
    #[cfg(test)]
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.waiting.iter().map(|waiting| waiting.from.ip())
    }

    /// Handles the connections that have data, by index, and drops those that have waited too long.
    pub(super) fn receive_proofs(&mut self, speaks: impl Fn(usize) -> bool, token: &Token) -> Vec<Proved> {
        let (mut staying, mut proved) = (Vec::new(), Vec::new());
        for (place, mut waiting) in self.waiting.drain(..).enumerate() {
            let fate = if speaks(place) { waiting.answer_lines(token) } else { Fate::Waits };
            match fate {
                Fate::Waits if waiting.since.elapsed() < PROOF_PATIENCE => staying.push(waiting),
                Fate::Proves(proof) => {
                    let Waiting { stream, from, lines, .. } = waiting;
                    proved.push(Proved { stream, from, lines, proof });
                }
                Fate::Waits | Fate::Goes => {}
            }
        }
        self.waiting = staying;
        proved
    }
}

impl Waiting {
    /// The address by which connections are counted: for IPv6 the /64 network, since one machine may have all its
    /// addresses.
    fn counted_address(&self) -> IpAddr {
        match self.from.ip().to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)).into(),
            address => address,
        }
    }

    /// Reads once and answers each complete line. Every failure gets the same answer.
    fn answer_lines(&mut self, token: &Token) -> Fate {
        match self.lines.read_once(&self.stream) {
            Err(NoMessage::Late) => return Fate::Waits,
            Err(_) => return Fate::Goes,
            Ok(()) => {}
        }
        loop {
            let fate = match (self.lines.take_message(), &self.greeted) {
                (Ok(None), _) => return Fate::Waits,
                (Ok(Some(Ask::Hello(hello))), None) => self.answer_hello(&hello),
                (Ok(Some(Ask::Proof(proof))), Some(nonces)) => check_proof(nonces.as_ref(), token, &proof),
                _ => None,
            };
            match fate {
                Some(Fate::Waits) => {}
                Some(fate) => return fate,
                None => {
                    self.send_answer(&Answer::Refused);
                    return Fate::Goes;
                }
            }
        }
    }

    /// Answers a hello of any version, so that a client of another version learns why it is refused.
    fn answer_hello(&mut self, theirs: &Hello) -> Option<Fate> {
        let own = generate_nonce().ok()?;
        self.greeted = Some(Nonces::read(&theirs.nonce, &own));
        Some(if self.send_answer(&Answer::Hello(Hello { version: VERSION, nonce: own })) {
            Fate::Waits
        } else {
            Fate::Goes
        })
    }

    /// Sends a line; whether all of it was written. A socket buffer that is too full for the first lines means that the
    /// client does not read.
    fn send_answer(&mut self, answer: &Answer) -> bool {
        let line = to_line(answer);
        self.stream.write(&line).is_ok_and(|went| went == line.len())
    }
}

/// Checks a proof. Without valid nonces it is checked against others, so that it takes as long.
fn check_proof(nonces: Option<&Nonces>, token: &Token, proof: &str) -> Option<Fate> {
    let nothing = Nonces::read(&"0".repeat(64), &"0".repeat(64))?;
    let over = nonces.unwrap_or(&nothing);
    let holds = over.is_valid_proof(End::Client, token, proof);
    (holds & nonces.is_some()).then(|| Fate::Proves(over.compute_proof(End::Server, token)))
}
