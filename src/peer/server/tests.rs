use super::*;
use crate::json_line::to_line;
use crate::peer::client::{Client, Given};
use crate::peer::control_protocol::{Ask, Hello, Open, Service, VERSION};
use crate::peer::control_protocol::{DATA_PATIENCE, PROOF_PATIENCE};
use std::io::{Read, Write};
use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Instant;

const TOKEN: &str = "a token for the tests of the server";

/// A server on a thread of its own, until this value goes.
struct Serves {
    address: SocketAddr,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
    token: Option<tempfile::NamedTempFile>,
}

impl Serves {
    fn with(token: Option<&str>, limits: Limits) -> Self {
        let at = "127.0.0.1:0".parse().unwrap();
        let server = Server::bind(at, token.map(Token::from_text), limits).unwrap();
        let (address, end) = (server.address(), Arc::new(AtomicBool::new(false)));
        let ends = Arc::clone(&end);
        let thread = std::thread::spawn(move || server.serve(|| ends.load(Ordering::SeqCst), |_| ()));
        let file = token.map(|text| {
            // Made for its owner alone.
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        });
        Self { address, end, thread: Some(thread), token: file }
    }

    fn new() -> Self {
        Self::with(Some(TOKEN), Limits::default())
    }

    fn given(&self) -> Given {
        let token = self.token.as_ref().map(|file| file.path().to_path_buf());
        Given { address: self.address.to_string(), token }
    }

    fn call(&self) -> Client {
        Client::connect(&self.given()).unwrap()
    }

