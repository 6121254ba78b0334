use super::*;
use crate::kit::runnable::{self, runnable_cases};
use crate::kit::socket::connection;
use crate::platform::child::Child;
use crate::platform::testing::print_skipped;
use crate::platform::testing::run_in_child_process;
use crate::platform::testing::value_or_skip;
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use std::path::Path;
use std::time::Duration;

fn place() -> Place {
    runnable::test_place(Path::new("/nonexistent"), Scale::Full)
}

#[test]
fn every_case_opens_and_closes() {
    let clock = Clock::start_up();
    for case in runnable_cases(cases(), &place()) {
        let Some(mut subject) = value_or_skip((case.set_up)(&place())) else { continue };
        let ticks = subject.run(300, &clock).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert!(ticks.0 > 0, "{}", case.name);
        assert!(subject.report().evidence.is_empty(), "{}: no address was used up", case.name);
    }
}

/// Moves this process into a new network namespace, its loopback up or down; `false` where that is not allowed.
fn own_network(is_up: bool) -> bool {
    let is_apart = unshare(CloneFlags::CLONE_NEWNET).is_ok();
    is_apart && (!is_up || crate::platform::namespace::run_ip_commands("link set lo up").is_ok())
}

/// Runs `body` in a child process with its own network namespace, if one can be made.
fn in_own_network(is_up: bool, body: impl FnOnce()) {
    let tried = Child::start(|| assert!(own_network(true))).unwrap();
    if tried.wait_for_success(Duration::from_secs(60)).is_err() {
        return print_skipped("no network namespace can be made here (it needs root, and `ip`)");
    }
    run_in_child_process(|| {
        assert!(own_network(is_up));
        body();
    });
}

fn tcp(part: Part, ending: Ending) -> Row {
    Row { part, family: Family::Tcp, ending, sharing: 0 }
}

#[test]
fn exhausted_ports_are_avoided_and_in_the_evidence() {
    in_own_network(true, || {
        std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40099").unwrap();
        std::fs::write("/proc/sys/net/ipv4/tcp_tw_reuse", "0").unwrap();
        let clock = Clock::start_up();
        let mut parts = SinglePart::new(tcp(Part::TearDown, ClientFirst)).unwrap();
        parts.run(300, &clock).unwrap();
        let told = parts.report().evidence.concat();
        assert!(told.contains("rested in TIME_WAIT after") && told.contains("127.0.0."), "{told}");
        // Without another address it ends with a sentence and does not hang.
        let error = parts.run(900, &clock).map(drop).unwrap_err().to_string();
        assert!(error.contains("40000 and 40099") && error.contains("ip_local_port_range"), "{error}");
        // A reset leaves no port behind.
        let mut reset = SinglePart::new(tcp(Part::TearDown, Reset)).map_err(|e| e.to_string());
        if let Ok(parts) = &mut reset {
            parts.run(300, &clock).unwrap();
        }
    });
}

#[test]
fn without_loopback_the_cases_of_tcp_are_skipped() {
    in_own_network(false, || {
        for case in cases().into_iter().filter(|case| !case.name.contains("peer")) {
            let said = case.needs.iter().find_map(|need| need.check_place(&place()).err());
            assert_eq!(said.is_some(), case.name.contains("tcp"), "{}: {said:?}", case.name);
            assert!(said.is_none_or(|said| said.contains("ip link set lo up")));
        }
    });
}

#[test]
fn a_low_limit_of_descriptors_skips_the_case_and_does_not_fail_it() {
    run_in_child_process(|| {
        let mut parts = SinglePart::new(tcp(Part::Accept(WAITING), Reset)).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 50, 50).unwrap();
        let error = parts.run(1, &Clock::start_up()).map(drop).unwrap_err();
        assert!(error.is_machine_limitation() && error.to_string().contains("ulimit -n"), "{error}");
    });
}

#[test]
fn missing_time_wait_connections_are_noticed() {
    in_own_network(true, || {
        std::fs::write("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0").unwrap();
        let error = SinglePart::new(tcp(Part::TearDown, ServerFirst)).map(drop).unwrap_err().to_string();
        assert!(error.contains("left 0 in TIME_WAIT"), "{error}");
        SinglePart::new(tcp(Part::TearDown, Reset)).map(drop).unwrap();
    });
}

#[test]
fn ends_of_different_connections_are_rejected() {
    let listeners = connection::Listeners::open_one(Family::Tcp, QUEUE).unwrap();
    let connected = || {
        let client = connection::open_stream_socket(listeners.address()).unwrap();
        assert_eq!(client.connect(listeners.address()), 0);
        (client, connection::accept(listeners.first_descriptor()).unwrap())
    };
    let (one, other) = (connected(), connected());
    assert!(connection_part::verify_ends(Family::Tcp, &one.0, &one.1).is_ok());
    assert!(
        connection_part::verify_ends(Family::Tcp, &one.0, &other.1)
            .unwrap_err()
            .to_string()
            .contains("was accepted where")
    );
}
