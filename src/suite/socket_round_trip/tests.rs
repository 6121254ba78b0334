use super::*;
use crate::clock::{Clock, PartnerReport};
use crate::kit::runnable::{assert_cases_run, test_place};
use crate::kit::socket::verify_connected;
use std::time::{Duration, Instant};

#[test]
fn every_case_makes_round_trips() {
    let directory = tempfile::tempdir().unwrap();
    let place = test_place(directory.path(), Scale::Full);
    assert_cases_run(cases(), &place);
}

/// The error of a conversation whose partner does `step` instead of answering.
fn partner_error(transport: Transport, step: impl FnMut(OwnedFd) -> i64 + Send + 'static) -> String {
    let directory = tempfile::tempdir().unwrap();
    let place = test_place(directory.path(), Scale::Full);
    let [near, far] = transport.connected_pair().unwrap();
    let (mut step, mut far) = (step, Some(far));
    let answer = move || match far.take() {
        Some(end) => step(end),
        None => -i64::from(libc::EPIPE),
    };
    let at = (Same.partner_cpu(&place).unwrap(), Class::Ordinary);
    let partner = Partner::start(Kind::Process, at, answer, || ()).unwrap();
    let near = Blocking::new(near).unwrap();
    let begun = Instant::now();
    let conversation =
        Conversation::await_greeting(transport.name(), near, (PING, Timed::Together), vec![partner]);
    let ended = conversation.and_then(|mut conversation| conversation.run(10, &Clock::start_up()).map(drop));
    assert!(begun.elapsed() < Duration::from_secs(15));
    ended.unwrap_err().to_string()
}

/// As [`partner_error`], with a partner that greets first and then does `then`.
fn after_greeting(transport: Transport, then: fn(&mut Blocking) -> i64) -> String {
    partner_error(transport, move |end| {
        let mut far = Blocking::new(end).unwrap();
        far.send(&std::process::id().to_ne_bytes());
        then(&mut far)
    })
}

#[test]
fn a_partner_that_dies_or_hangs_ends_the_case_in_seconds() {
    let dies = |_: &mut Blocking| {
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        0
    };
    let hangs = |_: &mut Blocking| {
        std::thread::sleep(Duration::from_secs(60));
        0
    };
    for transport in [Tcp, Udp, Transport::UnixSeqpacket] {
        let said = after_greeting(transport, dies);
        assert!(said.ends_with("the partner was killed by SIGKILL"), "{transport:?}: {said}");
    }
    let said = after_greeting(Tcp, hangs);
    assert!(said.starts_with("tcp: the partner has not answered for 2 s"), "{said}");
}

#[test]
fn an_answer_that_is_not_the_message_is_no_round_trip() {
    for transport in [Tcp, UnixStream] {
        let said = after_greeting(transport, |far| {
            let mut come = [0; PING];
            far.receive(&mut come);
            come[0] ^= 1;
            far.send(&come);
            far.receive(&mut come)
        });
        assert!(said.contains("not the message that was sent"), "{said}");
    }
    // The number is right, and a later byte is wrong.
    let said = after_greeting(Tcp, |far| {
        let mut come = [0; PING];
        for _ in 0..10 {
            far.receive(&mut come);
            come[PING - 1] ^= 1;
            far.send(&come);
        }
        far.receive(&mut come)
    });
    assert!(said.contains("not the message that was sent"), "{said}");
}

#[test]
fn a_greeting_of_another_process_is_rejected() {
    let said = partner_error(Udp, |end| {
        let mut far = Blocking::new(end).unwrap();
        far.send(&1u32.to_ne_bytes());
        far.receive(&mut [0; PING])
    });
    assert_eq!(said, "udp: process 1 answers, which is not the partner that was started");
}

#[test]
fn an_end_that_slept_contradicts_the_claim_of_polling() {
    let partners = Some(PartnerReport { answering: 1, fewest_voluntary: 2, ..Default::default() });
    let mut delta = Delta { partners, ..Default::default() };
    assert!(claim_neither_slept(&delta, 100).is_ok());
    delta.counted.voluntary_switches = 100;
    assert!(claim_neither_slept(&delta, 100).unwrap_err().contains("no polling"));
}

#[test]
fn ends_of_different_pairs_are_rejected() {
    let [near, _far] = Tcp.connected_pair().unwrap();
    let [_near, far] = Tcp.connected_pair().unwrap();
    assert!(verify_connected(&[near, far]).unwrap_err().to_string().contains("not each other's"));
}

#[test]
fn lengths_are_written_as_in_other_ids() {
    assert_eq!([1, 56, 1024, 65_536, 8 << 20].map(size_text), ["1B", "56B", "1KiB", "64KiB", "8MiB"]);
}
