//! Two network namespaces and a pair of virtual interfaces: as far apart as two machines, for the kernel.

use crate::place::{FAR, Place, Wire};
use crate::serves::Serves;
use serde_json::Value;

fn cases(record: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let groups = record["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["cases"].as_array().unwrap().iter().map(move |case| (group, case)))
}

/// Everything that has a peer at its end is measured against one, unless other tasks on the machine disturb it.
#[test]
fn every_socket_group_runs_against_a_peer_across_a_wire() {
    let Some(wire) = Wire::between_namespaces() else { return };
    let Wire::Namespaces { far, .. } = &wire else { return };
    let serves = Serves::at(far.command(crate::serves::SYSCOST), &["--listen", FAR]);
    let place = Place::new();
    let ended = place.run_against(&wire, &serves.address, "-peer");
    let record = place.record();
    for group in ["socket_round_trip", "socket_bandwidth", "socket_connect", "displacement"] {
        assert!(cases(&record).any(|(_, case)| id(case).starts_with(group)), "{group}: {}", ended.said);
    }
    for (group, case) in cases(&record) {
        let outcome = &case["outcome"];
        assert!(
            outcome["disturbed"].is_string() || outcome["measured"].is_object(),
            "{case}\n{}",
            ended.said
        );
        if let Some(number) = outcome.get("measured") {
            assert!(number["peer"].as_str().unwrap().ends_with(" by veth"), "{number}");
            let (near, other) = (&group["wire"]["near"], &group["wire"]["far"]);
            for interface in [near, &other["interface"]] {
                assert_eq!((&interface["mtu"], &interface["driver"]), (&1500.into(), &"veth".into()));
                assert!(interface["speed_mbps"].is_u64() && interface["offloads"].is_object());
            }
            assert!(other["fingerprint"]["kernel_release"].is_string());
        }
    }
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
