//! `syscost history changes`: prints the changes of a history and their times, one paragraph for each event.

use super::Place;
use crate::record::history_point::HistoryPoint;
use crate::study::change_event::{ChangeEvent, Moved, find_change_events};
use crate::study::ratio_series::NORMAL;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_analysis::study::gate::{Mutes, SECONDS_A_DAY, parse_day};
use syscost_command_line::flag::Form;
use syscost_command_line::page::{self, Tone, inert};
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity;
use syscost_engine::render::table::Layout;
use syscost_platform::error::Result;

/// The most cases of an event that are named.
const NAMED: usize = 4;

/// Print the changes and their times
///
/// Cases that changed at one point are one event, shown with the other changes there: kernel, command line, mitigations,
/// microcode, compiler, label. In a pipe, a line for each case: when, slower or faster, the change in per cent, its standard error,
/// the case, the label, `canary` if neither side can change it, and the reason if it is muted. `--json` has all of it. Exit code 1
/// if a case that is not muted became slower.
#[derive(clap::Args)]
pub(in crate::command) struct Args {
    /// Only changes that were found on this day or later, such as 2026-11-20
    #[arg(long, value_name = "DAY", value_parser = first_second_of_day)]
    since: Option<u64>,
    /// TOML file of cases to overlook: a table an id, with reason and until
    #[arg(long, value_name = "FILE")]
    mute: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    place: Place,
}

/// The Unix time of the beginning of a day in UTC, seconds.
pub(super) fn first_second_of_day(text: &str) -> std::result::Result<u64, &'static str> {
    parse_day(text).map(|days| SECONDS_A_DAY * days).ok_or("expected a day such as 2026-11-20")
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mutes = args.mute.as_deref().map_or_else(|| Ok(Mutes::default()), Mutes::read)?;
    let (points, series) = args.place.read_series()?;
    let since = args.since.unwrap_or(0);
    let mut events = find_change_events(&points, &series);
    events.retain(|event| points[event.found].started >= since);
    mutes.expired_sentences(quantity::unix_now()).iter().for_each(page::warn);
    let report = Report { events, points: &points, cases: series.len(), mutes };
    args.form.write(
        || report.to_json(),
        || page::tabbed_rows(report.rows()),
        |layout| report.render(layout),
    )?;
    Ok(Exit::failed_if(report.events.iter().any(|event| report.is_alarm(event))).into())
}

/// The changes in a history, to be printed.
struct Report<'a> {
    events: Vec<ChangeEvent>,
    points: &'a [HistoryPoint],
    /// The number of cases in the history.
    cases: usize,
    mutes: Mutes,
}

impl Report<'_> {
    /// The reason for which a case is muted; `None` if it is not.
    fn muted(&self, moved: &Moved) -> Option<String> {
        self.mutes.reason_for_case(&moved.id, quantity::unix_now())
    }

    /// Whether a case that is not muted became slower.
    fn is_alarm(&self, event: &ChangeEvent) -> bool {
        event.slower_cases().any(|moved| self.muted(moved).is_none())
    }

    fn rows(&self) -> Vec<[String; 8]> {
        let row = |event: &ChangeEvent, moved: &Moved| {
            let point = &self.points[event.at];
            [
                page::utc_moment(point.started),
                if moved.change > 0.0 { "slower" } else { "faster" }.into(),
                format!("{:+.2}", 100.0 * moved.change),
                format!("{:.2}", 100.0 * moved.error),
                moved.id.clone(),
                point.label.clone(),
                if moved.canary { "canary" } else { "" }.into(),
                self.muted(moved).unwrap_or_default(),
            ]
        };
        self.events.iter().flat_map(|event| event.moved.iter().map(move |moved| row(event, moved))).collect()
    }

    fn to_json(&self) -> Value {
        let functions = |moved: &Moved| -> Vec<Value> {
            moved.functions.iter().map(|(name, by)| json!([inert(name), by])).collect()
        };
        let moved = |moved: &Moved| json!({"case": inert(&moved.id), "change": moved.change, "error": moved.error, "canary": moved.canary, "muted": self.muted(moved), "functions": functions(moved)});
        let point = |at: usize| {
            let HistoryPoint { run, started, label, reference, .. } = &self.points[at];
            json!({"run": inert(run), "started": started, "label": inert(label), "reference": inert(reference)})
        };
        let event = |event: &ChangeEvent| {
            let profile: Map<String, Value> =
                event.profile.iter().map(|d| (d.field.into(), json!([d.theirs, d.ours]))).collect();
            json!({
                "before": point(event.before), "after": point(event.at), "found": point(event.found),
                "machine": profile, "moved": event.moved.iter().map(moved).collect::<Vec<_>>(),
            })
        };
        let clock = self.points.first().map(|point| point.clock.to_string());
        let events: Vec<_> = self.events.iter().map(event).collect();
        json!({"points": self.points.len(), "cases": self.cases, "clock": clock, "events": events})
    }

    fn render(&self, layout: Layout) -> String {
        let points = page::count_with_noun(self.points.len(), "point", "points");
        let mut scope = format!("{points} of {}", page::count_with_noun(self.cases, "case", "cases"));
        if let Some(caution) = self.points.first().and_then(|point| point.clock.clock_warning()) {
            scope += &format!(": {caution}");
        }
        if self.events.is_empty() {
            return format!("Nothing changed in {scope}.\n");
        }
        let head = format!("{} in {scope}:\n", page::count_with_noun(self.events.len(), "event", "events"));
        head + &self
            .events
            .iter()
            .map(|event| format!("\n{}", self.event_text(event, layout)))
            .collect::<String>()
    }

    fn event_text(&self, event: &ChangeEvent, layout: Layout) -> String {
        let (point, before) = (&self.points[event.at], &self.points[event.before]);
        let width = page::prose_width(layout);
        let tone = if self.is_alarm(event) { Tone::Red } else { Tone::Bold };
        let head = format!("{}  {}", page::utc_moment(point.started), event_headline(event));
        let mut lines = vec![page::paint(tone, &head, layout)];
        lines.push(page::wrap("    between ", &format!("{} and {}", before.label, point.label), width));
        for difference in &event.profile {
            let text = format!("{}: {} -> {}", difference.field, difference.theirs, difference.ours);
            lines.push(page::wrap("    ", &text, width));
        }
        for moved in event.moved.iter().take(NAMED) {
            let why = match (moved.canary, self.muted(moved)) {
                (true, _) => "  a canary, which neither side can change: the machine did".to_owned(),
                (false, Some(reason)) => format!("  muted: {reason}"),
                (false, None) => String::new(),
            };
            let change = format!("{:+.2} % ±{:.2}", 100.0 * moved.change, 100.0 * NORMAL * moved.error);
            lines.push(format!("    {change:<16} {}{why}", moved.id));
            lines.extend(functions_text(moved).map(|text| page::wrap("        ", &text, width)));
        }
        if let Some(more) = event.moved.len().checked_sub(NAMED).filter(|more| *more > 0) {
            lines.push(format!("    and {more} more; in a pipe, each has its line"));
        }
        if event.moved.iter().any(|moved| !moved.canary) {
            lines.push(page::wrap("    again: ", &confirm_command(point), width));
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }
}

