//! Random input of all kinds to the control and to the data ports, for `SYSCOST_FUZZ_SECONDS` seconds.

use crate::serves::{SYSCOST, wait_until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use syscost::json_line::to_line;
use syscost::peer::control_protocol::{Answer, Ask, Open, Opened, Service};

/// A xorshift generator: the same seed gives the same numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }

    /// `text` with some bytes changed, left out, doubled or cut off.
    fn mutated(&mut self, mut text: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.below(4) {
            let at = self.below(text.len().max(1)).min(text.len().saturating_sub(1));
            match self.below(6) {
                _ if text.is_empty() => text = self.bytes(40),
                0 => text[at] = self.next() as u8,
                1 => _ = text.remove(at),
                2 => text.truncate(at),
                3 => text.extend_from_within(at..),
                4 => text
                    .splice(at..at, b"[[[[[[[[{{{{{\"\"99999999999999999999e999".iter().copied())
                    .for_each(drop),
                _ => text[at] ^= 1 << self.below(8),
            }
        }
        text
    }
}

const SERVICES: [Service; 5] =
    [Service::Echo, Service::Reply, Service::DatagramEcho, Service::Sink, Service::Greeter];

fn random_request(random: &mut Random) -> Ask {
    let service = SERVICES[random.below(SERVICES.len())];
    let bytes = [0, 1, 56, 1 << 20, u32::MAX, random.next() as u32][random.below(6)];
    let streams = [0, 1, 2, 16, u32::MAX][random.below(5)];
    if random.below(4) == 0 { Ask::Count } else { Ask::Open(Open { service, bytes, streams }) }
}

/// A peer whose first stream is connected, driven directly and not through a client.
struct Met {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Met {
    fn new() -> Self {
        let mut command = Command::new(SYSCOST);
        let pipes = command.arg("peer").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let (asks, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut met = Self { child, asks, answers: BufReader::new(answers) };
        assert!(matches!(met.answer(), Some(Answer::Hello(_))));
        let opened = met.opened().unwrap();
        connect(&opened).write_all(&opened.secret).unwrap();
        assert_eq!(met.answer(), Some(Answer::Ready));
        assert!(matches!(met.answer(), Some(Answer::Welcome(_))));
        met
    }

    fn answer(&mut self) -> Option<Answer> {
        let mut line = Vec::new();
        self.answers.read_until(b'\n', &mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_slice(&line).expect("a whole line of the protocol"))
    }

    fn opened(&mut self) -> Option<Opened> {
        let Some(Answer::Opened(opened)) = self.answer() else { return None };
        Some(opened)
    }

    /// Closes the peer's input. The peer must exit with success, and must have written only lines of the protocol.
    fn end(mut self) {
        drop(self.asks);
        let mut rest = Vec::new();
        self.answers.read_to_end(&mut rest).unwrap();
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            serde_json::from_slice::<Answer>(line).expect("a whole line of the protocol");
        }
        wait_until("the end of a peer", || self.child.try_wait().unwrap().is_some());
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}

fn connect(opened: &Opened) -> TcpStream {
    TcpStream::connect(("127.0.0.1", opened.port)).unwrap()
}

/// Sends invalid requests.
fn ask_noise(met: &mut Met, random: &mut Random) {
    for _ in 0..random.below(6) {
        let text = to_line(&random_request(random));
        let text = if random.below(2) == 0 { random.mutated(text) } else { text };
        if met.asks.write_all(&text).is_err() {
            return;
        }
    }
}

/// Sends random bytes to a data port, with and without the secret.
fn send_noise(met: &mut Met, random: &mut Random) {
    let service = SERVICES[random.below(SERVICES.len())];
    let bytes =
        if matches!(service, Service::Echo | Service::Reply | Service::DatagramEcho) { 56 } else { 0 };
    met.asks.write_all(&to_line(&Ask::Open(Open { service, bytes, streams: 1 }))).unwrap();
    let opened = met.opened().unwrap();
    let secret = opened.secret.to_vec();
    if service == Service::DatagramEcho {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..20 {
            let noise = random.bytes(1_500);
            let packet = if random.below(2) == 0 { [&secret[..], &noise[..]].concat() } else { noise };
            let _ = socket.send_to(&packet, ("127.0.0.1", opened.port));
        }
        return;
    }
    for _ in 0..3 {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", opened.port)) else { return };
        let begin = match random.below(3) {
            0 => secret.clone(),
            1 => random.mutated(secret.clone()),
            _ => random.bytes(40),
        };
        let noise = random.bytes(3_000);
        let _ = stream.write_all(&begin).and_then(|()| stream.write_all(&noise));
    }
}

#[test]
fn the_peer_answers_random_input_in_its_protocol_and_ends() {
    let seconds = std::env::var("SYSCOST_FUZZ_SECONDS").map_or(2, |text| text.parse().unwrap());
    let (begun, mut noises) = (Instant::now(), 0);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let mut met = Met::new();
        if random.below(2) == 0 {
            ask_noise(&mut met, &mut random)
        } else {
            send_noise(&mut met, &mut random)
        }
        met.end();
        noises += 1;
    }
    println!("{seconds} s: {noises} peers that heard noise");
}
