//! The probe's own cost, as JSON and as a table.

use serde_json::json;
use syscost_command_line::page;
use syscost_counters::probe_cost::ProbeCost;
use syscost_engine::record::quantity::{format_duration, format_size};

pub(super) fn cost_json(cost: &ProbeCost, rate: u32) -> serde_json::Value {
    json!({"cost": {
        "rate": rate,
        "blocks": cost.blocks.len(),
        "missed": cost.missed,
        "seconds": cost.elapsed.as_secs_f64(),
        "cpu_ns": cost.cpu_time().as_nanos() as u64,
        "cpu_percent": cost.cpu_percent(),
        "block_ns": {"min": cost.blocks.min(), "median": cost.blocks.value_at_quantile(0.5)},
        "period_ns": {
            "median": cost.periods.value_at_quantile(0.5),
            "deviation": cost.periods.stdev(),
            "max": cost.periods.max(),
        },
        "resident_bytes": {"first": cost.resident[0], "last": cost.resident[1]},
        "descriptors": {"first": cost.descriptors[0], "last": cost.descriptors[1]},
    }})
}

pub(super) fn render_cost(cost: &ProbeCost, rate: u32) -> String {
    let ns = |value: u64| format_duration(value as f64);
    let (blocks, missed, percent) = (cost.blocks.len(), cost.missed, cost.cpu_percent());
    let (cpu, seconds) = (ns(cost.cpu_time().as_nanos() as u64), cost.elapsed.as_secs_f64());
    let mut rows = vec![
        ["blocks", &format!("{blocks} at {rate} a second, {missed} deadlines missed")].map(str::to_owned),
        ["cpu", &format!("{percent:.3} % of one CPU by the process's clock: {cpu} in {seconds:.2} s")]
            .map(str::to_owned),
    ];
    let mut row = |name: &str, text: String| rows.push([name.to_owned(), text]);
    if blocks > 1 {
        let median = ns(cost.periods.value_at_quantile(0.5));
        let (deviation, longest) = (format_duration(cost.periods.stdev()), ns(cost.periods.max()));
        row("period", format!("median {median}, deviation {deviation}, longest {longest}"));
    }
    if blocks > 0 {
        let (median, least) = (ns(cost.blocks.value_at_quantile(0.5)), ns(cost.blocks.min()));
        row("block", format!("median {median}, least {least}"));
    }
    let [first, last] = cost.resident;
    let grown = (last as i64 - first as i64) >> 10;
    row("memory", format!("{} resident, {grown:+} KiB since the second block", format_size(last)));
    let [before, open] = cost.descriptors;
    let constant = if before == open { "constant" } else { "NOT constant" };
    row("descriptors", format!("{open}, {constant}"));
    page::columns_text(&rows, usize::MAX)
}
