//! Two network namespaces and a pair of virtual interfaces: as far apart as two machines, for the kernel.

use crate::place::{FAR, FAR_6, Place, Wire};
use crate::serves::Serves;
use serde_json::Value;
use syscost_platform::testing::print_skipped;

fn cases(record: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let groups = record["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["cases"].as_array().unwrap().iter().map(move |case| (group, case)))
}

/// Every transport of every group, with small and large messages. The sizes between them go the same way.
const ALL_TRANSPORTS: &str = "-peer.*/(1B|56B|16KiB|128KiB|8MiB|1000B|8000B)$|^socket_connect/.*-peer";
/// Every transport of every group once: what IPv6 changes is the addresses.
const EACH_TRANSPORT_ONCE: &str = "-peer.*/(56B|128KiB|1000B)$|^socket_connect/connect/.*-peer";

/// Every transport that has a peer at its end is measured against one, unless other tasks on the machine disturb it.
#[test]
fn every_socket_group_runs_against_a_peer_across_a_wire() {
    let Some(wire) = Wire::between_namespaces() else { return };
    let Wire::Namespaces { far, .. } = &wire else { return };
    let serves = Serves::at(far.command(crate::serves::SYSCOST), &["--listen", FAR]);
    all_runs(&wire, &serves, ALL_TRANSPORTS, "by veth");
}

#[test]
fn every_socket_group_runs_over_ipv6() {
    let Some(wire) = Wire::between_namespaces() else { return };
    let Wire::Namespaces { far, .. } = &wire else { return };
    if !std::path::Path::new("/proc/sys/net/ipv6").exists() {
        return print_skipped("this kernel has no IPv6");
    }
    let serves = Serves::at(far.command(crate::serves::SYSCOST), &["--listen", FAR_6]);
    assert_eq!(serves.address, format!("[{FAR_6}]:7470"));
    let record = all_runs(&wire, &serves, EACH_TRANSPORT_ONCE, "by veth over IPv6");
    let told = format!("over IPv6: the peer says that it was reached at [{FAR_6}]:7470");
    assert!(record.to_string().contains(&told), "{record}");
}

/// Measures these cases of a peer; the record. Each was disturbed, or measured on this way.
fn all_runs(wire: &Wire, serves: &Serves, asked: &str, way: &str) -> Value {
    let place = Place::new();
    let ended = place.run_against(wire, &serves.address, asked);
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
            assert_eq!(group["wire"]["reached"], serves.address);
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

#[test]
fn nobody_is_served_across_the_wire_without_the_token() {
    let Some(wire) = Wire::between_namespaces() else { return };
    let Wire::Namespaces { near, far } = &wire else { return };
    let serves = Serves::at(far.command(crate::serves::SYSCOST), &["--listen", FAR]);
    let mut without = near.command(crate::serves::SYSCOST);
    without.args(["run", "--scale", "smoke", "--peer", &serves.address, "--", "tcp-peer/56B"]);
    let home = tempfile::tempdir().unwrap();
    let output = without.env("CRITERION_HOME", home.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("it refused us: give the token"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

/// An address that cannot be one is told before anything is measured, with what to write.
#[test]
fn a_malformed_address_is_an_error_of_the_command_line() {
    for (address, expected) in [
        ("[::1", "the bracket is not closed: write [ADDRESS]:PORT"),
        ("127.0.0.1:70000", "the port `70000` is no number from 0 to 65535"),
        ("fd00::1:7470:x", "is no address of IPv6"),
        ("fe80::1", "write the interface behind it"),
    ] {
        for command in [
            &["run", "--scale", "smoke", "--peer", address, "--", "tcp-peer/56B"][..],
            &["peer", "--listen", address],
        ] {
            let output = std::process::Command::new(crate::serves::SYSCOST).args(command).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
            assert!(said.contains(expected) && said.contains(address), "{command:?}: {said}");
        }
    }
}
