//! Those who know no token, and those who know it and behave badly: the others are served, and what the peer
//! keeps stays bounded.

use crate::serves::{PROMPT, Serves};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use syscost::peer::client::{Client, Given};
use syscost::peer::control_protocol::{Answer, Open, Service};

/// What the peer may keep resident, KiB: its code and its threads have a fifth of it.
pub const RESIDENT_KIB: u64 = 64 << 10;

fn echo(bytes: u32, streams: u32) -> Open {
    Open { service: Service::Echo, bytes, streams }
}

/// A thousand connections that are open and silent, more of them than the peer holds.
#[test]
fn a_thousand_half_open_clients_keep_nobody_out() {
    let serves = Serves::with(&[]);
    let (_, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, hard, hard);
    let mut silent = Vec::new();
    let mut longest = Duration::ZERO;
    for at in 0..1_000 {
        silent.push(TcpStream::connect(&serves.address).unwrap());
        if at % 100 == 99 {
            let begun = Instant::now();
            serves.call().request_counts().unwrap();
            longest = longest.max(begun.elapsed());
        }
    }
    let (resident, descriptors) = (serves.status("VmRSS"), serves.descriptors());
    println!(
        "1000 half-open: {resident} KiB resident, {descriptors} descriptors, a client served within {longest:?}"
    );
    assert!(resident < RESIDENT_KIB && descriptors < 320, "{resident} KiB, {descriptors} descriptors");
    assert!(longest < PROMPT, "{longest:?}");
    let (well, took) = serves.interrupt();
    assert!(well && took < PROMPT, "{took:?}");
}

/// Sixteen streams that are written to and never read.
#[test]
fn clients_that_never_read_are_cut_off_and_cost_a_bounded_memory() {
    let serves = Serves::with(&["--idle", "2"]);
    let mut deaf = serves.call();
    let streams = deaf.open_streams(echo(1 << 20, 16)).unwrap();
    let writers: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            std::thread::spawn(move || {
                stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
                let message = vec![1; 1 << 20];
                while stream.write_all(&message).is_ok() {}
            })
        })
        .collect();
    let mut most = 0;
    while !writers.iter().all(std::thread::JoinHandle::is_finished) {
        let mut other = serves.call();
        let mut stream = other.open_streams(echo(56, 1)).unwrap().remove(0);
        stream.write_all(&[7; 56]).unwrap();
        stream.read_exact(&mut [0; 56]).unwrap();
        most = most.max(serves.status("VmRSS"));
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("16 streams never read: {most} KiB resident at most");
    assert!(most < RESIDENT_KIB, "{most} KiB");
    assert!(deaf.request_counts().unwrap_err().to_string().contains("nothing was asked or sent"));
}

#[test]
fn an_interrupt_ends_it_at_once_also_while_it_serves() {
    let serves = Serves::with(&[]);
    let mut client = serves.call();
    let _streams = client.open_streams(echo(56, 4)).unwrap();
    let _half_open = TcpStream::connect(&serves.address).unwrap();
    let (well, took) = serves.interrupt();
    assert!(well && took < PROMPT, "{took:?}");
    assert!(client.request_counts().unwrap_err().to_string().contains("it was asked to end"));
}

/// Hands one conversation on to the peer; what the client said comes back.
fn overhear(peer: &str) -> (String, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, peer) = (listener.local_addr().unwrap().to_string(), peer.to_owned());
    let heard = std::thread::spawn(move || {
        let (mut client, server) = (listener.accept().unwrap().0, TcpStream::connect(peer).unwrap());
        let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
        let (mut said, mut part) = (Vec::new(), [0; 4_096]);
        while let Ok(length @ 1..) = client.read(&mut part) {
            said.extend_from_slice(&part[..length]);
            (&server).write_all(&part[..length]).unwrap();
        }
        let _ = server.shutdown(Shutdown::Both);
        said
    });
    (address, heard)
}

#[test]
fn a_conversation_that_was_overheard_opens_nothing() {
    let serves = Serves::with(&[]);
    let (address, heard) = overhear(&serves.address);
    let mut client = Client::connect(&Given { address, ..serves.given() }).unwrap();
    client.open_service(echo(56, 1)).unwrap();
    drop(client);
    let said = heard.join().unwrap();
    assert_eq!(said.split_inclusive(|byte| *byte == b'\n').count(), 3, "a hello, a proof and a request");
    let mut stream = TcpStream::connect(&serves.address).unwrap();
    stream.write_all(&said).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let told: Vec<Answer> = answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(matches!(told[..], [Answer::Hello(_), Answer::Refused]), "{answer}");
}
