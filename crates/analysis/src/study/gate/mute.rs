//! Muted cases: a gate ignores them until a given day, for a given reason.

use super::Finding;
use crate::error::{Error, Result};
use std::path::Path;
use syscost_engine::record::quantity::format_rfc3339;
use syscost_engine::record::store;
use toml::{Table, Value};

const REMEDY: &str =
    "write [\"group/variant/parameter\"] and under it reason = \"…\" and until = \"2027-01-31\"";
/// Seconds of a day.
pub const SECONDS_A_DAY: u64 = 86_400;

/// One muted case.
#[derive(Clone, Debug, PartialEq)]
struct Mute {
    /// The case.
    id: String,
    /// The reason for the mute.
    reason: String,
    /// The last day, as the file has it.
    until: String,
    /// `until` in days since 1970.
    last_day: u64,
}

/// The muted cases of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mutes(Vec<Mute>);

impl Mutes {
    /// Reads a file of the form
    ///
    /// ```toml
    /// ["syscall/stat"]
    /// reason = "two modes since the new path walk; under discussion"
    /// until = "2027-01-31"
    /// ```
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or has another key or no valid day.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = store::read(path)?;
        Self::parse(path, &String::from_utf8_lossy(&bytes))
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            content_error(path, "the whole file", "TOML", &error.message().replace('\n', ", "))
        })?;
        let mutes = table.into_iter().map(|(id, value)| parse_mute(path, id, &value));
        mutes.collect::<Result<_>>().map(Self)
    }

    /// The reason why this case is muted at `now` (Unix seconds); `None` if it is not muted.
    pub fn reason_for_case(&self, id: &str, now: u64) -> Option<String> {
        let is_muted = |mute: &&Mute| mute.id == id && now / SECONDS_A_DAY <= mute.last_day;
        self.0.iter().find(is_muted).map(|Mute { reason, until, .. }| format!("{reason} (until {until})"))
    }

    /// A sentence for each mute that has expired at `now` (Unix seconds).
    pub fn expired_sentences(&self, now: u64) -> Vec<String> {
        let over = self.0.iter().filter(|mute| now / SECONDS_A_DAY > mute.last_day);
        over.map(|Mute { id, reason, until, .. }| format!("the mute of {id} ended on {until}: {reason}"))
            .collect()
    }

    /// Marks the findings that are muted at `now`, Unix seconds. Returns a sentence for each mute that has expired or
    /// matches no case.
    pub fn apply(&self, findings: &mut [Finding], now: u64) -> Vec<String> {
        let today = now / SECONDS_A_DAY;
        let mut said = Vec::new();
        for mute in &self.0 {
            let Mute { id, reason, until, last_day } = mute;
            match findings.iter_mut().find(|finding| finding.id == *id) {
                None => said.push(format!("the mute of {id} has no case here")),
                Some(_) if today > *last_day => {
                    said.push(format!("the mute of {id} ended on {until}: {reason}"))
                }
                Some(finding) => finding.muted = Some(format!("{reason} (until {until})")),
            }
        }
        said
    }
}

fn parse_mute(path: &Path, id: String, value: &Value) -> Result<Mute> {
    let found = |value: Option<&Value>| value.map_or("nothing".into(), |v| format!("{} {v}", v.type_str()));
    let table = value.as_table();
    let table =
        table.ok_or_else(|| content_error(path, &format!("`{id}`"), "a table", &found(Some(value))))?;
    if let Some(key) = table.keys().find(|key| !["reason", "until"].contains(&key.as_str())) {
        return Err(content_error(
            path,
            &format!("`{id}`, key `{key}`"),
            "one of the keys reason, until",
            &found(table.get(key)),
        ));
    }
    let text = |key: &str, expected: &str| {
        let text = table.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| {
            content_error(path, &format!("`{id}`, key `{key}`"), expected, &found(table.get(key)))
        })
    };
    let reason = text("reason", "why it is overlooked, in quotes")?.to_owned();
    let until = text("until", "a day in quotes, such as \"2027-01-31\"")?.to_owned();
    let last_day = parse_day(&until).ok_or_else(|| {
        content_error(path, &format!("`{id}`, key `until`"), "a day such as 2027-01-31", &until)
    })?;
    Ok(Mute { id, reason, until, last_day })
}

fn content_error(path: &Path, field: &str, expected: &str, found: &str) -> Error {
    Error::invalid_content(path, field, expected, found, REMEDY)
}

/// The number of days since 1970-01-01 of a date such as `2027-01-31` (Hinnant, *chrono-Compatible Low-Level Date Algorithms*).
/// `None` for an invalid date.
pub fn parse_day(text: &str) -> Option<u64> {
    let mut parts = text.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let is_plausible = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if parts.next().is_some() || !is_plausible {
        return None;
    }
    // Years run from 1 March to the end of February, so that the leap day is the last of a year. An era has 400 years.
    let from_march = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = from_march % 400 * 365 + from_march % 400 / 4 - from_march % 400 / 100 + of_year;
    let days = from_march / 400 * 146_097 + of_era - 719_468;
    // An invalid date, such as 30 February, gives the days of another date.
    let written = format_rfc3339(days * SECONDS_A_DAY);
    written.starts_with(&format!("{year}-{month:02}-{day:02}")).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::gate::Progress;
    use syscost_engine::record::Verdict;

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(parse_day("1970-01-01"), Some(0));
        assert_eq!(parse_day("2000-03-01"), Some(11_017));
        assert_eq!(parse_day("2026-11-20"), Some(1_795_132_800 / SECONDS_A_DAY));
        for wrong in
            ["", "2027", "2027-02-29", "2027-13-01", "2027-01-32", "27-1-1", "2027-01-01-01", "x-y-z"]
        {
            assert_eq!(parse_day(wrong), None, "{wrong}");
        }
    }

    fn parse(text: &str) -> Result<Mutes> {
        Mutes::parse(Path::new("mute.toml"), text)
    }

    #[test]
    fn a_mute_lasts_until_the_end_of_its_day() {
        let mutes = parse("[\"a/b\"]\nreason = \"known\"\nuntil = \"1970-01-03\"").unwrap();
        let (id, reason, progress) = ("a/b".into(), None, Progress::Measured);
        let slower = Finding {
            id,
            verdict: Verdict::Slower,
            change: None,
            reason,
            canary: false,
            progress,
            muted: None,
            grown: None,
        };
        let mut on_the_day = [slower.clone()];
        assert!(mutes.apply(&mut on_the_day, 3 * SECONDS_A_DAY - 1).is_empty());
        assert!(on_the_day[0].muted.is_some());
        let mut after = [slower];
        assert!(mutes.apply(&mut after, 3 * SECONDS_A_DAY)[0].contains("ended on 1970-01-03"));
        assert!(after[0].muted.is_none());
    }

    #[test]
    fn an_invalid_entry_is_named() {
        for (text, named) in [
            ("[\"a/b\"]\nreason = \"x\"", "until"),
            ("[\"a/b\"]\nuntil = \"2027-01-01\"", "reason"),
            ("[\"a/b\"]\nreason = \"x\"\nuntil = \"soon\"", "soon"),
            ("[\"a/b\"]\nreasons = \"x\"", "reasons"),
            ("a = 1", "`a`"),
            ("[", "TOML"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains("mute.toml") && message.contains(named), "{message}");
        }
    }
}
