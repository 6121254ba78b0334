//! What to look at: a line for each kind of thing that is not as it should be, with the command that shows more.

use super::{Line, Summary};
use crate::record::quantity::{size, times};
use crate::record::{CurveRecord, LevelRecord};
use crate::render::cell;
use crate::render::tone::Tone;
use crate::study::standout::{FAR, Standouts, standouts};

/// Names of the farthest from what was expected.
const NAMED: usize = 3;

pub fn lines(summary: &Summary<'_>, width: usize) -> Vec<Line> {
    let found = standouts(summary.record);
    let line = |told| line(told, summary.program, width);
    let before = [
        disputed(summary),
        first(&found.failed, Tone::Red, "disproved or broken"),
        first(&found.disturbed, Tone::Yellow, "disturbed"),
        first(&found.unwitnessed, Tone::Yellow, "unwitnessed (a claim could not be asked)"),
        unsettled(&found),
        far_from_expected(&found),
    ];
    let names = farthest_line(&found, width).map(|names| Line::new(Tone::Plain, names));
    let lines = before.into_iter().flatten().map(line).chain(names);
    let lines: Vec<Line> = lines.chain(levels(&found.levels).map(line)).collect();
    let heading = match lines.is_empty() {
        true => {
            format!("Nothing to look at: every number is settled and within {FAR} times what was expected.")
        }
        false => "Look at these:".into(),
    };
    std::iter::once(Line::new(Tone::Bold, cell::cut(&heading, width))).chain(lines).collect()
}

fn line((tone, texts, command): (Tone, Vec<String>, String), program: &str, width: usize) -> Line {
    let behind = format!("  `{program} {command}`");
    let room = width.saturating_sub(2 + cell::width(&behind));
    Line::new(tone, cell::cut(&format!("  {}{behind}", super::fit_text(&texts, room)), width))
}

/// A line in words, the longest first of which one is taken that has room; and the command that shows more.
type Look = Option<(Tone, Vec<String>, String)>;

/// The command that shows the table of a case's group.
fn table(id: &str) -> String {
    format!("report --group {}", id.split('/').next().unwrap_or(id))
}

fn first(list: &[(&str, &str)], tone: Tone, word: &str) -> Look {
    let (id, sentence) = list.first()?;
    Some((tone, vec![format!("{} {word}: {id}: {sentence}", list.len())], table(id)))
}

/// The clocks contradict each other.
fn disputed(summary: &Summary<'_>) -> Look {
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

fn unsettled(found: &Standouts<'_>) -> Look {
    let (id, half) = found.unsettled.first()?;
    let width =
        if *half < 1.0 { format!("±{:.0} %", 100.0 * half) } else { format!("≤{}", times(1.0 + half)) };
    let open = found.unsettled.len();
    let texts = [
        format!("{open} not settled (over 1 % apart, not as in the run before), most {id} {width}"),
        format!("{open} not settled, most {id} {width}"),
        format!("{open} not settled"),
    ];
    Some((Tone::Plain, texts.into(), table(id)))
}

fn far_from_expected(found: &Standouts<'_>) -> Look {
    let farthest = found.far().next()?;
    let (far, all) = (found.far().count(), found.predicted.len());
    let texts = [
        format!("{far} of {all} with an expectation are over {FAR:.0}× off it, the farthest:"),
        format!("{far} of {all} over {FAR:.0}× off the expected:"),
        format!("{far} of {all} over {FAR:.0}× off:"),
    ];
    Some((Tone::Plain, texts.into(), table(farthest.id)))
}

/// The farthest from what was expected, as many as fit whole on a line of their own: an id that is cut names nothing.
fn farthest_line(found: &Standouts<'_>, width: usize) -> Option<String> {
    let named = found.far().take(NAMED).map(|case| format!("{} {}", times(case.ratio), case.id));
    let line = named.fold(String::new(), |line, name| {
        let longer = if line.is_empty() { format!("    {name}") } else { format!("{line}, {name}") };
        if cell::width(&longer) <= width { longer } else { line }
    });
    (!line.is_empty()).then_some(line)
}

fn levels(levels: &[(&CurveRecord, &LevelRecord)]) -> Look {
    let (curve, level) = levels.first()?;
    let (held, beyond) = level.step?;
    let name = level.name.as_deref().unwrap_or("a level");
    let reported = level.reported.map(size).unwrap_or_default();
    let ends = format!("{name} ends between {} and {}, the kernel says {reported}", size(held), size(beyond));
    let short = format!("{name} ends by {}, not {reported}", size(beyond));
    Some((Tone::Plain, vec![ends, short], table(&curve.prefix)))
}
