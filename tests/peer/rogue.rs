//! Faulty peers: they die, stall, lie, or speak another version. A case that is measured against one ends in a sentence
//! that names the peer, and no number is kept.

use crate::place::{Place, Wire};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use syscost::environment::Station;
use syscost::json_line::{Lines, NoMessage, send};
use syscost::peer::control_protocol::{
    Answer, Ask, Counted, Hello, LONGEST, Open, Opened, SECRET_BYTES, Service, VERSION, Welcome,
};

/// The fault of a peer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Vice {
    Dies,
    Stalls,
    Miscounts,
    AnswersLess,
    ChangesWhatItEchoes,
    AnotherVersion,
    SaysNothing,
    IsSomethingElse,
    NamesItselfAtWill,
}
use Vice::*;

/// Each fault, with a case and the words that the error must contain.
const VICES: [(Vice, &str, &str); 9] = [
    (Dies, "socket_round_trip/tcp-peer/56B", "it has died, or was stopped"),
    (Stalls, "socket_round_trip/tcp-peer/56B", "it has not answered for"),
    (Miscounts, "socket_round_trip/tcp-peer/56B", "it miscounts"),
    (AnswersLess, "socket_bandwidth/tcp-peer/64KiB", "it lies, or they were lost"),
    (ChangesWhatItEchoes, "socket_round_trip/tcp-peer/56B", "it answered something else than it was sent"),
    (AnotherVersion, "socket_round_trip/tcp-peer/56B", "run the same syscost at both ends"),
    (SaysNothing, "socket_connect/connect/tcp-peer", "it has not answered for 20 s"),
    (
        IsSomethingElse,
        "socket_round_trip/tcp-peer/56B",
        "it sent `220 mail.example.org ESMTP`, where the protocol has another message",
    ),
    (NamesItselfAtWill, "socket_round_trip/tcp-peer/56B", "nothing that syscost says"),
];

/// The number of messages that a faulty peer answers correctly first.
const GOOD: u64 = 3;

impl Vice {
    /// Serves, with this fault, each client that opens the two named pipes of this directory, for as long as the test lives. The
    /// data sockets are at the address `own`.
    fn serves_in(self, directory: &Path, own: IpAddr) {
        let [asks, answers] = ["asks", "answers"].map(|name| directory.join(name));
        for pipe in [&asks, &answers] {
            nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        std::thread::spawn(move || {
            // Opening blocks until a command of the client opens the other end.
            while let (Ok(asks), Ok(answers)) = (File::open(&asks), File::create(&answers)) {
                self.serves(&asks, &answers, own);
                drop(answers);
                // Waits until the command of this client has ended: it would otherwise read the hello for the next client.
                let _ = std::io::copy(&mut &asks, &mut std::io::sink());
            }
        });
    }

    /// Serves one client. `None` if the client has closed the connection.
    fn serves(self, asks: &File, mut answers: &File, own: IpAddr) -> Option<()> {
        let mut lines = Lines::new(LONGEST);
        let soon = || Instant::now() + Duration::from_secs(30);
        let tell = |answer: &Answer| send(answers, answer).ok();
        match self {
            IsSomethingElse => return answers.write_all(b"220 mail.example.org ESMTP\r\n").ok(),
            SaysNothing => return lines.receive::<Ask>(asks, soon(), &[]).ok().map(drop),
            _ => {}
        }
        if self == AnotherVersion {
            return tell(&Answer::Hello(Hello { version: VERSION + 1 }));
        }
        tell(&Answer::Hello(Hello { version: VERSION }))?;
        let accept_stream = || {
            let door = TcpListener::bind((own, 0)).unwrap();
            let port = door.local_addr().unwrap().port();
            tell(&Answer::Opened(Opened { port, secret: [7; SECRET_BYTES] }))?;
            let mut data = door.accept().ok()?.0;
            data.read_exact(&mut [0; SECRET_BYTES]).ok()?;
            tell(&Answer::Ready)?;
            Some(data)
        };
        let reached = accept_stream()?.local_addr().ok()?;
        let identity = if self == NamesItselfAtWill { "\u{1b}[2J".into() } else { "0".repeat(16) };
        let station = Station { identity, ..Station::default() };
        tell(&Answer::Welcome(Box::new(Welcome { station, reached })))?;
        let Ask::Open(open) = lines.receive(asks, soon(), &[]).ok()? else { return None };
        let data = accept_stream()?;
        let (served, dead) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counts, dies) = (Arc::clone(&served), Arc::clone(&dead));
        std::thread::spawn(move || {
            self.data(data, open, &counts);
            dies.store(self == Dies, SeqCst);
        });
        loop {
            match lines.receive(asks, Instant::now() + Duration::from_millis(20), &[]) {
                Ok(Ask::Count) => {}
                Err(NoMessage::Late) if !dead.load(SeqCst) => continue,
                _ => return None,
            }
            let messages = served.load(SeqCst) + u64::from(self == Miscounts);
            let bytes = messages * u64::from(open.bytes);
            tell(&Answer::Counted(Counted { messages, bytes }))?;
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

/// Runs the case of each fault against a peer with that fault, and checks the error.
fn meets(wire: &Wire, vices: &[(Vice, &str, &str)]) {
    for &(vice, case, sentence) in vices {
        let (place, pipes) = (Place::new(), tempfile::tempdir().unwrap());
        let address = wire.there(|own| {
            vice.serves_in(pipes.path(), own);
            own.to_string()
        });
        let at = pipes.path().display();
        let words = format!("cat {at}/answers & exec cat >{at}/asks");
        let ended = place.run_against(wire, [&address, &words], case);
        let named = format!("peer {address}");
        let said = ended.said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(sentence) && said.contains(&named), "{vice:?}: {}", ended.said);
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
    meets(&wire, &VICES[..6]);
}
