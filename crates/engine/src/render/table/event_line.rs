//! Events an iteration, below the table: a line for each case, and one for each event that was not counted.

use crate::record::quantity::{format_amount, format_count, format_interval};
use crate::record::{CaseRecord, EventRate, Interval};

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
    fn a_case_has_its_rates_and_what_is_missing_is_told_once() {
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
