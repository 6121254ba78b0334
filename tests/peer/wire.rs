//! Runs across two network namespaces and a pair of virtual interfaces, which the kernel treats like two machines.

use crate::place::{FAR, FAR_6, Place, Wire};
use crate::serves::SYSCOST;
use serde_json::Value;
use std::net::SocketAddr;
use syscost_platform::testing::print_skipped;

fn cases(record: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let groups = record["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["cases"].as_array().unwrap().iter().map(move |case| (group, case)))
}

/// Every transport of every group, with small and large messages. Messages of sizes between them take the same code path.
const ALL_TRANSPORTS: &str = "-peer.*/(1B|56B|16KiB|128KiB|8MiB|1000B|8000B)$|^socket_connect/.*-peer";
/// Every transport of every group once, since IPv6 changes only the addresses.
const EACH_TRANSPORT_ONCE: &str = "-peer.*/(56B|128KiB|1000B)$|^socket_connect/connect/.*-peer";

/// Every transport that has a peer at its end is measured against one, unless other tasks on the machine disturb it.
#[test]
fn every_socket_group_runs_against_a_peer_across_a_wire() {
    let Some(wire) = Wire::between_namespaces() else { return };
    all_runs(&wire, FAR, ALL_TRANSPORTS, "by veth");
}

#[test]
fn every_socket_group_runs_over_ipv6() {
    let Some(wire) = Wire::between_namespaces() else { return };
    if !std::path::Path::new("/proc/sys/net/ipv6").exists() {
        return print_skipped("this kernel has no IPv6");
    }
    let record = all_runs(&wire, FAR_6, EACH_TRANSPORT_ONCE, "by veth over IPv6");
    let told = format!("over IPv6: the peer says that it was reached at {FAR_6}");
    assert!(record.to_string().contains(&told), "{record}");
}

/// Measures these cases against a peer and returns the record. Checks that each was disturbed, or measured over this connection.
fn all_runs(wire: &Wire, address: &str, asked: &str, way: &str) -> Value {
    let Wire::Namespaces { far, .. } = wire else { panic!("no namespaces") };
    let place = Place::new();
    let ended = place.run_against(wire, [address, &far.peer_words()], asked);
    let record = place.record();
    for group in ["socket_round_trip", "socket_bandwidth", "socket_connect", "displacement"] {
        assert!(cases(&record).any(|(_, case)| id(case).starts_with(group)), "{group}: {}", ended.said);
    }
    for (group, case) in cases(&record) {
        let outcome = &case["outcome"];
        if outcome["skipped"].to_string().contains("full scale") {
            continue;
        }
        assert!(
            outcome["disturbed"].is_string() || outcome["measured"].is_object(),
            "{case}\n{}",
            ended.said
        );
        if let Some(number) = outcome.get("measured") {
            assert!(number["peer"].as_str().unwrap().ends_with(way), "{number}");
            let reached: SocketAddr = group["wire"]["reached"].as_str().unwrap().parse().unwrap();
            assert_eq!(reached.ip().to_string(), address);
            let (near, other) = (&group["wire"]["near"], &group["wire"]["far"]);
            for interface in [near, &other["interface"]] {
                assert_eq!((&interface["mtu"], &interface["driver"]), (&1500.into(), &"veth".into()));
                assert!(interface["speed_mbps"].is_u64() && interface["offloads"].is_object());
            }
            assert!(other["fingerprint"]["kernel_release"].is_string());
        }
    }
    record
}

fn id(case: &serde_json::Value) -> &str {
    case["id"].as_str().unwrap()
}

/// An invalid address is reported before anything is measured, with the form of a valid one.
#[test]
fn a_malformed_address_is_an_error_of_the_command_line() {
    for (address, expected) in [
        ("[::1]", "write HOST or ADDRESS, without brackets and port"),
        ("127.0.0.1:7470", "write HOST or ADDRESS, without brackets and port"),
        ("fe80::1", "write the interface behind it"),
    ] {
        let words = ["run", "--scale", "smoke", "--peer", address, "--", "tcp-peer/56B"];
        let output = std::process::Command::new(SYSCOST).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{address}: {said}");
        assert!(said.contains(expected) && said.contains(address), "{address}: {said}");
    }
}
