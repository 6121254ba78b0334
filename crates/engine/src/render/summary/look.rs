//! What to look at: a line for each kind of thing that is not as it should be, with the command that shows more.

use super::{Line, Summary};
use crate::record::quantity::{format_ratio, format_size};
use crate::record::{CurveRecord, LevelRecord};
use crate::render::cell;
use crate::render::tone::Tone;
use crate::study::standout::{FAR, Standouts, find_standouts};

/// Names of the farthest from what was expected.
const NAMED: usize = 3;

pub fn look_lines(summary: &Summary<'_>, width: usize) -> Vec<Line> {
    let found = find_standouts(summary.record);
    let line = |told| look_line(told, summary.program, width);
    let before = [
        disputed_clock_look(summary),
        first_case_look(&found.failed, Tone::Red, "disproved or broken"),
        first_case_look(&found.disturbed, Tone::Yellow, "disturbed"),
        first_case_look(&found.unwitnessed, Tone::Yellow, "unwitnessed (a claim could not be asked)"),
        unsettled_look(&found),
        far_from_expected_look(&found),
    ];
    let names = farthest_line(&found, width).map(|names| Line::new(Tone::Plain, names));
    let lines = before.into_iter().flatten().map(line).chain(names);
    let lines: Vec<Line> = lines.chain(level_look(&found.levels).map(line)).collect();
    let heading = match lines.is_empty() {
        true => {
            format!("Nothing to look at: every number is settled and within {FAR} times what was expected.")
        }
        false => "Look at these:".into(),
    };
    std::iter::once(Line::new(Tone::Bold, cell::cut_to_width(&heading, width))).chain(lines).collect()
}

/// The worst thing that is not as it should be, if numbers are missing or in doubt for it.
pub fn worst_line(summary: &Summary<'_>, width: usize) -> Option<Line> {
    let found = find_standouts(summary.record);
    let worst = disputed_clock_look(summary)
        .or_else(|| first_case_look(&found.failed, Tone::Red, "disproved or broken"))
        .or_else(|| first_case_look(&found.disturbed, Tone::Yellow, "disturbed"));
    Some(look_line(worst?, summary.program, width))
}

fn look_line((tone, texts, command): (Tone, Vec<String>, String), program: &str, width: usize) -> Line {
    let behind = format!("  `{program} {command}`");
    let room = width.saturating_sub(2 + cell::display_width(&behind));
    Line::new(tone, cell::cut_to_width(&format!("  {}{behind}", super::fit_text(&texts, room)), width))
}

/// One line of the list: its tone, its text in several lengths, the longest first, and the command for more.
type Look = Option<(Tone, Vec<String>, String)>;

/// The command that shows the table of a case's group.
fn report_command(id: &str) -> String {
    format!("report --group {}", id.split('/').next().unwrap_or(id))
}

fn first_case_look(list: &[(&str, &str)], tone: Tone, word: &str) -> Look {
    let (id, sentence) = list.first()?;
    Some((tone, vec![format!("{} {word}: {id}: {sentence}", list.len())], report_command(id)))
}

/// The clocks contradict each other.
fn disputed_clock_look(summary: &Summary<'_>) -> Look {
    let group = summary.record.groups.iter().find(|group| group.clock.disputed.is_some())?;
    let (other, by) = group.clock.disputed.as_ref()?;
    let texts = [
        format!(
            "the clocks contradict each other by {:.1} % ({other}): every time is in doubt",
            100.0 * by.abs()
        ),
        format!("the clocks contradict each other by {:.1} %", 100.0 * by.abs()),
    ];
    Some((Tone::Red, texts.into(), format!("report --group {}", group.name)))
}

fn unsettled_look(found: &Standouts<'_>) -> Look {
    let (id, half) = found.unsettled.first()?;
    let width = if *half < 1.0 {
        format!("±{:.0} %", 100.0 * half)
    } else {
        format!("≤{}", format_ratio(1.0 + half))
    };
    let open = found.unsettled.len();
    let texts = [
        format!("{open} not settled (over 1 % apart, not as in the run before), most {id} {width}"),
        format!("{open} not settled, most {id} {width}"),
        format!("{open} not settled"),
    ];
    Some((Tone::Plain, texts.into(), report_command(id)))
}

fn far_from_expected_look(found: &Standouts<'_>) -> Look {
    let farthest = found.far_cases().next()?;
    let (far, all) = (found.far_cases().count(), found.predicted.len());
    let texts = [
        format!("{far} of {all} with an expectation are over {FAR:.0}× off it, the farthest:"),
        format!("{far} of {all} over {FAR:.0}× off the expected:"),
        format!("{far} of {all} over {FAR:.0}× off:"),
    ];
    Some((Tone::Plain, texts.into(), report_command(farthest.id)))
}

/// The farthest from what was expected, as many as fit whole on a line of their own: an id that is cut names nothing.
fn farthest_line(found: &Standouts<'_>, width: usize) -> Option<String> {
    let named = found.far_cases().take(NAMED).map(|case| format!("{} {}", format_ratio(case.ratio), case.id));
    let line = named.fold(String::new(), |line, name| {
        let longer = if line.is_empty() { format!("    {name}") } else { format!("{line}, {name}") };
        if cell::display_width(&longer) <= width { longer } else { line }
    });
    (!line.is_empty()).then_some(line)
}

fn level_look(levels: &[(&CurveRecord, &LevelRecord)]) -> Look {
    let (curve, level) = levels.first()?;
    let (held, beyond) = level.step?;
    let name = level.name.as_deref().unwrap_or("a level");
    let reported = level.reported.map(format_size).unwrap_or_default();
    let ends = format!(
        "{name} ends between {} and {}, the kernel says {reported}",
        format_size(held),
        format_size(beyond)
    );
    let short = format!("{name} ends by {}, not {reported}", format_size(beyond));
    Some((Tone::Plain, vec![ends, short], report_command(&curve.prefix)))
}
