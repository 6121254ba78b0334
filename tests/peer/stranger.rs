//! Clients that behave badly: what the peer keeps stays bounded.

use crate::serves::Serves;
use std::io::Write;
use std::time::{Duration, Instant};
use syscost::peer::control_protocol::{LONGEST_SILENCE, Open, Service};

/// What the peer may keep resident, KiB: its code and its threads have a fifth of it.
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
                // Open until the test ends, so that only the peer can end it.
                stream
            })
        })
        .collect();
    let mut most = 0;
    // The session is not silent for so long that it would be ended as a whole.
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
