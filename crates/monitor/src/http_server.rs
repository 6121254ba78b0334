//! An HTTP server of two pages, `GET /metrics` and `GET /events`, which gives one answer per connection.
//!
//! One thread handles all connections without blocking. The number of connections, the length of a request and the
//! duration of a connection are limited.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use syscost_platform::error::{Error, Result};

/// The maximum number of simultaneous connections. A further one closes the oldest, so that slow clients do not exclude
/// others.
const MOST: usize = 32;
/// The longest request with its headers, bytes; Prometheus sends some 300.
const LONGEST: usize = 8 << 10;
/// The maximum number of headers in a request.
const HEADERS: usize = 64;
/// The longest duration of a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// The paths that it serves.
pub const METRICS: &str = "/metrics";
pub const EVENTS: &str = "/events";
/// The period at which the server tests whether to end.
const GLANCE: Duration = Duration::from_millis(100);

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// The answer to a request of a path.
#[derive(Debug)]
pub struct Page {
    /// The header `Content-Type`.
    pub content_type: &'static str,
    /// The text of the page.
    pub body: String,
}

struct Client {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
}

impl Server {
    /// Listens at an address; outside of the loopback interface only if `public`.
    ///
    /// # Errors
    /// [`Error::Usage`] for a public address without `public`; [`Error::Kernel`] where the address cannot be used.
    pub fn bind(at: SocketAddr, public: bool) -> Result<Self> {
        if !public && !at.ip().to_canonical().is_loopback() {
            return Err(Error::Usage(format!(
                "{at}: other hosts can reach this address and read this machine's counters: listen at 127.0.0.1, or \
                 say --public"
            )));
        }
        let refused = |cause| Error::Kernel { call: format!("listening at {at}"), cause };
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `is_to_end` returns true. `page` is called with the path and the header `Accept` of a request; its error
    /// is sent as the answer.
    pub fn serve(
        &self,
        is_to_end: impl Fn() -> bool,
        mut page: impl FnMut(&str, &str) -> std::result::Result<Page, String>,
    ) {
        let mut clients: Vec<Client> = Vec::new();
        while !is_to_end() {
            let spoke = self.wait_for_sockets(&clients);
            let mut places = spoke.iter().skip(1);
            clients.retain_mut(|client| {
                let is_ready = places.next().copied().unwrap_or(false);
                (!is_ready || client.handle_io(&mut page)) && client.since.elapsed() < PATIENCE
            });
            if spoke[0] {
                self.accept_clients(&mut clients);
            }
        }
    }

    /// Waits for a short time, and returns which sockets are ready: the listener first, then the clients.
    fn wait_for_sockets(&self, clients: &[Client]) -> Vec<bool> {
        let ways = clients.iter().map(|client| (client.stream.as_fd(), client.poll_flags()));
        let all = std::iter::once((self.listener.as_fd(), PollFlags::POLLIN)).chain(ways);
        let mut asked: Vec<_> = all.map(|(socket, flags)| PollFd::new(socket, flags)).collect();
        // A signal may interrupt the wait; the caller tests for it.
        let _ = poll(&mut asked, PollTimeout::try_from(GLANCE).unwrap_or(PollTimeout::ZERO));
        asked.iter().map(|one| one.any().unwrap_or(false)).collect()
    }

    fn accept_clients(&self, clients: &mut Vec<Client>) {
        for _ in 0..MOST {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if clients.len() >= MOST {
                        clients.remove(0);
                    }
                    clients.extend(Client::new(stream));
                }
                // Without free descriptors the connection stays in the queue, and would wake this loop at once.
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

    fn poll_flags(&self) -> PollFlags {
        if self.sent < self.answer.len() { PollFlags::POLLOUT } else { PollFlags::POLLIN }
    }

    /// Reads or writes as the socket is ready, and returns whether to keep the connection.
    fn handle_io(&mut self, page: &mut impl FnMut(&str, &str) -> std::result::Result<Page, String>) -> bool {
        if self.answer.is_empty() {
            if !self.read_request() {
                return false;
            }
            self.answer = answer_request(&self.request, page).unwrap_or_default();
        }
        if self.sent < self.answer.len() { self.write_answer() } else { self.drain_until_closed() }
    }

    /// Reads a part of the request, and returns whether to keep the connection.
    fn read_request(&mut self) -> bool {
        let mut some = [0; 2048];
        let read = self.stream.read(&mut some);
        self.request.extend_from_slice(&some[..*read.as_ref().unwrap_or(&0)]);
        is_still_open(read)
    }

    fn write_answer(&mut self) -> bool {
        match self.stream.write(&self.answer[self.sent..]) {
            Ok(length) => self.sent += length,
            failed => return is_still_open(failed),
        }
        if self.sent == self.answer.len() && !self.answer.is_empty() {
            // Closing a socket with unread bytes would reset the connection and lose the answer. So it is read until the
            // other end closes.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        true
    }

    /// Reads and discards until the other end closes; returns whether to keep the connection. Without an answer the request
    /// is incomplete.
    fn drain_until_closed(&mut self) -> bool {
        self.answer.is_empty() || is_still_open(self.stream.read(&mut [0; 2048]))
    }
}

/// Whether the other end is still open: bytes were read, or may arrive later.
fn is_still_open(came: std::io::Result<usize>) -> bool {
    came.map_or_else(
        |error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        |length| length > 0,
    )
}

/// The answer to a request; `None` while it is incomplete.
fn answer_request(
    request: &[u8],
    page: &mut impl FnMut(&str, &str) -> std::result::Result<Page, String>,
) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    match head.parse(request) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if request.len() < LONGEST => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(error_response("431 Request Header Fields Too Large", ""));
        }
        Err(_) => return Some(error_response("400 Bad Request", "")),
    }
    let body = head.method != Some("HEAD");
    if !matches!(head.method, Some("GET" | "HEAD")) {
        return Some(error_response("405 Method Not Allowed", "Allow: GET, HEAD\r\n"));
    }
    let path = head.path.unwrap_or_default().split('?').next().unwrap_or_default();
    if ![METRICS, EVENTS].contains(&path) {
        return Some(error_response("404 Not Found: there are /metrics and /events", ""));
    }
    let accepts = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let accept: Vec<_> = accepts.map(|header| String::from_utf8_lossy(header.value)).collect();
    Some(match page(path, &accept.join(",")) {
        Ok(page) => build_response("200 OK", "", page.content_type, &page.body, body),
        Err(why) => build_response("503 Service Unavailable", "", PLAIN, &(why + "\n"), body),
    })
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn error_response(status: &str, headers: &str) -> Vec<u8> {
    let (line, _) = status.split_once(':').unwrap_or((status, ""));
    build_response(line, headers, PLAIN, &format!("{status}\n"), true)
}

fn build_response(status: &str, headers: &str, content_type: &str, text: &str, body: bool) -> Vec<u8> {
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
