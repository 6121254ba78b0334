//! What two configurations of a kernel differ by that bears on what an operation costs.

use std::collections::BTreeMap;
use std::path::Path;
use syscost_platform::error::Result;
use syscost_platform::plain_file;

/// Names, or beginnings of names, of options that bear on costs: the timer, preemption, mitigations, debugging.
const OPTIONS: [&str; 26] = [
    "HZ",
    "NO_HZ",
    "PREEMPT",
    "MITIGATION_",
    "PAGE_TABLE_ISOLATION",
    "RETPOLINE",
    "RETHUNK",
    "CPU_UNRET_ENTRY",
    "CPU_IBPB_ENTRY",
    "CPU_IBRS_ENTRY",
    "CPU_SRSO",
    "SLS",
    "DEBUG_LOCK",
    "DEBUG_PREEMPT",
    "DEBUG_VM",
    "DEBUG_PAGEALLOC",
    "DEBUG_ATOMIC",
    "PROVE_LOCKING",
    "LOCKDEP",
    "KASAN",
    "KCSAN",
    "UBSAN",
    "HARDENED_USERCOPY",
    "INIT_ON_",
    "RANDOMIZE_KSTACK_OFFSET",
    "TRANSPARENT_HUGEPAGE",
];
/// The largest file that is read as a configuration, bytes.
const LARGEST: u64 = 4 << 20;

/// Options and values. An option that is off is not in it.
type Configuration = BTreeMap<String, String>;

/// Reads a configuration.
///
/// # Errors
/// It is no plain file, too large, or cannot be read.
pub fn read(path: &Path) -> Result<String> {
    let bytes = plain_file::read(path, LARGEST)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse_options(text: &str) -> Configuration {
    let option = |line: &str| {
        let (name, value) = line.trim().strip_prefix("CONFIG_")?.split_once('=')?;
        OPTIONS.iter().any(|option| name.starts_with(option)).then(|| (name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(option).collect()
}

/// Options that matter and differ: `HZ: 250, then 1000`. A renamed mitigation counts as the one that it was.
pub fn differences(a: &str, b: &str) -> Vec<String> {
    let [a, b] =
        [a, b].map(|text| parse_options(text).into_iter().map(with_old_name).collect::<Configuration>());
    let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let value = |of: &Configuration, name: &String| {
        of.get(name).map_or("off".into(), |value| super::console::printable_line(value))
    };
    let differing = names.into_iter().filter(|name| a.get(*name) != b.get(*name));
    differing.map(|name| format!("{name}: {}, then {}", value(&a, name), value(&b, name))).collect()
}

/// Linux 6.9 and later begin the names of mitigations with `MITIGATION_`.
fn with_old_name((name, value): (String, String)) -> (String, String) {
    let old = name.strip_prefix("MITIGATION_").map(|rest| match rest {
        "UNRET_ENTRY" | "IBPB_ENTRY" | "IBRS_ENTRY" | "SRSO" => format!("CPU_{rest}"),
        rest => rest.to_owned(),
    });
    (old.unwrap_or(name), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_bears_on_costs_is_said() {
        let a = "CONFIG_HZ=250\nCONFIG_USB=y\n# CONFIG_PREEMPT_RT is not set\nCONFIG_RETPOLINE=y\n";
        let b = "CONFIG_HZ=1000\nCONFIG_USB=m\nCONFIG_PREEMPT_RT=y\nCONFIG_MITIGATION_RETPOLINE=y\n";
        assert_eq!(differences(a, b), ["HZ: 250, then 1000", "PREEMPT_RT: off, then y"]);
        assert!(differences(a, a).is_empty());
    }

    #[test]
    fn a_device_is_no_configuration() {
        assert!(read(Path::new("/dev/zero")).is_err());
    }
}