/// The functions whose instructions changed most, as text: `instructions: +74.00 fdget_pos, -68.00 __fget_light`.
fn functions_text(moved: &Moved) -> Option<String> {
    let one = |(name, by): &(String, f64)| format!("{by:+.2} {}", inert(name));
    let list: Vec<_> = moved.functions.iter().map(one).collect();
    (!list.is_empty()).then(|| format!("instructions: {}", list.join(", ")))
}

/// The command that compares both sides again, which distinguishes a change from an outlier. The label is inserted
/// only if it is plain text that is safe in a shell, because it comes from a file.
fn confirm_command(point: &HistoryPoint) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.-: ".contains(c);
    let is_plain = point.label.chars().all(is_plain) && !point.label.starts_with('-');
    if is_plain && !point.label.is_empty() {
        format!("syscost history confirm '{}'", point.label)
    } else {
        "syscost history confirm LABEL".into()
    }
}

/// The number of cases that changed, and the range of their changes: `14 slower by 0.8 to 3.1 %, 1 faster by 2.0 %`.
fn event_headline(event: &ChangeEvent) -> String {
    let part = |moved: Vec<&Moved>, word: &str| {
        let shares = moved.iter().map(|moved| 100.0 * moved.change.abs());
        let (least, most) = shares.fold((f64::MAX, 0.0_f64), |(l, m), share| (l.min(share), m.max(share)));
        match moved.len() {
            0 => None,
            1 => Some(format!("1 {word} by {most:.1} %")),
            all => Some(format!("{all} {word} by {least:.1} to {most:.1} %")),
        }
    };
    let canaries: Vec<_> = event.moved.iter().filter(|moved| moved.canary).collect();
    let parts = [
        part(event.slower_cases().collect(), "slower"),
        part(event.faster_cases().collect(), "faster"),
        part(canaries, "canaries moved"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_day_is_parsed_and_others_are_refused() {
        assert_eq!(first_second_of_day("1970-01-01"), Ok(0));
        assert_eq!(first_second_of_day("2026-11-20"), Ok(1_795_132_800));
        assert_eq!(first_second_of_day("2024-02-29"), Ok(1_709_164_800));
        for wrong in ["", "2026", "2026-13-01", "2026-11-20x", "-1-1-1", "1969-12-31"] {
            assert!(first_second_of_day(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_headline_counts_both_directions() {
        let moved = |change: f64| Moved {
            id: "a/b".into(),
            canary: false,
            change,
            error: 0.001,
            functions: Vec::new(),
        };
        let event = |changes: &[f64]| ChangeEvent {
            at: 1,
            before: 0,
            found: 2,
            moved: changes.iter().map(|change| moved(*change)).collect(),
            profile: Vec::new(),
        };
        assert_eq!(
            event_headline(&event(&[0.031, 0.008, -0.02])),
            "2 slower by 0.8 to 3.1 %, 1 faster by 2.0 %"
        );
        assert_eq!(event_headline(&event(&[0.05])), "1 slower by 5.0 %");
    }
}
