//! What to look at: a line for each kind of thing that is not as it should be, with the command that shows more.

use super::Line;
use crate::record::quantity::{size, times};
use crate::record::{CurveRecord, LevelRecord, Record};
use crate::render::cell;
use crate::study::standout::{FAR, Standouts, standouts};

/// Names of the farthest from what was expected.
const NAMED: usize = 3;

pub(super) fn lines(record: &Record, width: usize) -> Vec<Line> {
    let found = standouts(record);
    let before = [failed(&found), disturbed(&found), unsettled(&found), far(&found)];
    let names = farthest(&found).map(|names| Line::plain(cell::cut(&names, width)));
    let lines = before.into_iter().flatten().map(|told| line(told, width)).chain(names);
    let lines: Vec<Line> = lines.chain(levels(&found.levels).map(|told| line(told, width))).collect();
    let heading = match lines.is_empty() {
        true => {
            format!("Nothing to look at: every number is settled and within {FAR} times what was expected.")
        }
        false => "Look at these:".into(),
    };
    std::iter::once(Line::heading(cell::cut(&heading, width))).chain(lines).collect()
}

fn line((tone, text, command): (Tone, String, String), width: usize) -> Line {
    let text = cell::cut_before(&format!("  {text}"), &format!("  `syscost {command}`"), width);
    match tone {
        Tone::Failed => Line::failed(text),
        Tone::Warned => Line::warned(text),
        Tone::Plain => Line::plain(text),
    }
}

enum Tone {
    Plain,
    Warned,
    Failed,
}

/// A line, and the command that shows more.
type Told = Option<(Tone, String, String)>;

fn group(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
}

/// The command that shows the table of a case's group.
fn table(id: &str) -> String {
    format!("report {}", group(id))
}

fn first(list: &[(&str, &str)], tone: Tone, word: &str) -> Told {
    let (id, sentence) = list.first()?;
    Some((tone, format!("{} {word}: {id}: {sentence}", list.len()), table(id)))
}

fn failed(found: &Standouts<'_>) -> Told {
    first(&found.failed, Tone::Failed, "disproved or broken")
}

fn disturbed(found: &Standouts<'_>) -> Told {
    first(&found.disturbed, Tone::Warned, "disturbed")
}

fn unsettled(found: &Standouts<'_>) -> Told {
    let (id, half) = found.unsettled.first()?;
    let width =
        if *half < 1.0 { format!("±{:.0} %", 100.0 * half) } else { format!("≤{}", times(1.0 + half)) };
    let text = format!("{} not settled, the widest {id} {width}", found.unsettled.len());
    Some((Tone::Plain, text, table(id)))
}

fn far(found: &Standouts<'_>) -> Told {
    let farthest = found.far().next()?;
    let text = format!(
        "{} of {} are more than {FAR:.0}× off what was expected, the farthest:",
        found.far().count(),
        found.predicted.len()
    );
    Some((Tone::Plain, text, table(farthest.id)))
}

/// The farthest from what was expected, on a line of their own.
fn farthest(found: &Standouts<'_>) -> Option<String> {
    let named = found.far().take(NAMED).map(|case| format!("{} {}", times(case.ratio), case.id));
    let named = named.collect::<Vec<_>>().join(", ");
    (!named.is_empty()).then(|| format!("    {named}"))
}

fn levels(levels: &[(&CurveRecord, &LevelRecord)]) -> Told {
    let (curve, level) = levels.first()?;
    let (held, beyond) = level.step?;
    let name = level.name.as_deref().unwrap_or("a level");
    let reported = level.reported.map(size).unwrap_or_default();
    let text = format!("{name} ends between {} and {}, the kernel says {reported}", size(held), size(beyond));
    Some((Tone::Plain, text, table(&curve.prefix)))
}
