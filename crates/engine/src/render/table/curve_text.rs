//! Text below the table on curves and events.

use super::{Layout, display_width};
use crate::record::quantity::{
    NANOSECONDS, format_amount, format_count, format_half_width, format_interval, format_size,
};
use crate::record::{CaseRecord, CurveRecord, EventRate, FallRecord, GroupRun, Interval, LevelRecord};
use crate::render::cell::align_columns;
use crate::render::terminal_plot::{curve_line, plot_lines};

const HEAD: [&str; 6] = ["level", "ends between", "kernel says", "latency", "ticks", "cycles"];

/// The lines with pictures of curves and tables of their levels, which must not be wrapped.
pub fn drawing_lines(groups: &[&GroupRun], layout: Layout) -> Vec<String> {
    let curves = || groups.iter().flat_map(|group| &group.curves);
    let mut lines = Vec::new();
    // Pictures are drawn only if a single group is shown; among all groups they would hide the numbers.
    if let [group] = groups {
        lines.extend(curve_pictures(group, layout));
    }
    for curve in curves().filter(|curve| !curve.levels.is_empty()) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(level_table(curve, layout));
    }
    lines
}

/// Sentences on the falls of curves, and the remarks on them.
pub fn curve_lines(groups: &[&GroupRun]) -> Vec<String> {
    let about = |curve: &CurveRecord| {
        let fall = curve.fall.iter().map(|fall| fall_line(curve, fall));
        let remarks = curve.remarks.iter().cloned();
        fall.chain(remarks).map(|sentence| format!("{}: {sentence}", curve.title)).collect::<Vec<_>>()
    };
    let mut sentences: Vec<String> = groups.iter().flat_map(|group| &group.curves).flat_map(about).collect();
    sentences.dedup();
    sentences
}

/// The first curve with levels or a fall as a picture, and each other curve on one line.
fn curve_pictures(group: &GroupRun, layout: Layout) -> Vec<String> {
    const FEWEST: usize = 3;
    let shown = |curve: &&CurveRecord| curve.points.len() >= FEWEST;
    let telling = |curve: &&CurveRecord| !curve.levels.is_empty() || curve.fall.is_some();
    let first = group.curves.iter().filter(shown).find(telling);
    let mut lines = first.map(|curve| plot_lines(curve, layout.width, layout.ascii)).unwrap_or_default();
    let others =
        group.curves.iter().filter(shown).filter(|curve| first.is_none_or(|f| !std::ptr::eq(f, *curve)));
    lines.extend(others.map(|curve| curve_line(curve, layout.ascii)));
    lines
}

fn level_table(curve: &CurveRecord, layout: Layout) -> Vec<String> {
    let limit = layout.width.map_or(usize::MAX, usize::from);
    let wide = level_rows(curve, true);
    let rows =
        if wide.iter().all(|line| display_width(line) <= limit) { wide } else { level_rows(curve, false) };
    std::iter::once(format!("levels of {} ({}):", curve.prefix, curve.title)).chain(rows).collect()
}

/// One line per level. With `both` the latency has both ends of its interval, without it the relative half width.
fn level_rows(curve: &CurveRecord, both: bool) -> Vec<String> {
    let head = HEAD.map(str::to_owned).to_vec();
    let cells = curve.levels.iter().map(|level| level_cells(level, both).to_vec());
    let lines = align_columns(&std::iter::once(head).chain(cells).collect::<Vec<_>>(), |at| {
        (![2, 4, 5].contains(&at), 2)
    });
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

fn level_cells(level: &LevelRecord, both: bool) -> [String; 6] {
    let latency = format_amount(level.latency.estimate, NANOSECONDS);
    let interval =
        if both { format_interval(&level.latency, NANOSECONDS) } else { format_half_width(&level.latency) };
    [
        level.name.clone().unwrap_or_default(),
        level.step.map_or_else(String::new, |(held, beyond)| {
            format!("{} and {}", format_size(held), format_size(beyond))
        }),
        level.reported.map_or_else(String::new, format_size),
        format!("{latency} {interval}"),
        level.ticks.map_or_else(String::new, format_count),
        level.cycles.map_or_else(String::new, format_count),
    ]
}

/// A sentence on where a curve falls, and from which value to which.
pub fn fall_line(curve: &CurveRecord, fall: &FallRecord) -> String {
    let with_unit = |value: f64| format!("{} {}", format_count(value), curve.unit);
    let (before, after) = (fall.before.estimate, fall.after.estimate);
    let (held, beyond) = (format_size(fall.step.0), format_size(fall.step.1));
    format!("falls between {held} and {beyond}, from {} to {}", with_unit(before), with_unit(after))
}

// Events per iteration, below the table: a line for each case, and one for each event that was not counted.

/// Rates below this come from other tasks and are shown as 0.
const NOTHING: f64 = 0.0005;

/// The lines of all cases; empty if the run counted no events.
pub fn event_lines<'a>(cases: impl Iterator<Item = &'a CaseRecord>) -> Vec<String> {
    let (mut lines, mut remarks) = (Vec::new(), Vec::new());
    for case in cases {
        let events = case.measured().map_or(&[][..], |measured| &measured.events);
        let rates: Vec<_> = events.iter().filter_map(event_rate_text).collect();
        if !rates.is_empty() {
            lines.push(format!("{}, an iteration: {}", case.id, rates.join(", ")));
        }
        for remark in events.iter().filter_map(event_remark) {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
    }
    lines.extend(remarks);
    lines
}

fn event_rate_text(event: &EventRate) -> Option<String> {
    let rate: Interval = event.rate?;
    let unit = if event.name == "task-clock" { "ns" } else { "" };
    Some(match (rate.estimate < NOTHING, rate.low == rate.high) {
        (true, _) => format!("{} 0", event.name),
        // A count that is the same in all batches: `2`, and not `2.000`.
        (_, true) if unit.is_empty() && rate.estimate.fract() == 0.0 => {
            format!("{} {}", event.name, rate.estimate)
        }
        (_, true) if unit.is_empty() => format!("{} {}", event.name, format_count(rate.estimate)),
        _ => {
            format!("{} {} {}", event.name, format_amount(rate.estimate, unit), format_interval(&rate, unit))
        }
    })
}

fn event_remark(event: &EventRate) -> Option<String> {
    let remark = event.remark.as_deref()?;
    Some(match event.rate {
        Some(_) => format!("{}: {remark}", event.name),
        None => format!("not counted: {remark}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measured, fixture_run};

    fn case(events: Vec<EventRate>) -> CaseRecord {
        fixture_run::measured_case("a/b", Measured { events, ..Measured::default() })
    }

    #[test]
    fn each_case_has_a_line_of_rates_and_an_uncounted_event_one_remark() {
        let counted = |name: &str, rate| EventRate { name: name.into(), rate: Some(rate), remark: None };
        let missing = EventRate { name: "instructions".into(), rate: None, remark: Some("no PMU".into()) };
        let events = vec![
            counted("page-faults", Interval::exactly(1.0)),
            counted("context-switches", Interval { estimate: 0.0001, low: 0.0, high: 0.001 }),
            missing,
        ];
        let lines = event_lines([case(events.clone()), case(events)].iter());
        let line = "a/b, an iteration: page-faults 1, context-switches 0";
        assert_eq!(lines, [line, line, "not counted: no PMU"]);
        assert!(event_lines([case(Vec::new())].iter()).is_empty());
    }
}
