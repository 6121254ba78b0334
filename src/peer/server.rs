//! The server of `syscost peer`.
//!
//! One thread listens and authenticates connections (`lobby`). Each authenticated client has a thread, and another one
//! for each of its data sockets (`service`, `data`), so that a measured message is answered by a thread that waits in
//! one call. The number of all these is limited ([`Limits`]).

mod client_session;
mod data;
mod lobby;
mod threshold;

use super::control_protocol::{
    Answer, GLANCE, LONGEST, Limits, MOST_WAITING, PROOF_PATIENCE, READ_PATIENCE, STACK, Talk,
};
use super::proof::Token;
use crate::error::{Error, Result};
use crate::platform::socket_handle::shut_down;
use client_session::Session;
use lobby::{Lobby, Proved};
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use threshold::{PAUSE, accept_all, wait_until_readable};

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    limits: Limits,
}

/// An open session.
/// The clients that have proved themselves and wait, each with the moment since when.
type Queue = VecDeque<(Instant, Proved)>;

struct Open {
    stream: TcpStream,
    thread: JoinHandle<()>,
}

impl Server {
    /// Listens at an address. Outside of the loopback interface it requires a token.
    ///
    /// # Errors
    /// [`Error::Peer`]: a token is required, or the address cannot be used.
    pub fn bind(at: SocketAddr, token: Option<Token>, limits: Limits) -> Result<Self> {
        let refused = |cause| Error::peer(at.to_string(), format!("it cannot listen there: {cause}"));
        if token.is_none() && !at.ip().to_canonical().is_loopback() {
            let what = "other hosts could use it there: it listens at this address with a token only";
            return Err(Error::peer(at.to_string(), what));
        }
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address, token: token.unwrap_or_else(Token::empty), limits })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `is_to_end`, and reports each new client by `tell`. Open sessions get a line that says so.
    ///
    /// # Errors
    /// [`Error::Peer`]: the socket no longer accepts connections.
    pub fn serve(&self, is_to_end: impl Fn() -> bool, tell: impl Fn(&str)) -> Result<()> {
        let ending = Arc::new(AtomicBool::new(false));
        let (mut lobby, mut open, mut queue) = (Lobby::default(), Vec::new(), VecDeque::new());
        let mut ended = Ok(());
        while ended.is_ok() && !is_to_end() {
            ended = self.handle_arrivals(&mut lobby).map(|proved| {
                proved.iter().for_each(|proved| tell(&format!("{} has proved itself", proved.from)));
                queue.extend(proved.into_iter().map(|proved| (Instant::now(), proved)));
                // Drops the handles of threads that have ended.
                open.retain(|open: &Open| !open.thread.is_finished());
                self.admit_clients(&mut queue, &mut open, &ending);
            });
        }
        ending.store(true, Ordering::SeqCst);
        // Sessions send their last line within this time; then their connections are shut down.
        std::thread::sleep(if open.is_empty() { Duration::ZERO } else { 2 * GLANCE });
        open.iter().for_each(|open| shut_down(&open.stream));
        open.into_iter().for_each(|open| _ = open.thread.join());
        ended
    }

    /// Waits for a short time and handles what has arrived; the connections that have authenticated.
    fn handle_arrivals(&self, lobby: &mut Lobby) -> Result<Vec<Proved>> {
        let spoke =
            wait_until_readable(std::iter::once(self.listener.as_fd()).chain(lobby.descriptors()), GLANCE);
        let proved = lobby.receive_proofs(|place| spoke[place + 1], &self.token);
        if spoke[0] {
            self.accept_waiting(lobby)?;
        }
        Ok(proved)
    }

    fn accept_waiting(&self, lobby: &mut Lobby) -> Result<()> {
        // Limited, so that waiting connections are handled in between.
        let ran_out =
            accept_all(&self.listener, MOST_WAITING / 4, |stream, from| lobby.add_connection(stream, from));
        let over = |cause| Error::peer(self.address.to_string(), format!("accept: {cause}"));
        if ran_out.map_err(over)? {
            lobby.evict_connection();
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Begins sessions as far as the limit of clients allows. A session may be about to end, so that a client over the
    /// limit waits a while before it is refused. At most as many clients wait as may be served.
    fn admit_clients(&self, queue: &mut Queue, open: &mut Vec<Open>, ending: &Arc<AtomicBool>) {
        let clients = self.limits.clients;
        while let Some((since, _)) = queue.front() {
            if open.len() >= clients && since.elapsed() < PROOF_PATIENCE && queue.len() <= clients {
                break;
            }
            let Some((_, proved)) = queue.pop_front() else { break };
            open.extend(self.begin_session(proved, open.len(), ending));
        }
    }

    /// Begins a session; `None` if the limit of clients is reached or the thread cannot be started.
    fn begin_session(&self, proved: Proved, there_are: usize, ending: &Arc<AtomicBool>) -> Option<Open> {
        let Proved { stream, from: client, lines, proof } = proved;
        let (own, copy) = (stream.local_addr().ok()?, stream.try_clone().ok()?);
        let mut talk = Talk::from_stream(stream, lines.with_limit(LONGEST), READ_PATIENCE).ok()?;
        let limits = self.limits;
        if there_are >= limits.clients {
            let sentence = format!(
                "it serves as many clients as it may ({there_are}): wait, or raise `--clients` there"
            );
            let _ = talk.send(&Answer::Ended(sentence));
            return None;
        }
        let ending = Arc::clone(ending);
        let life = move || Session { talk, own, client, limits, ending: &ending }.run(proof);
        let builder = std::thread::Builder::new().name("peer session".into()).stack_size(STACK);
        Some(Open { stream: copy, thread: builder.spawn(life).ok()? })
    }
}

#[cfg(test)]
mod tests;
