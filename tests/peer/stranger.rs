//! Clients that behave badly: the memory of the peer stays bounded.

use crate::serves::Serves;
use std::io::Write;
use std::time::{Duration, Instant};
use syscost::peer::control_protocol::{LONGEST_SILENCE, Open, Service};

/// The most resident memory of the peer, KiB. Its code and its threads take a fifth of it.
const RESIDENT_KIB: u64 = 64 << 10;

/// Sixteen streams that are written to and never read.
#[test]
fn streams_that_are_never_read_are_cut_off_and_cost_a_bounded_memory() {
    let serves = Serves::new();
    let mut deaf = serves.call();
    let streams = deaf.open_streams(Open { service: Service::Echo, bytes: 1 << 20, streams: 16 }).unwrap();
    let writers: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            std::thread::spawn(move || {
                stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
                let message = vec![1; 1 << 20];
                while stream.write_all(&message).is_ok() {}
                // The stream stays open until the test ends, so that only the peer can end it.
                stream
            })
        })
        .collect();
    let mut most = 0;
    // The limit is short enough that the peer does not end the whole session as silent.
    let limit = Instant::now() + LONGEST_SILENCE / 2;
    let is_cut_off =
        || serves.status("Threads") <= 16 && writers.iter().all(std::thread::JoinHandle::is_finished);
    while !is_cut_off() {
        assert!(Instant::now() < limit, "{} threads still serve", serves.status("Threads"));
        most = most.max(serves.status("VmRSS"));
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("16 streams never read: {most} KiB resident at most");
    assert!(most < RESIDENT_KIB, "{most} KiB");
    deaf.request_counts().unwrap();
}
