//! The text above the comparison table and below it.

use crate::command::page::{Tone, inert, length, paint, wrap};
use crate::render::pad_right;
use crate::render::table::Layout;
use syscost_analysis::render::compared::LEGEND;
use syscost_analysis::study::comparison::{Baseline, Comparison};

/// Columns for names; a longer name has a line of its own.
const LONGEST: usize = 24;

/// What is compared, how the machines differ, and the legend.
pub fn render_heading(comparison: &Comparison, layout: Layout) -> String {
    let names: Vec<_> = comparison.baselines.iter().map(|baseline| baseline.name.as_str()).collect();
    let (first, others) = names.split_first().map_or(("", &[][..]), |(first, others)| (*first, others));
    let title = wrap("", &format!("{} against {first}", others.join(", ")), sentence_width(layout));
    let column = names.iter().map(|name| length(name)).max().unwrap_or(0).min(LONGEST) + 2;
    let baselines = comparison.baselines.iter().map(|baseline| baseline_lines(baseline, column, layout));
    let legend = wrap("", LEGEND, sentence_width(layout));
    format!("{}\n\n{}\n{legend}\n\n", paint(Tone::Bold, &title, layout), baselines.collect::<String>())
}

fn baseline_lines(baseline: &Baseline, column: usize, layout: Layout) -> String {
    let indent = " ".repeat(column);
    let name = match length(&baseline.name) {
        short if short + 2 <= column => pad_right(&inert(&baseline.name), column),
        _ => format!("{}\n{indent}", inert(&baseline.name)),
    };
    let summary = wrap(&indent, &baseline.summary(), sentence_width(layout));
    let mut text = name + summary.strip_prefix(&indent).unwrap_or(&summary) + "\n";
    for note in baseline.relation.iter().flat_map(|relation| relation.notes()) {
        let line = wrap(&indent, &note, sentence_width(layout));
        // A difference that is a mere fact may be what is compared; anything weightier is coloured.
        let line = if is_weighty(&note) { paint(Tone::Yellow, &line, layout) } else { line };
        text.push_str(&(line + "\n"));
    }
    text
}

fn is_weighty(note: &str) -> bool {
    ["warning", "incomparable", "another"].iter().any(|word| note.starts_with(word))
}

/// Why there are no verdicts, how many rows were left out, and the tally.
pub fn render_footer(comparison: &Comparison, layout: Layout) -> String {
    let remarks =
        comparison.remarks().into_iter().map(|remark| wrap("* ", &remark, sentence_width(layout)) + "\n");
    let mut text = format!("\n{}", remarks.collect::<String>());
    if comparison.left_out > 0 {
        let rows = if comparison.left_out == 1 { "1 row" } else { &format!("{} rows", comparison.left_out) };
        text.push_str(&wrap("", &format!("{rows} without a change left out"), sentence_width(layout)));
        text.push('\n');
    }
    let sum = comparison.tally.to_string();
    text + &wrap("", &sum, sentence_width(layout)) + "\n"
}

/// Columns for sentences; without a terminal each is one line.
fn sentence_width(layout: Layout) -> usize {
    layout.width.map_or(usize::MAX, usize::from)
}
