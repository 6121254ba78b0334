//! Markdown of a manual on a terminal: headings, paragraphs, items of a list, rows of a table and fenced blocks.

use super::page::{self, Tone};
use crate::render::table::Layout;

/// Headings in bold without their marks, paragraphs and items wrapped. Tables and fenced blocks keep their lines,
/// comments and the fences themselves are left out.
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

/// A paragraph, or an item with its text hanging beside the mark, without the marks of bold type.
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
    use super::*;

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
