//! Requests to a small web server of the suite, all over one connection or each over a new one.

use crate::kit::contract::*;
use crate::kit::placement::{NOT_THE_MESSAGE, Placement};
use crate::kit::round_trip::{Exchange, both_left_cpu};
use crate::kit::socket::LOOPBACK;
use crate::kit::socket::connection::{Address, End, Family, Listeners, accept, open_stream_socket};
use crate::kit::socket::set_option;
use crate::kit::socket::transfer::{receive, send_whole};
use crate::platform::partner::{Class, Kind, Partner};

/// Bytes of a page, after the header. It begins with the path of the request.
const PAGE: usize = 1 << 10;
/// The digits of a path: the number of the request.
const DIGITS: usize = 10;
/// The offset of the path in a request, bytes.
const PATH: usize = "GET /".len();
/// The longest request or header.
const LONGEST: usize = 256;
const END_OF_HEADER: &[u8] = b"\r\n\r\n";

pub(super) fn http_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for placement in [Placement::Same, Placement::Cross] {
        cases.extend([true, false].map(|keeps| http_case(keeps, placement)));
    }
    cases
}

fn http_case(keeps: bool, placement: Placement) -> Case {
    let (name, over) =
        if keeps { ("keep-alive", "one connection") } else { ("connection", "a connection of its own") };
    let title = format!("a page of 1 KiB asked for by HTTP over {over}, {}", placement.title());
    let case = Case::new(
        format!("http-{name}-{}/1KiB", placement.name()),
        title,
        request_set_up(placement, keeps, |page, path| page[..DIGITS].copy_from_slice(path)),
    );
    let case = placement.add_needs(case).need(LOOPBACK);
    let is_default = placement == Placement::Same;
    let case = if is_default { case.claim(Claim::Counted(both_left_cpu)) } else { case.need(FULL_SCALE) };
    let connection = if keeps { 0.0 } else { 50_000.0 };
    let wakes = if is_default { 0.0 } else { 60_000.0 };
    case.derived_figure("rate", Rule::Rate)
        .claim(Claim::Checked("every page is whole, begins with the path that was asked for, and names the process that was started"))
        .predict(2_000.0 + wakes, 18_000.0 + connection, "a round trip by TCP, and two texts read; a connection where it has its own")
}

/// Receives into `text` until it holds a whole header and `more` bytes after it. Returns the length received, 0 at the end of
/// the stream, or a negative error number.
fn receive_text(end: i32, text: &mut [u8], more: usize) -> i64 {
    let mut length = 0;
    loop {
        let header = text[..length].windows(END_OF_HEADER.len()).position(|window| window == END_OF_HEADER);
        if header.is_some_and(|at| length >= at + END_OF_HEADER.len() + more) {
            return length as i64;
        }
        match receive(end, &mut text[length..], 0) {
            0 if length == 0 => return 0,
            0 => return -i64::from(libc::EPIPE),
            refused if refused < 0 => return refused,
            bytes => length += bytes as usize,
        }
    }
}

/// The server. It serves one connection at a time.
struct Server<F> {
    listeners: Listeners,
    connection: Option<End>,
    answer: Vec<u8>,
    /// Length of the answer's header.
    header: usize,
    keeps: bool,
    /// Writes the page (first argument) for the path of a request (second argument).
    write_page: F,
    request: [u8; LONGEST],
}

fn header_text(process: u32) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {PAGE}\r\nServer: syscost {process:010}\r\n\r\n")
}

impl<F: FnMut(&mut [u8], &[u8])> Server<F> {
    fn new(listeners: Listeners, keeps: bool, write_page: F) -> Self {
        let header = header_text(0).len();
        let mut answer = header_text(0).into_bytes();
        answer.resize(header + PAGE, b'x');
        Self { listeners, connection: None, answer, header, keeps, write_page, request: [0; LONGEST] }
    }

