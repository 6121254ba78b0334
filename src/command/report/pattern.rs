//! The cases of a record that a pattern selects.

use crate::error::{Error, Result};
use crate::record::Record;
use regex::Regex;

/// Keeps the cases whose ids match a pattern in which `*` stands for anything, and what was drawn and fitted through all of
/// those that a curve has.
///
/// # Errors
/// No case of the record matches.
pub(super) fn keep(record: &mut Record, pattern: &str) -> Result<()> {
    let matches = glob(pattern)?;
    for group in &mut record.groups {
        group.cases.retain(|case| matches.is_match(&case.id));
        let left = |prefix: &str| group.cases.iter().filter(|case| case.id.starts_with(prefix)).count();
        group.curves.retain(|curve| left(&curve.prefix) >= curve.points.len().max(1));
        group.fits.clear();
    }
    record.groups.retain(|group| !group.cases.is_empty());
    match record.groups.is_empty() {
        true => Err(Error::Usage(format!(
            "no case of this run matches {pattern:?}; `*` stands for anything, as in 'chase/*/256MiB'"
        ))),
        false => Ok(()),
    }
}

/// # Errors
/// The pattern is far too long.
fn glob(pattern: &str) -> Result<Regex> {
    let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
    let compiled = Regex::new(&format!("^{}$", parts.join(".*")));
    compiled.map_err(|error| Error::Usage(format!("--only: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    #[test]
    fn a_star_stands_for_anything_and_a_dot_for_itself() {
        let matches = |pattern: &str, id: &str| glob(pattern).unwrap().is_match(id);
        assert!(matches("chase/*/256MiB", "chase/random/256MiB") && matches("call/u64/3", "call/u64/3"));
        assert!(!matches("call/u64", "call/u64/3") && !matches("call.u64.3", "call/u64/3"));
    }

    #[test]
    fn what_nothing_matches_is_refused() {
        let mut record = fixture_run::record();
        assert!(keep(&mut record.clone(), "nothing*").unwrap_err().to_string().contains("nothing*"));
        keep(&mut record, "call/*").unwrap();
        assert!(record.cases().all(|(_, case)| case.id.starts_with("call/")));
    }
}
