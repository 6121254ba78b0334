//! Names that are put into paths.

use super::Fault;

/// A name that is one part of a path and no way out of its directory.
pub(super) fn checked<'a>(kind: &str, name: &'a str) -> Result<&'a str, Fault> {
    let is_part = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    if is_part { Ok(name) } else { Err(Fault::Gone(format!("{kind} {name:?}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_elsewhere() {
        for name in ["", ".", "..", "../..", "a/b", "a\0b"] {
            assert!(checked("interface", name).is_err(), "{name:?}");
        }
        assert_eq!(checked("interface", "eth0.100").ok(), Some("eth0.100"));
    }
}
