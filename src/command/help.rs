//! `syscost help TOPIC` prints a page of the manual. `syscost help COMMAND` is left to clap.

use super::page::{self, Tone};
use crate::driver::nearest_names;
use crate::error::Error;
use crate::manual::TOPICS;
use crate::render::table::Layout;
use std::ffi::OsString;

/// The rendered page, if this command line is `help` followed by a topic; otherwise `None`.
pub fn topic_page(line: &[OsString], layout: Layout) -> Option<String> {
    let [_, help, topic] = line else { return None };
    let (_, text) = TOPICS.iter().find(|(name, _)| help == "help" && topic == name)?;
    Some(render_manual_page(text, layout))
}

/// The error, if this command line is `help NAME` and NAME is neither a command nor a topic.
pub fn unknown_topic_error(line: &[OsString]) -> Option<Error> {
    let words: Vec<_> = line.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    let (help, of) = words.split_first()?;
    (help == "help").then(|| {
        Error::Usage(format!(
            "there is no command and no topic {}; the nearest topics are {}; `syscost help` lists all of both",
            of.join(" "),
            nearest_names(&of.join(" "), &TOPICS.map(|(name, _)| name.to_owned()))
        ))
    })
}

/// Adds a `help` with all commands and topics, so that a shell completes them: clap's own `help` has no topics.
/// `tools` are the commands of the tools.
pub fn add_help_topics(line: clap::Command, tools: Vec<clap::Command>) -> clap::Command {
    let commands: Vec<_> = line.get_subcommands().chain(&tools).map(outline_command).collect();
    let title = |text: &'static str| text.lines().next().unwrap_or_default().trim_start_matches("# ");
    let topics = TOPICS.map(|(name, text)| clap::Command::new(name).about(title(text)));
    let help = clap::Command::new("help").about("Print the help of a command, or a topic of the manual");
    let help =
        help.disable_help_subcommand(true).disable_help_flag(true).subcommands(commands).subcommands(topics);
    line.disable_help_subcommand(true).subcommand(help).subcommands(tools)
}

/// A copy of a command without flags: its name, its short help and its subcommands, which are reduced in the same way.
fn outline_command(command: &clap::Command) -> clap::Command {
    // clap keeps names for as long as the program lives.
    let name: &'static str = command.get_name().to_owned().leak();
    let bare = clap::Command::new(name).hide(command.is_hide_set());
    let about = command.get_about().cloned().unwrap_or_default();
    let below: Vec<_> = command.get_subcommands().map(outline_command).collect();
    bare.about(about).disable_help_subcommand(true).disable_help_flag(true).subcommands(below)
}

/// The list of topics that `syscost help` prints below the commands.
pub fn topics_text() -> String {
    let title = |text: &str| text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
    let row = |(name, text): &(&str, &str)| format!("  {name:<12}  {}\n", title(text));
    format!("Topics (syscost help TOPIC):\n{}", TOPICS.iter().map(row).collect::<String>())
}

// Markdown of a manual on a terminal: headings, paragraphs, items of a list, rows of a table and fenced blocks.

/// Renders a page: headings become bold and lose their marks, paragraphs and items are wrapped. Tables and fenced blocks
/// keep their lines; comments and the fences are left out.
pub fn render_manual_page(source: &str, layout: Layout) -> String {
    let mut text = String::new();
    let mut paragraph = Vec::new();
    let mut fenced = false;
    for line in source.lines() {
        let fence = line.starts_with("```");
        let ends = line.is_empty() || fence || line.starts_with(['#', '|', '<']) || line.starts_with("* ");
        if fenced || ends {
            text += &wrap_paragraph(&std::mem::take(&mut paragraph), layout);
        }
        fenced ^= fence;
        match line.trim_start_matches('#').strip_prefix(' ') {
            _ if fence => {}
            _ if fenced || line.starts_with('|') => text += format!("  {line}").trim_end(),
            Some(heading) if line.starts_with('#') => text += &page::paint(Tone::Bold, heading, layout),
            _ if line.starts_with("<!--") => {}
            _ if line.is_empty() => {}
            _ => {
                paragraph.push(line);
                continue;
            }
        }
        if !fence && !line.starts_with("<!--") {
            text.push('\n');
        }
    }
    text + &wrap_paragraph(&paragraph, layout)
}

/// Wraps a paragraph, or a list item with its text indented behind the mark. Marks of bold type are removed.
fn wrap_paragraph(lines: &[&str], layout: Layout) -> String {
    let text = lines.join(" ").replace("**", "");
    match text.strip_prefix("* ") {
        _ if lines.is_empty() => text,
        Some(item) => page::wrap("  * ", item, page::prose_width(layout)) + "\n",
        None => page::wrap("  ", &text, page::prose_width(layout)) + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tool;
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_topic_is_a_file_with_a_title() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/manual")).expect("topics");
        assert_eq!(files.count(), TOPICS.len());
        for (name, text) in TOPICS {
            assert!(text.starts_with("# "), "{name}");
        }
    }

    #[test]
    fn no_topic_hides_a_command() {
        let line = super::super::Line::command();
        for (name, _) in TOPICS {
            let is_of_tool = tool::COMMANDS.iter().any(|(command, ..)| *command == name);
            assert!(line.find_subcommand(name).is_none() && !is_of_tool, "{name}");
        }
    }

    #[test]
    fn a_manual_is_wrapped_and_its_headings_lose_their_marks() {
        let source = "# What is timed\none\n`two`\n\nthree\n* an\n  item\n## Source\nfour\n";
        let text = render_manual_page(source, Layout::default());
        assert_eq!(text, "What is timed\n  one `two`\n\n  three\n  * an item\nSource\n  four\n");
    }

    #[test]
    fn a_fenced_block_keeps_its_lines_and_comments_vanish() {
        let source = "Run\n\n<!-- begin: x -->\n```sh\na   # b\n\n# c\n```\n<!-- end -->\n";
        assert_eq!(render_manual_page(source, Layout::default()), "  Run\n\n  a   # b\n\n  # c\n");
    }
}
