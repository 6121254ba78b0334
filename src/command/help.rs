//! `syscost help`: a topic of the manual, or the help of a command.

use super::manual_page::manual_page;
use super::{Line, page, reply};
use crate::harness::layout;
use crate::{Error, Result};
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

/// Name and text, in reading order. `src/manual.rs` shows the same texts in the crate's documentation.
const TOPICS: [(&str, &str); 12] = [
    ("method", include_str!("../manual/method.md")),
    ("claims", include_str!("../manual/claims.md")),
    ("comparing", include_str!("../manual/comparing.md")),
    ("ci", include_str!("../manual/ci.md")),
    ("records", include_str!("../manual/records.md")),
    ("curves", include_str!("../manual/curves.md")),
    ("peer", include_str!("../manual/peer.md")),
    ("displacement", include_str!("../manual/displacement.md")),
    ("counters", include_str!("../manual/counters.md")),
    ("techniques", include_str!("../manual/techniques.md")),
    ("library", include_str!("../manual/library.md")),
    ("limits", include_str!("../manual/limits.md")),
];

/// Print a topic of the manual, or the help of a command
///
/// Without an argument prints the commands and the topics. A name that is both, such as `peer`, is the topic;
/// `syscost peer --help` is the command's help.
#[derive(clap::Args)]
pub(super) struct Args {
    /// A topic, or a command with its subcommand
    #[arg(value_name = "TOPIC|COMMAND")]
    of: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let words: Vec<_> = args.of.iter().map(String::as_str).collect();
    if let [topic] = words[..] {
        if let Some((_, text)) = TOPICS.iter().find(|(name, _)| *name == topic) {
            page::write(&manual_page(text, layout()))?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    if let Some(unknown) = unknown(&words) {
        return Err(Error::Usage(format!(
            "there is no command and no topic {unknown}; the topics are {}; `syscost help` lists the commands, too",
            TOPICS.map(|(name, _)| name).join(", ")
        )));
    }
    let line = std::iter::once("syscost").chain(words).chain(["--help"]);
    Ok(Line::try_parse_from(line).map_or_else(|answer| reply(&answer), |_| ExitCode::SUCCESS))
}

/// The first word that names no command below the one before it.
fn unknown<'a>(words: &[&'a str]) -> Option<&'a str> {
    let mut command = Line::command();
    for word in words {
        match command.find_subcommand(word) {
            Some(found) => command = found.clone(),
            None => return Some(word),
        }
    }
    None
}

/// The topics, below the commands in `syscost help`.
pub(super) fn list() -> String {
    let title = |text: &str| text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
    let row = |(name, text): &(&str, &str)| format!("  {name:<13}{}\n", title(text));
    format!("Topics (syscost help TOPIC):\n{}", TOPICS.iter().map(row).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_is_a_file_and_a_module_of_the_documentation() {
        let modules = include_str!("../manual.rs");
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/manual")).expect("topics");
        assert_eq!(files.count(), TOPICS.len());
        for (name, text) in TOPICS {
            let module = format!("#[doc = include_str!(\"manual/{name}.md\")]\npub mod {name} {{}}");
            assert!(modules.contains(&module), "{name}");
            assert!(text.starts_with("# "), "{name}");
        }
    }
}
