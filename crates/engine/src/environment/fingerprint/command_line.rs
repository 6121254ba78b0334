//! The kernel command line without values that identify a machine.

/// Parameters whose values name a disk, a host, an address or a key. They change no cost.
const NAMING: [&str; 15] = [
    "root",
    "resume",
    "BOOT_IMAGE",
    "initrd",
    "ip",
    "nfsroot",
    "nfsaddrs",
    "netconsole",
    "cryptdevice",
    "cryptkey",
    "ds",
    "hostname",
    "init",
    "rdinit",
    "mac",
];
/// Prefixes of further such parameters.
const NAMING_PREFIXES: [&str; 5] = ["rd.", "systemd.", "iscsi", "luks", "cloud-"];

/// Replaces the values that name something by `…`, and drops what follows ` -- `, which is for the first
/// program and not for the kernel.
pub(super) fn hide_naming_values(line: &str) -> String {
    let words = line.split_whitespace().take_while(|&word| word != "--");
    words.map(hide_naming_value).collect::<Vec<_>>().join(" ")
}

fn hide_naming_value(word: &str) -> String {
    match word.split_once('=') {
        Some((key, _)) if is_naming_parameter(key) => format!("{key}=…"),
        _ => word.to_owned(),
    }
}

fn is_naming_parameter(key: &str) -> bool {
    NAMING.contains(&key) || NAMING_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_and_addresses_are_left_out() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=0123-4567 ip=192.0.2.7::: rd.luks.uuid=x quiet";
        assert_eq!(hide_naming_values(line), "BOOT_IMAGE=… root=… ip=… rd.luks.uuid=… quiet");
    }

    #[test]
    fn parameters_that_change_a_cost_stay() {
        let line = "mitigations=off isolcpus=3 nohz_full=3 intel_pstate=disable";
        assert_eq!(hide_naming_values(line), line);
    }

    #[test]
    fn the_words_for_init_are_dropped() {
        assert_eq!(hide_naming_values("quiet -- --listen 192.0.2.7"), "quiet");
    }
}