    fn stranger(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

impl Drop for Serves {
    fn drop(&mut self) {
        self.end.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

fn echo(bytes: u32) -> Open {
    Open { service: Service::Echo, bytes, streams: 1 }
}

fn round_trip(stream: &mut TcpStream, bytes: usize) {
    let mut back = vec![0; bytes];
    stream.write_all(&vec![7; bytes]).unwrap();
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, vec![7; bytes]);
}

#[test]
fn messages_come_back_and_are_counted() {
    let serves = Serves::new();
    let mut client = serves.call();
    for bytes in [1, 56, 65_536] {
        let mut streams = client.open_streams(Open { streams: 2, ..echo(bytes) }).unwrap();
        streams.iter_mut().for_each(|stream| round_trip(stream, bytes as usize));
        let counted = client.request_counts().unwrap();
        assert_eq!((counted.messages, counted.bytes), (2, 2 * u64::from(bytes)));
    }
    let wire = client.wire();
    assert_eq!(wire.near, wire.far.interface, "one machine: both ends are its loop");
    assert!(wire.far.fingerprint.kernel_release.is_some() && wire.far.identity.len() == 16);
}

#[test]
fn a_sink_tells_how_much_came() {
    let serves = Serves::new();
    let mut client = serves.call();
    let sink = Open { service: Service::Sink, bytes: 0, streams: 1 };
    let mut stream = client.open_streams(sink).unwrap().remove(0);
    for size in [0_u64, 5, 1_000_000] {
        stream.write_all(&size.to_le_bytes()).unwrap();
        stream.write_all(&vec![1; size as usize]).unwrap();
        let mut came = [0; 8];
        stream.read_exact(&mut came).unwrap();
        assert_eq!(u64::from_le_bytes(came), size);
    }
    let counted = client.request_counts().unwrap();
    assert_eq!((counted.messages, counted.bytes), (3, 1_000_005));
}

#[test]
fn only_datagrams_with_the_secret_come_back_and_none_grows() {
    let serves = Serves::new();
    let mut client = serves.call();
    let asked = Open { service: Service::DatagramEcho, bytes: 56, streams: 1 };
    let (socket, way) = client.open_datagrams(asked).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut wrong = way.secret;
    wrong[15] ^= 1;
    for stranger in [&b""[..], b"x", &way.secret[..15], &wrong, &[0; 1_000]] {
        socket.send(stranger).unwrap();
        assert!(socket.recv(&mut [0; 2_000]).is_err(), "{stranger:?} was answered");
    }
    let packet = [&way.secret[..], &[9; 40]].concat();
    let mut back = [0; 2_000];
    for _ in 0..3 {
        socket.send(&packet).unwrap();
        let came = socket.recv(&mut back).unwrap();
        assert_eq!(&back[..came], &packet);
    }
    // Another port of the same address is another client by now, with the secret and without.
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    other.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    other.send_to(&packet, way.address).unwrap();
    assert!(other.recv(&mut back).is_err());
    assert_eq!(client.request_counts().unwrap().messages, 3);
}

#[test]
fn connections_are_greeted_one_after_another() {
    let serves = Serves::new();
    let mut client = serves.call();
    let way = client.open_service(Open { service: Service::Greeter, bytes: 0, streams: 1 }).unwrap();
    client.wait_until_ready().unwrap();
    let mut stranger = TcpStream::connect(way.address).unwrap();
    stranger.write_all(&[0; 16]).unwrap();
    assert_eq!(stranger.read(&mut [0; 8]).unwrap_or(0), 0, "without the secret nothing comes back");
    for _ in 0..3 {
        let mut stream = way.connect_stream().unwrap();
        let mut greeting = [0];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting, [1]);
    }
    assert_eq!(client.request_counts().unwrap().messages, 3);
}

/// What a stranger is answered to these lines, all of it until the server closes.
fn answered(serves: &Serves, lines: &[u8]) -> String {
    let mut stream = serves.stranger();
    stream.write_all(lines).unwrap();
    let mut answer = Vec::new();
    // A connection that is closed with something unread is reset; what had come by then was read.
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8(answer).unwrap();
    // The nonce is another each time.
    text.split_inclusive('\n').filter(|line| !line.contains("nonce")).collect()
}

#[test]
fn whatever_is_wrong_is_refused_by_the_same_word() {
    let serves = Serves::new();
    let hello = |version, nonce: &str| to_line(&Ask::Hello(Hello { version, nonce: nonce.into() }));
    let good = hello(VERSION, &"a".repeat(64));
    let proof = |proof: &str| to_line(&Ask::Proof(proof.into()));
    let wrong = [
        [good.clone(), proof(&"0".repeat(64))].concat(),
        [good.clone(), proof("")].concat(),
        [good.clone(), good.clone()].concat(),
        [good.clone(), to_line(&Ask::Count)].concat(),
        [good, to_line(&Ask::Open(echo(1)))].concat(),
        [hello(VERSION, "short"), proof(&"0".repeat(64))].concat(),
        [hello(99, &"a".repeat(64)), proof(&"0".repeat(64))].concat(),
        to_line(&Ask::Open(echo(1))),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![b'x'; 3_000],
        b"\xff\xfe\n".to_vec(),
    ];
    for lines in wrong {
        assert_eq!(answered(&serves, &lines), "\"refused\"\n", "{}", String::from_utf8_lossy(&lines));
    }
    serves.call();
}

#[test]
fn a_wrong_token_and_none_are_refused_alike_and_the_right_one_is_served() {
    let serves = Serves::new();
    let mut other = tempfile::NamedTempFile::new().unwrap();
    other.write_all(b"another token, as long as it must be").unwrap();
    let errors = [Some(other.path().to_path_buf()), None].map(|token: Option<PathBuf>| {
        Client::connect(&Given { token, ..serves.given() }).err().expect("refused").to_string()
    });
    assert_eq!(errors[0], errors[1]);
    assert!(errors[0].contains(&serves.address.to_string()) && errors[0].contains("--peer-token-file"));
    serves.call().request_counts().unwrap();
}

#[test]
fn nothing_listens_beyond_the_loop_without_a_token() {
    for at in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error = Server::bind(at.parse().unwrap(), None, Limits::default()).err().expect("refused");
        assert!(error.to_string().contains("with a token only"), "{error}");
    }
    assert!(
        Server::bind("0.0.0.0:0".parse().unwrap(), Some(Token::from_text(TOKEN)), Limits::default()).is_ok()
    );
}

#[test]
fn a_thousand_who_say_nothing_keep_nobody_out() {
    let serves = Serves::new();
    let mut silent = Vec::new();
    for at in 0..1_000 {
        // The test's own files may be limited to fewer.
        match TcpStream::connect(serves.address) {
            Ok(stream) => silent.push(stream),
            Err(error) => {
                println!("{at} half-open connections: {error}");
                break;
            }
        }
        if at % 250 == 249 {
            serves.call().request_counts().unwrap();
        }
        if silent.len() > 400 {
            silent.drain(..100);
        }
    }
    let begun = Instant::now();
    serves.call().request_counts().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "before the silent were turned out by time");
}

