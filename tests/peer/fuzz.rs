//! Noise of all kinds at every door, while somebody is served. `SYSCOST_FUZZ_SECONDS` says for how long.

use crate::serves::{PROMPT, Serves};
use crate::stranger::RESIDENT_KIB;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use syscost::json_line::to_line;
use syscost::peer::client::Client;
use syscost::peer::control_protocol::{Answer, Ask, Hello, Open, Service, VERSION};

/// Who makes noise at the same time.
const FUZZERS: u64 = 4;

/// xorshift: the noise of a seed is always the same.
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

    /// The same with some bytes changed, left out, doubled or cut off.
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

fn an_ask(random: &mut Random) -> Ask {
    let service = SERVICES[random.below(SERVICES.len())];
    let bytes = [0, 1, 56, 1 << 20, u32::MAX, random.next() as u32][random.below(6)];
    let streams = [0, 1, 2, 16, u32::MAX][random.below(5)];
    match random.below(6) {
        0 => Ask::Count,
        1 => Ask::Proof("0".repeat(random.below(100))),
        2 => Ask::Hello(Hello { version: random.next() as u32, nonce: "a".repeat(random.below(100)) }),
        _ => Ask::Open(Open { service, bytes, streams }),
    }
}

/// A stranger: what he sends is like a conversation, or like nothing. He must not be told anything but a hello
/// and the refusal.
fn stranger(address: &str, random: &mut Random) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let hello = to_line(&Ask::Hello(Hello { version: VERSION, nonce: "a1".repeat(32) }));
    let text = match random.below(4) {
        0 => random.bytes(4_000),
        1 => [hello, random.mutated(to_line(&Ask::Proof("0".repeat(64))))].concat(),
        2 => [hello, to_line(&an_ask(random))].concat(),
        _ => random.mutated(hello),
    };
    for piece in text.chunks(1 + random.below(text.len() + 1)) {
        if stream.write_all(piece).is_err() {
            return;
        }
    }
    if random.below(3) == 0 {
        return; // and closes without having listened
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    for told in answer.split_inclusive(|byte| *byte == b'\n') {
        let told = serde_json::from_slice(told).expect("a whole line of the protocol");
        assert!(matches!(told, Answer::Hello(_) | Answer::Refused), "a stranger was told {told:?}");
    }
}

/// A client that has the token, and then asks what cannot be.
fn insider(serves: &Serves, random: &mut Random) {
    let Ok(client) = Client::connect(&serves.given()) else { return };
    for _ in 0..random.below(6) {
        let text = to_line(&an_ask(random));
        let text = if random.below(2) == 0 { random.mutated(text) } else { text };
        if client.stream().write_all(&text).is_err() {
            return;
        }
    }
}

/// Noise at the data doors: of an insider who was told where they are, without the secret and with it.
fn door(serves: &Serves, random: &mut Random) {
    let Ok(mut client) = Client::connect(&serves.given()) else { return };
    let service = SERVICES[random.below(SERVICES.len())];
    let bytes =
        if matches!(service, Service::Echo | Service::Reply | Service::DatagramEcho) { 56 } else { 0 };
    let Ok(way) = client.open_service(Open { service, bytes, streams: 1 }) else { return };
    let secret = way.secret.to_vec();
    if service == Service::DatagramEcho {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..20 {
            let noise = random.bytes(1_500);
            let packet = if random.below(2) == 0 { [&secret[..], &noise[..]].concat() } else { noise };
            let _ = socket.send_to(&packet, way.address);
        }
        return;
    }
    for _ in 0..3 {
        let Ok(mut stream) = TcpStream::connect_timeout(&way.address, Duration::from_secs(1)) else { return };
        let begin = match random.below(3) {
            0 => secret.clone(),
            1 => random.mutated(secret.clone()),
            _ => random.bytes(40),
        };
        let noise = random.bytes(3_000);
        let _ = stream.write_all(&begin).and_then(|()| stream.write_all(&noise));
    }
}

/// Somebody who behaves, and must be served all the time.
fn served(serves: &Serves) {
    let mut client = serves.call();
    let mut stream =
        client.open_streams(Open { service: Service::Echo, bytes: 56, streams: 1 }).unwrap().remove(0);
    let (mut back, message) = ([0; 56], [7; 56]);
    for _ in 0..10 {
        stream.write_all(&message).unwrap();
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, message);
    }
    assert_eq!(client.request_counts().unwrap().messages, 10);
}

#[test]
fn whoever_behaves_is_served_whatever_others_send() {
    let seconds = std::env::var("SYSCOST_FUZZ_SECONDS").map_or(2, |text| text.parse().unwrap());
    let serves = Serves::with(&["--clients", "32"]);
    let end = AtomicBool::new(false);
    let noises = AtomicU64::new(0);
    let begun = Instant::now();
    let (mut visits, mut most, mut slowest) = (0, 0, Duration::ZERO);
    std::thread::scope(|scope| {
        for seed in 1..=FUZZERS {
            let (serves, end, noises) = (&serves, &end, &noises);
            scope.spawn(move || {
                let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                while !end.load(Relaxed) {
                    match random.below(8) {
                        0 => door(serves, &mut random),
                        1 | 2 => insider(serves, &mut random),
                        _ => stranger(&serves.address, &mut random),
                    }
                    noises.fetch_add(1, Relaxed);
                }
            });
        }
        // Whatever happens here, the others must hear of it.
        let visiting = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while begun.elapsed() < Duration::from_secs(seconds) {
                let visit = Instant::now();
                served(&serves);
                slowest = slowest.max(visit.elapsed());
                visits += 1;
                most = most.max(serves.status("VmRSS"));
            }
        }));
        end.store(true, Relaxed);
        visiting.unwrap();
    });
    let noises = noises.load(Relaxed);
    println!(
        "{seconds} s: {noises} noises, {visits} visits, the slowest {slowest:?}; {most} KiB resident at most"
    );
    assert!(most < RESIDENT_KIB && visits > 0 && noises > 0, "{most} KiB");
    // What the noise has left is gone: the listener and the standard streams remain.
    let begun = Instant::now();
    let left = || (serves.status("Threads"), serves.descriptors());
    while left().0 > 2 || left().1 > 8 {
        assert!(begun.elapsed() < PROMPT, "(threads, descriptors) {:?}", left());
        std::thread::sleep(Duration::from_millis(50));
    }
    let (well, took) = serves.interrupt();
    assert!(well && took < PROMPT, "{took:?}");
}
