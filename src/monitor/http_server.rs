//! Gives the page to whoever asks by HTTP: `GET /metrics`, one answer a connection.
//!
//! One thread holds all connections and waits for none of them: how many there are, how long a request may be and how
//! long one may take over it are bounded, whatever comes in.

use crate::{Error, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Connections at a time. With one more the oldest must go: who is slow must not keep others out.
const MOST: usize = 32;
/// Bytes of a request, its headers included: Prometheus sends some 300.
const LONGEST: usize = 8 << 10;
/// Headers of a request.
const HEADERS: usize = 64;
/// From the first moment of a connection to its last.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether to end.
const GLANCE: Duration = Duration::from_millis(100);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// What is given to who asks for `/metrics`.
#[derive(Debug)]
pub struct Page {
    /// The header `Content-Type`.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
}

struct Client {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
}

/// What becomes of a connection after a look at it.
#[derive(PartialEq)]
enum Fate {
    Stays,
    Goes,
}

impl Server {
    /// Listens at this address; beyond the loopback interface only where that was asked for.
    ///
    /// # Errors
    /// The address is not to be had, or others can reach it and nobody asked for that.
    pub fn bind(at: SocketAddr, public: bool) -> Result<Self> {
        if !public && !at.ip().to_canonical().is_loopback() {
            return Err(Error::Usage(format!(
                "{at}: others can reach it there, and whoever does can read this machine's counters: listen at \
                 127.0.0.1, or say --public"
            )));
        }
        let refused = |cause| Error::Kernel { call: format!("listening at {at}"), cause };
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is to end. `page` is asked with the request's header `Accept`; where it has no page the
    /// answer is that sentence.
    pub fn serve(
        &self,
        is_to_end: impl Fn() -> bool,
        mut page: impl FnMut(&str) -> std::result::Result<Page, String>,
    ) {
        let mut clients: Vec<Client> = Vec::new();
        while !is_to_end() {
            let spoke = self.wait(&clients);
            let mut places = spoke.iter().skip(1);
            clients.retain_mut(|client| {
                let is_ready = places.next().copied().unwrap_or(false);
                let fate = if is_ready { client.step(&mut page) } else { Fate::Stays };
                fate == Fate::Stays && client.since.elapsed() < PATIENCE
            });
            if spoke[0] {
                self.accept(&mut clients);
            }
        }
    }

    /// Waits for a moment, and says who is ready: the listener first, then the clients.
    fn wait(&self, clients: &[Client]) -> Vec<bool> {
        let ways = clients.iter().map(|client| (client.stream.as_fd(), client.waits_for()));
        let all = std::iter::once((self.listener.as_fd(), PollFlags::POLLIN)).chain(ways);
        let mut asked: Vec<_> = all.map(|(socket, flags)| PollFd::new(socket, flags)).collect();
        // A signal is looked for by who called.
        let _ = poll(&mut asked, PollTimeout::try_from(GLANCE).unwrap_or(PollTimeout::ZERO));
        asked.iter().map(|one| one.any().unwrap_or(false)).collect()
    }

    fn accept(&self, clients: &mut Vec<Client>) {
        for _ in 0..MOST {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if clients.len() >= MOST {
                        clients.remove(0);
                    }
                    clients.extend(Client::new(stream));
                }
                // Without descriptors the waiting connection stays, and would wake this loop at once again.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    clients.clear();
                    std::thread::sleep(GLANCE);
                    return;
                }
                Err(_) => return,
            }
        }
    }
}

impl Client {
    fn new(stream: TcpStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, since: Instant::now(), request: Vec::new(), answer: Vec::new(), sent: 0 })
    }

    fn waits_for(&self) -> PollFlags {
        if self.sent < self.answer.len() { PollFlags::POLLOUT } else { PollFlags::POLLIN }
    }

    fn step(&mut self, page: &mut impl FnMut(&str) -> std::result::Result<Page, String>) -> Fate {
        if self.answer.is_empty() {
            match self.hear() {
                Fate::Goes => return Fate::Goes,
                Fate::Stays => self.answer = answer(&self.request, page).unwrap_or_default(),
            }
        }
        if self.sent < self.answer.len() { self.say() } else { self.see_off() }
    }

    /// Takes in what has come.
    fn hear(&mut self) -> Fate {
        let mut some = [0; 2048];
        match self.stream.read(&mut some) {
            Ok(0) => Fate::Goes,
            Ok(length) => {
                self.request.extend_from_slice(&some[..length]);
                Fate::Stays
            }
            Err(error) if is_for_now(&error) => Fate::Stays,
            Err(_) => Fate::Goes,
        }
    }

    fn say(&mut self) -> Fate {
        match self.stream.write(&self.answer[self.sent..]) {
            Ok(length) => self.sent += length,
            Err(error) if is_for_now(&error) => {}
            Err(_) => return Fate::Goes,
        }
        if self.sent == self.answer.len() && !self.answer.is_empty() {
            // It is read on until the other end closes: closing on bytes that were not read would reset the
            // connection, and the answer with it.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        Fate::Stays
    }

    /// Reads what still comes, and forgets it.
    fn see_off(&mut self) -> Fate {
        if self.answer.is_empty() {
            return Fate::Stays; // the request is not whole yet
        }
        match self.stream.read(&mut [0; 2048]) {
            Ok(length) if length > 0 => Fate::Stays,
            Err(error) if is_for_now(&error) => Fate::Stays,
            _ => Fate::Goes,
        }
    }
}

fn is_for_now(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The answer to a request; nothing while it is not whole.
fn answer(
    request: &[u8],
    page: &mut impl FnMut(&str) -> std::result::Result<Page, String>,
) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    match head.parse(request) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if request.len() < LONGEST => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(refusal("431 Request Header Fields Too Large", ""));
        }
        Err(_) => return Some(refusal("400 Bad Request", "")),
    }
    let body = head.method != Some("HEAD");
    if !matches!(head.method, Some("GET" | "HEAD")) {
        return Some(refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n"));
    }
    let path = head.path.unwrap_or_default();
    if path.split('?').next() != Some("/metrics") {
        return Some(refusal("404 Not Found: it is at /metrics", ""));
    }
    let accepts = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let accept: Vec<_> = accepts.map(|header| String::from_utf8_lossy(header.value)).collect();
    Some(match page(&accept.join(",")) {
        Ok(page) => whole("200 OK", "", page.content_type, &page.body, body),
        Err(why) => whole("503 Service Unavailable", "", PLAIN, &(why + "\n"), body),
    })
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn refusal(status: &str, headers: &str) -> Vec<u8> {
    let (line, _) = status.split_once(':').unwrap_or((status, ""));
    whole(line, headers, PLAIN, &format!("{status}\n"), true)
}

fn whole(status: &str, headers: &str, content_type: &str, text: &str, body: bool) -> Vec<u8> {
    let length = text.len();
    let body = if body { text } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{headers}\
         Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests;