#[test]
fn who_proves_nothing_is_turned_out_however_he_drips() {
    let serves = Serves::new();
    let mut dripping = serves.stranger();
    let (begun, bound) = (Instant::now(), 4 * PROOF_PATIENCE);
    while dripping.write_all(b" ").is_ok() && begun.elapsed() < bound {
        std::thread::sleep(Duration::from_millis(100));
    }
    // The server's own clock began before this one.
    assert!((PROOF_PATIENCE / 2..bound).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[test]
fn limits_are_told_in_a_sentence_that_names_the_peer() {
    let begin = |limits| {
        let serves = Serves::with(None, limits);
        let client = serves.call();
        (serves, client)
    };
    let (_serves, mut client) = begin(Limits { bytes: 100, ..Limits::default() });
    let mut stream = client.open_streams(echo(101)).unwrap().remove(0);
    round_trip(&mut stream, 101);
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "hung up");
    let error = client.connection_error("it hung up").to_string();
    assert!(error.contains("100 bytes") && error.starts_with("peer 127.0.0.1:"), "{error}");
    let (serves, _client) = begin(Limits { clients: 1, ..Limits::default() });
    let error = Client::connect(&serves.given()).err().expect("full").to_string();
    assert!(error.contains("as many clients as it may (1)"), "{error}");
    let (_serves, mut client) = begin(Limits { time: Duration::from_millis(300), ..Limits::default() });
    std::thread::sleep(Duration::from_millis(900));
    let error = client.request_counts().unwrap_err().to_string();
    assert!(error.contains("gives one client"), "{error}");
    let (_serves, mut client) = begin(Limits::default());
    let error = client.open_service(echo(0)).err().expect("refused").to_string();
    assert!(error.contains("messages of 0 bytes"), "{error}");
}

#[test]
fn data_sockets_are_for_who_knows_the_secret() {
    let serves = Serves::new();
    let mut client = serves.call();
    let way = client.open_service(echo(4)).unwrap();
    let mut thief = TcpStream::connect(way.address).unwrap();
    thief.write_all(&[0; 16]).unwrap();
    thief.write_all(b"loot").unwrap();
    assert_eq!(thief.read(&mut [0; 4]).unwrap_or(0), 0);
    let mut stream = way.connect_stream().unwrap();
    client.wait_until_ready().unwrap();
    round_trip(&mut stream, 4);
    assert!(TcpStream::connect(way.address).is_err(), "the door is closed behind the client");
}

/// Ten of this machine, whom the address cannot tell from the client, come to a data door and say nothing.
#[test]
fn who_comes_to_a_data_door_and_says_nothing_keeps_the_client_out_of_neither_service() {
    let serves = Serves::new();
    let mut client = serves.call();
    let silent = |way: &crate::peer::client::Way| -> Vec<_> {
        (0..10).map(|_| TcpStream::connect(way.address).unwrap()).collect()
    };
    let begun = Instant::now();
    let way = client.open_service(echo(4)).unwrap();
    let _silent = silent(&way);
    let mut stream = way.connect_stream().unwrap();
    client.wait_until_ready().unwrap();
    round_trip(&mut stream, 4);
    let way = client.open_service(Open { service: Service::Greeter, bytes: 0, streams: 1 }).unwrap();
    client.wait_until_ready().unwrap();
    let _silent = silent(&way);
    let mut stream = way.connect_stream().unwrap();
    stream.read_exact(&mut [0]).unwrap();
    assert!(begun.elapsed() < DATA_PATIENCE, "it waited until the silent were turned out by time");
}

#[test]
fn a_server_that_ends_tells_those_it_serves() {
    let serves = Serves::new();
    let mut client = serves.call();
    let mut stream = client.open_streams(echo(1)).unwrap().remove(0);
    round_trip(&mut stream, 1);
    drop(serves);
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    let error = client.connection_error("it hung up").to_string();
    assert!(error.contains("it was asked to end"), "{error}");
}

#[test]
fn who_waits_longest_of_the_fullest_address_makes_room() {
    let left = |of: &[&str]| {
        let mut lobby = Lobby::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for from in of {
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            lobby.add_connection(stream, from.parse().unwrap());
        }
        lobby.evict_connection();
        lobby.addresses().map(|address: IpAddr| address.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(left(&["10.0.0.1:1", "10.0.0.2:1", "10.0.0.2:2"]), ["10.0.0.1", "10.0.0.2"]);
    // Among equals it is the oldest, whatever its address: else a client with many addresses would put out a newer one.
    assert_eq!(left(&["10.0.0.1:1", "10.0.0.9:1"]), ["10.0.0.9"]);
    // With IPv6 a client has all addresses of a network.
    assert_eq!(
        left(&["[fd00::9]:1", "[fd00:0:0:1::1]:1", "[fd00:0:0:1::2]:1"]),
        ["fd00::9", "fd00:0:0:1::2"]
    );
}
