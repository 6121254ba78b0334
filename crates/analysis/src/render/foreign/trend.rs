//! JSON for services that draw trends: Bencher and github-action-benchmark. In both a smaller value is better.

use crate::error::Result;
use crate::render::format::indented_json;
use serde_json::{Map, json};
use syscost_engine::record::quantity::NANOSECONDS;
use syscost_engine::record::{Interval, Record};

/// Bencher Metric Format: by case, by measure, value with its ends. The measure `latency` is in nanoseconds by Bencher's own
/// definition; a count is a measure with the name of its event.
///
/// # Errors
/// Never in practice: the text is made in memory.
pub fn bencher_json(record: &Record) -> Result<String> {
    let measure = if record.unit == NANOSECONDS { "latency" } else { &*record.unit };
    let cases = case_figures(record).map(|(id, Interval { estimate, low, high })| {
        let metric = json!({ "value": estimate, "lower_value": low, "upper_value": high });
        (id.to_owned(), json!({ measure: metric }))
    });
    indented_json(&record.run, &cases.collect::<Map<_, _>>())
}

/// The list that github-action-benchmark takes as `customSmallerIsBetter`.
///
/// # Errors
/// As those of [`bencher_json`].
pub fn action_benchmark_json(record: &Record) -> Result<String> {
    let cases = case_figures(record).map(|(id, Interval { estimate, low, high })| {
        json!({
            "name": id, "unit": record.unit, "value": estimate, "range": format!("± {}", (high - low) / 2.0),
            "extra": format!("next run in [{low}, {high}], 19 times in 20"),
        })
    });
    indented_json(&record.run, &cases.collect::<Vec<_>>())
}

fn case_figures(record: &Record) -> impl Iterator<Item = (&str, Interval)> {
    record.cases().filter_map(|(_, case)| Some((case.id.as_str(), case.measured()?.figure())))
}
