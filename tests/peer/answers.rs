//! Each service serves a correct client, and refuses other connections at its data port.

use crate::serves::Serves;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use syscost::peer::client::{Client, Way};
use syscost::peer::control_protocol::{DATA_PATIENCE, Open, Service};
use syscost_platform::testing::print_skipped;

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
    assert_eq!(wire.reached, Some("127.0.0.1:0".parse().unwrap()), "IPv4, though the first port is of both");
    drop(client);
    serves.await_end();
}

#[test]
fn ipv6_is_served_by_its_own_sockets() {
    if TcpStream::connect("[::1]:1").is_err_and(|error| error.raw_os_error() != Some(libc::ECONNREFUSED)) {
        return print_skipped("this kernel has no IPv6, or its loopback has no address");
    }
    let serves = Serves::new();
    let mut client = Client::connect(&serves.given_at("::1")).unwrap();
    assert_eq!(client.wire().reached, Some("[::1]:0".parse().unwrap()));
    let mut stream = client.open_streams(echo(56)).unwrap().remove(0);
    assert!(stream.peer_addr().unwrap().is_ipv6());
    round_trip(&mut stream, 56);
    let asked = Open { service: Service::DatagramEcho, ..echo(56) };
    let (socket, way) = client.open_datagrams(asked).unwrap();
    let packet = [&way.secret[..], &[9; 40]].concat();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.send(&packet).unwrap();
    assert_eq!(socket.recv(&mut [0; 100]).unwrap(), 56);
}

#[test]
fn a_sink_counts_the_received_bytes() {
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
    // By now another port of the same address counts as another client, with the secret or without.
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

#[test]
fn a_data_socket_without_the_secret_is_refused() {
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

/// Ten connections of this machine, which the address cannot tell from the client, connect to a data port and send nothing.
#[test]
fn silent_connections_to_a_data_port_do_not_delay_the_client() {
    let serves = Serves::new();
    let mut client = serves.call();
    let silent =
        |way: &Way| -> Vec<_> { (0..10).map(|_| TcpStream::connect(way.address).unwrap()).collect() };
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
fn an_invalid_request_is_refused_in_a_sentence_that_names_the_peer() {
    let serves = Serves::new();
    let error = serves.call().open_service(echo(0)).err().expect("refused").to_string();
    assert!(error.starts_with("peer 127.0.0.1: ") && error.contains("messages of 0 bytes"), "{error}");
}
