//! The description of a machine that each end sends to the other.

use crate::environment::{Fingerprint, Interface, Station};
use crate::json_line::parse_value;
use crate::platform::inert;
use crate::platform::kernel_files::KernelFiles;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::net::IpAddr;

/// The longest text of a description, characters: the length limit of a kernel command line.
const LONGEST_TEXT: usize = 4096;
/// The longest name of a driver, bytes (`ETHTOOL_BUSINFO_LEN`, with its terminator).
const LONGEST_DRIVER: usize = 32;

/// The description of this machine, with the interface between these addresses.
pub(super) fn describe_this_machine(own: IpAddr, other: IpAddr) -> Station {
    let files = KernelFiles::live();
    // A machine without an identifier is identified by its boot id.
    let number = files
        .read_first_line("etc/machine-id")
        .or_else(|| files.read_first_line("proc/sys/kernel/random/boot_id"));
    Station {
        identity: pseudonym(&number.unwrap_or_default()),
        fingerprint: Fingerprint::take(&files, &std::env::temp_dir()),
        interface: Interface::between_addresses(own, other),
    }
}

/// A hash of sixteen hexadecimal digits that distinguishes texts without revealing them.
fn pseudonym(text: &str) -> String {
    let hash = Sha256::digest(format!("syscost peer identity {text}"));
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A received description in a form that is safe for a record and a terminal: texts are cut and have no control
/// characters. `None` if the identity or the name of the driver, by which results are named, is invalid.
pub(super) fn sanitize_station(station: &Station) -> Option<Station> {
    let identity = &station.identity;
    let is_hash = identity.len() == 16 && identity.bytes().all(|digit| digit.is_ascii_hexdigit());
    let driver = station.interface.as_ref().and_then(|interface| interface.driver.as_ref());
    if !is_hash || driver.is_some_and(|driver| driver.len() >= LONGEST_DRIVER) {
        return None;
    }
    let mut told = serde_json::to_value(station).ok()?;
    sanitize_value(&mut told);
    parse_value(told.to_string().as_bytes()).ok()
}

fn sanitize_value(value: &mut Value) {
    match value {
        Value::String(text) => *text = sanitize_text(text),
        Value::Array(values) => values.iter_mut().for_each(sanitize_value),
        Value::Object(fields) => {
            fields.values_mut().for_each(sanitize_value);
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, value)| (sanitize_text(&name), value))
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn sanitize_text(text: &str) -> String {
    let shown = |c: char| if inert::is_hostile(c) { inert::TAKEN } else { c };
    text.chars().map(shown).take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_of_this_machine_passes_unchanged() {
        let local = "127.0.0.1".parse().unwrap();
        let told = describe_this_machine(local, local);
        assert_eq!(sanitize_station(&told), Some(told));
    }

    #[test]
    fn a_received_description_is_cut_and_has_no_control_characters() {
        let mut told = Station { identity: "0123456789abcdef".into(), ..Station::default() };
        told.fingerprint.cpu_model = Some("\u{1b}[2J fast".into());
        told.fingerprint.kernel_command_line = Some("x".repeat(60_000));
        told.fingerprint.mitigations.insert("a\nb".into(), "\u{7}".into());
        let kept = sanitize_station(&told).unwrap().fingerprint;
        assert_eq!(kept.cpu_model.as_deref(), Some("\u{fffd}[2J fast"));
        assert_eq!(kept.kernel_command_line.map(|text| text.len()), Some(LONGEST_TEXT));
        assert_eq!(kept.mitigations.into_iter().next(), Some(("a\u{fffd}b".into(), "\u{fffd}".into())));
    }

    #[test]
    fn an_invalid_identity_or_driver_name_is_refused() {
        let named = |identity: &str, driver: usize| Station {
            identity: identity.into(),
            interface: Some(Interface { driver: Some("d".repeat(driver)), ..Interface::default() }),
            ..Station::default()
        };
        assert!(sanitize_station(&named("0123456789abcdef", 31)).is_some());
        assert_eq!(sanitize_station(&named("0123456789abcdef", 32)), None);
        for identity in ["", "0123456789abcde", "0123456789abcdeg", "\u{1b}[2Jabcdefghijkl"] {
            assert_eq!(sanitize_station(&named(identity, 4)), None, "{identity:?}");
        }
    }
}
