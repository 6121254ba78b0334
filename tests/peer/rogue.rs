//! Peers that are not what they should be: they die, stall, lie, or speak another version. What is measured
//! against one ends in a sentence that names it, and no number is kept.

use crate::place::{Place, Wire};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use syscost::environment::Station;
use syscost::json_line::Lines;
use syscost::peer::control_protocol::Talk;
use syscost::peer::control_protocol::{
    Answer, Ask, Counted, Hello, LONGEST, Open, Opened, SECRET_BYTES, Service, VERSION, Welcome,
};
use syscost::peer::proof::Token;
use syscost::peer::proof::to_hex;
use syscost::peer::proof::{End, Nonces, generate_nonce};

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Vice {
    Dies,
    Stalls,
    Miscounts,
    AnswersLess,
    ChangesWhatItEchoes,
    AnotherVersion,
    KnowsNoToken,
    SaysNothing,
    IsSomethingElse,
    NamesItselfAtWill,
}
use Vice::*;

/// Each of them, a case, and what must be said of it.
const VICES: [(Vice, &str, &str); 10] = [
    (Dies, "socket_round_trip/tcp-peer/56B", "it has died, or was stopped"),
    (Stalls, "socket_round_trip/tcp-peer/56B", "it has not answered for"),
    (Miscounts, "socket_round_trip/tcp-peer/56B", "it miscounts"),
    (AnswersLess, "socket_bandwidth/tcp-peer/64KiB", "it lies, or they were lost"),
    (ChangesWhatItEchoes, "socket_round_trip/tcp-peer/56B", "it answered something else than it was sent"),
    (AnotherVersion, "socket_round_trip/tcp-peer/56B", "run the same syscost at both ends"),
    (KnowsNoToken, "socket_round_trip/tcp-peer/56B", "it did not prove that it has the token"),
    (SaysNothing, "socket_connect/connect/tcp-peer", "it has not answered for 10 s"),
    (
        IsSomethingElse,
        "socket_round_trip/tcp-peer/56B",
        "it sent `220 mail.example.org ESMTP`, where the protocol has another message",
    ),
    (NamesItselfAtWill, "socket_round_trip/tcp-peer/56B", "nothing that syscost says"),
];

/// How many messages one behaves for, before it does not.
const GOOD: u64 = 3;

impl Vice {
    /// Serves whoever comes, as badly as it does, for as long as the test lives.
    fn listens(self, at: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind(at).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || self.serves(stream));
            }
        });
        address
    }

    /// Nothing if the client has gone.
    fn serves(self, mut stream: TcpStream) -> Option<()> {
        let patience = Duration::from_secs(30);
        if self == IsSomethingElse {
            return stream.write_all(b"220 mail.example.org ESMTP\r\n").ok();
        }
        let own = stream.local_addr().ok()?;
        let mut talk = Talk::from_stream(stream, Lines::new(LONGEST), patience).ok()?;
        let Ask::Hello(hello) = talk.receive(patience).ok()? else { return None };
        if self == SaysNothing {
            return talk.receive::<Ask>(patience).ok().map(drop);
        }
        let drawn = generate_nonce().unwrap();
        let version = if self == AnotherVersion { VERSION + 1 } else { VERSION };
        talk.send(&Answer::Hello(Hello { version, nonce: drawn.clone() })).ok()?;
        let Ask::Proof(_) = talk.receive(patience).ok()? else { return None };
        let token =
            if self == KnowsNoToken { Token::empty() } else { Token::from_text(crate::serves::TOKEN) };
        let proof = Nonces::read(&hello.nonce, &drawn).unwrap().compute_proof(End::Server, &token);
        let identity = if self == NamesItselfAtWill { "\u{1b}[2J".into() } else { "0".repeat(16) };
        let station = Station { identity, ..Station::default() };
        talk.send(&Answer::Welcome(Box::new(Welcome { proof, station, reached: own }))).ok()?;
        let Ask::Open(open) = talk.receive(patience).ok()? else { return None };
        let door = TcpListener::bind((own.ip(), 0)).unwrap();
        let port = door.local_addr().unwrap().port();
        talk.send(&Answer::Opened(Opened { port, secret: to_hex(&[7; SECRET_BYTES]) })).ok()?;
        let mut data = door.accept().ok()?.0;
        data.read_exact(&mut [0; SECRET_BYTES]).ok()?;
        talk.send(&Answer::Ready).ok()?;
        let served = Arc::new(AtomicU64::new(0));
        let (counts, control) = (Arc::clone(&served), talk.stream().try_clone().unwrap());
        std::thread::spawn(move || {
            let kept = data.try_clone().unwrap();
            self.data(data, open, &counts);
            if self == Dies {
                [&kept, &control].iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
            }
        });
        loop {
            let Ask::Count = talk.receive(patience).ok()? else { return None };
            let messages = served.load(SeqCst) + u64::from(self == Miscounts);
            let bytes = messages * u64::from(open.bytes);
            talk.send(&Answer::Counted(Counted { messages, bytes })).ok()?;
        }
    }

    fn data(self, mut stream: TcpStream, open: Open, counts: &AtomicU64) -> Option<()> {
        if open.service == Service::Sink {
            let mut told = [0; 8];
            stream.read_exact(&mut told).ok()?;
            let all = u64::from_le_bytes(told);
            std::io::copy(&mut (&mut stream).take(all), &mut std::io::sink()).ok()?;
            return stream.write_all(&(all - 1).to_le_bytes()).ok();
        }
        let mut message = vec![0; open.bytes as usize];
        loop {
            stream.read_exact(&mut message).ok()?;
            let served = counts.fetch_add(1, SeqCst);
            match self {
                Dies if served == GOOD => return None,
                Stalls if served == GOOD => std::thread::sleep(Duration::from_secs(30)),
                ChangesWhatItEchoes if served == GOOD => message[0] ^= 1,
                _ => {}
            }
            stream.write_all(&message).ok()?;
        }
    }
}

/// Runs the case against each of them, from here.
fn meets(wire: &Wire, vices: &[(Vice, &str, &str)]) {
    for &(vice, case, sentence) in vices {
        let place = Place::new();
        let address = wire.there(|at| vice.listens(at));
        let ended = place.run_against(wire, &address.to_string(), case);
        let named = format!("peer {address}");
        assert!(ended.said.contains(sentence) && ended.said.contains(&named), "{vice:?}: {}", ended.said);
        assert_eq!(ended.code, Some(1), "{vice:?}: {}", ended.said);
        assert!(place.has_no_number(), "{vice:?} left a number");
    }
}

#[test]
fn a_rogue_on_this_machine_is_named_and_leaves_no_number() {
    meets(&Wire::Loop, &VICES);
}

#[test]
fn a_rogue_across_a_wire_is_named_and_leaves_no_number() {
    let Some(wire) = Wire::between_namespaces() else { return };
    meets(&wire, &VICES[..7]);
}