    /// Accepts a connection, or answers a request. Returns 0, or a negative error number. Allocates no memory.
    fn step(&mut self) -> i64 {
        let Some(connection) = &self.connection else {
            return match accept(self.listeners.first_descriptor()) {
                Ok(accepted) => {
                    let set = set_option(accepted.raw_descriptor(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
                    self.connection = Some(accepted);
                    set.map_or_else(|errno| -i64::from(errno as i32), |()| 0)
                }
                Err(refused) => refused,
            };
        };
        let end = connection.raw_descriptor();
        let length = receive_text(end, &mut self.request, 0);
        if length <= 0 {
            self.connection = None;
            return length;
        }
        if !self.request.starts_with(b"GET /") {
            return NOT_THE_MESSAGE;
        }
        write_digits(
            &mut self.answer[self.header - DIGITS - END_OF_HEADER.len()..],
            u64::from(std::process::id()),
        );
        (self.write_page)(&mut self.answer[self.header..], &self.request[PATH..][..DIGITS]);
        let sent = send_whole(end, &self.answer);
        if !self.keeps {
            self.connection = None;
        }
        sent.min(0)
    }
}

fn write_digits(text: &mut [u8], mut number: u64) {
    for digit in text[..DIGITS].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The measuring end.
struct Client {
    address: Address,
    connection: Option<End>,
    keeps: bool,
    request: Vec<u8>,
    /// The answer that the server must send, and the answer that it sent.
    expected: Vec<u8>,
    answer: Vec<u8>,
    number: u64,
}

/// Requests to a server that writes each page by `write_page`.
pub fn request_set_up(
    placement: Placement,
    keeps: bool,
    write_page: impl Fn(&mut [u8], &[u8]) + Copy + Send + 'static,
) -> SetUp {
    set_up(move |place| {
        let (mut client, server) = start(place, placement, keeps, write_page)?;
        Exchange::new("http", vec![server], 1, move || client.request_page())
    })
}

fn start(
    place: &Place,
    placement: Placement,
    keeps: bool,
    write_page: impl Fn(&mut [u8], &[u8]) + Send + 'static,
) -> Result<(Client, Partner)> {
    /// The backlog of the listener: one connection.
    const QUEUE: u32 = 1;
    let listeners = Listeners::open_one(Family::Tcp, QUEUE)?;
    let address = *listeners.address();
    let mut server = Server::new(listeners, keeps, write_page);
    let at = (placement.partner_cpu(place)?, Class::Ordinary);
    let partner = Partner::start(Kind::Process, at, move || server.step(), || ())?;
    let mut expected = header_text(partner.task().process.as_raw() as u32).into_bytes();
    expected.resize(expected.len() + PAGE, b'x');
    let client = Client {
        address,
        connection: None,
        keeps,
        request: b"GET /0000000000 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        answer: vec![0; expected.len()],
        expected,
        number: 0,
    };
    Ok((client, partner))
}

impl Client {
    fn connect(&self) -> std::result::Result<End, i64> {
        let end = open_stream_socket(&self.address)?;
        let connected = end.connect(&self.address);
        ensure(connected >= 0, || connected)?;
        // With this option a request is sent at once, as one packet.
        match set_option(end.raw_descriptor(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1) {
            Ok(()) => Ok(end),
            Err(errno) => Err(-i64::from(errno as i32)),
        }
    }

    /// Makes one request and checks the answer. Returns 0, or a negative error number.
    fn request_page(&mut self) -> i64 {
        self.number += 1;
        write_digits(&mut self.request[PATH..], self.number);
        let end = match self.connection.take().map_or_else(|| self.connect(), Ok) {
            Ok(end) => end,
            Err(refused) => return refused,
        };
        let sent = send_whole(end.raw_descriptor(), &self.request);
        if sent < 0 {
            return sent;
        }
        let length = receive_text(end.raw_descriptor(), &mut self.answer, PAGE);
        self.connection = self.keeps.then_some(end);
        let page = self.expected.len() - PAGE;
        write_digits(&mut self.expected[page..], self.number);
        match length {
            refused if refused < 0 => refused,
            length if length as usize == self.expected.len() && self.answer == self.expected => 0,
            _ => NOT_THE_MESSAGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_place;

    #[test]
    fn a_wrong_page_or_a_wrong_server_is_rejected() {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        let copies = |page: &mut [u8], path: &[u8]| page[..DIGITS].copy_from_slice(path);
        let (mut client, _server) = start(&place, Placement::Same, true, copies).unwrap();
        assert_eq!(client.request_page(), 0);
        client.expected[header_text(0).len() - END_OF_HEADER.len() - 1] ^= 1;
        assert_eq!(client.request_page(), NOT_THE_MESSAGE);
    }
}
