//! Flags of the harness of `cargo test` (libtest) and of cargo-nextest, which Criterion does not know. Scripts and editors hand them to every
//! target, benches too. Flags without a meaning here are accepted and ignored: cases never run in parallel or in another
//! order, and output is not captured.

use clap::{Arg, ArgAction};
use std::ffi::OsString;

/// Ignored flags.
const FLAGS: [&str; 6] =
    ["shuffle", "ensure-time", "exclude-should-panic", "force-run-in-process", "fail-fast", "no-capture"];
/// Ignored options with a value.
const VALUES: [&str; 3] = ["test-threads", "shuffle-seed", "logfile"];
/// Values of `--format`; the ids and the tables look the same in each.
pub(super) const FORMATS: &[&str] = &["pretty", "terse", "json", "junit"];

/// The arguments of libtest, declared so that clap accepts them.
pub(super) fn libtest_arguments() -> Vec<Arg> {
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let value = |name: &'static str| Arg::new(name).long(name).action(ArgAction::Append);
    let others = [
        value("skip"),
        Arg::new("unstable").short('Z').action(ArgAction::Append),
        value("report-time").num_args(0..=1).require_equals(true),
    ];
    FLAGS.map(flag).into_iter().chain(VALUES.map(value)).chain(others).collect()
}

/// Drops the flags of libtest, which Criterion does not know. Words after `--` stay as they are.
pub(super) fn drop_libtest_flags(raw: Vec<OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = raw.into_iter();
    while let Some(word) = words.next() {
        match judge_word(&word.to_string_lossy()) {
            Verdict::End => {
                kept.push(word);
                kept.extend(words);
                break;
            }
            Verdict::Keep => kept.push(word),
            Verdict::Replace(other) => kept.push(other.into()),
            Verdict::Drop => {}
            Verdict::DropWithValue => drop(words.next()),
        }
    }
    kept
}

enum Verdict {
    Keep,
    Replace(String),
    Drop,
    DropWithValue,
    End,
}

fn judge_word(word: &str) -> Verdict {
    if word == "--" {
        return Verdict::End;
    }
    let Some(long) = word.strip_prefix("--") else { return judge_short_flags(word) };
    let (name, has_value) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
    // `--copies`, `--all` and `--instructions` are of this crate, and `--quick` means another thing here.
    let takes_value = VALUES.contains(&name) || ["copies", "skip", "format"].contains(&name);
    let is_flag = FLAGS.contains(&name) || ["all", "instructions", "quick", "report-time"].contains(&name);
    match (takes_value, is_flag, has_value) {
        (true, _, false) => Verdict::DropWithValue,
        (true, _, true) | (_, true, _) => Verdict::Drop,
        _ => Verdict::Keep,
    }
}

/// `-q`, alone or among flags such as `-qv`, `-Z VALUE`, and `-P N`.
fn judge_short_flags(word: &str) -> Verdict {
    let Some(letters) = word.strip_prefix('-') else { return Verdict::Keep };
    let are_flags = !letters.is_empty() && letters.chars().all(|letter| "qvn".contains(letter));
    match letters {
        "Z" | "P" => Verdict::DropWithValue,
        _ if letters.starts_with(['Z', 'P']) => Verdict::Drop,
        _ if are_flags && letters.contains('q') => match letters.replace('q', "") {
            rest if rest.is_empty() => Verdict::Drop,
            rest => Verdict::Replace(format!("-{rest}")),
        },
        _ => Verdict::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &str) -> String {
        let words = line.split_ascii_whitespace().map(OsString::from).collect();
        drop_libtest_flags(words).join(&OsString::from(" ")).into_string().unwrap()
    }

    #[test]
    fn criterion_hears_of_its_own_flags_only() {
        for (line, known) in [
            ("--bench --test-threads=1 x", "--bench x"),
            ("--bench --test-threads 1 x", "--bench x"),
            ("--skip a --skip=b --exact x", "--exact x"),
            ("--format json --list", "--list"),
            ("--format=terse --list", "--list"),
            ("-q --bench", "--bench"),
            ("-qv --bench", "-v --bench"),
            ("-Z unstable-options --report-time=plain -Zx x", "x"),
            ("--report-time x", "x"),
            ("-P 2 --copies 2 -P4 --copies=4 --bench", "--bench"),
            ("--all --bench -- --all -q", "--bench -- --all -q"),
            ("-s quick -b base --nocapture --quiet", "-s quick -b base --nocapture --quiet"),
        ] {
            assert_eq!(kept(line), known, "{line}");
        }
    }
}
