use super::*;
use crate::kit::runnable::{runnable_cases, test_place};
use crate::kit::socket::{raw_descriptor, transfer};
use crate::platform::cpu;
use std::time::{Duration, Instant};

#[test]
fn every_case_delivers_its_messages() {
    let directory = tempfile::tempdir().unwrap();
    let place = test_place(directory.path(), Scale::Full);
    let clock = Clock::start_up();
    let here = place.cpus.here.unwrap();
    for case in runnable_cases(cases(), &place) {
        let run = || {
            let mut subject = (case.set_up)(&place)?;
            let ticks = subject.run(1, &clock)?;
            subject.run(2, &clock)?;
            Ok::<_, crate::error::Error>((ticks, subject.report().evidence))
        };
        let (ticks, evidence) =
            cpu::run_on_cpu(here, run).unwrap().unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert!(ticks.0 > 0, "{}", case.name);
        let fixed = evidence.iter().any(|said| said == "buffers of 416 KiB to send and 416 KiB to receive");
        let says = |word: &str| evidence.iter().any(|said| said.contains(word));
        let is_of = |names: &[&str]| names.contains(&case.name.split(['/', '-']).next().unwrap_or_default());
        let named = |word: &str| case.name.contains(word);
        let expected = [
            is_of(&["tcp", "sendfile", "splice", "zerocopy"]) && !named("autotuned"),
            named("udp"),
            named("zerocopy"),
        ];
        assert_eq!([fixed, says("datagrams"), says("MSG_ZEROCOPY")], expected, "{}: {evidence:?}", case.name);
        let sentences = expected.iter().filter(|is_said| **is_said).count();
        assert_eq!(evidence.len(), sentences, "{}: {evidence:?}", case.name);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "a file has no name");
}

/// The error of a stream over TCP whose receiver does `step` with its data and its control.
fn with_receiver(step: impl FnMut(&OwnedFd, &OwnedFd) -> i64 + Send + 'static) -> String {
    let directory = tempfile::tempdir().unwrap();
    let place = test_place(directory.path(), Scale::Full);
    let [near, far] = connected_ends(Tcp).unwrap();
    let [ours, theirs] = Transport::UnixSeqpacket.connected_pair().unwrap();
    let mut step = step;
    let at = (Same.partner_cpu(&place).unwrap(), Class::Ordinary);
    let partner = Partner::start(Kind::Process, at, move || step(&far, &theirs), || ()).unwrap();
    let source = Box::new(Sent::new(100));
    let connection =
        Connection { end: near, source, control: Control::new(ours), bounds: Bounds::Stream, buffers: None };
    let mut stream = StreamSender::new("tcp", vec![connection], (10, 100), vec![partner]).unwrap();
    let begun = Instant::now();
    let error = stream.run(1, &Clock::start_up()).map(drop).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(15));
    error.to_string()
}

#[test]
fn a_receiver_whose_count_is_too_low_or_too_high_is_rejected() {
    for said in [999u64, 1001] {
        let error = with_receiver(move |data, control| {
            let mut announced = [0; 8];
            transfer::receive_whole(raw_descriptor(control), &mut announced);
            transfer::receive_whole(raw_descriptor(data), &mut [0; 1000]);
            transfer::send_whole(raw_descriptor(control), &said.to_le_bytes())
        });
        assert!(error.contains("counted other than the 1000 bytes"), "{error}");
    }
}

#[test]
fn a_receiver_that_dies_or_hangs_ends_the_case_in_seconds() {
    let error = with_receiver(|_, _| {
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        0
    });
    assert_eq!(error, "tcp: the partner was killed by SIGKILL");
    let error = with_receiver(|_, _| {
        std::thread::sleep(Duration::from_secs(60));
        0
    });
    assert!(error.starts_with("tcp: the partner has not answered for 2 s"), "{error}");
}

#[test]
fn lost_datagrams_are_in_the_evidence() {
    let [near, _far] = connected_ends(Udp).unwrap();
    let [ours, _theirs] = Transport::UnixSeqpacket.connected_pair().unwrap();
    let source = Box::new(Sent::new(100));
    let connection = Connection {
        end: near,
        source,
        control: Control::new(ours),
        bounds: Bounds::Datagram,
        buffers: None,
    };
    let mut stream = StreamSender::new("udp", vec![connection], (10, 100), Vec::new()).unwrap();
    assert!(stream.report().evidence.is_empty());
    (stream.sent, stream.received) = (200, 150);
    assert_eq!(stream.report().evidence, ["of 200 datagrams 50 were lost (25.0 %) and sent again"]);
}
