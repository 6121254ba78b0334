//! How `syscost displace` writes what was displaced, for a person and for a program.

use crate::command::page::{Tone, columns_text, paint, prose_width, wrap_sentences};
use crate::environment::Accounting;
use crate::record::quantity::{format_change, format_duration, format_interval};
use crate::render::table::Layout;
use crate::statistic::fluid_cost::Window;
use crate::statistic::{Interval, median};
use crate::trial::displaced_process::{Costs, Covered, Found};
use serde_json::{Value, json};

/// The estimators by the names under which they are shown.
fn named_estimators(costs: &Costs) -> [(&'static str, &Found); 4] {
    [
        ("accounting", &costs.charged),
        ("gap", &costs.gap),
        ("daemon-free", &costs.daemon_free),
        ("paper", &costs.paper),
    ]
}

pub fn render_costs(runs: &[Covered], accounting: &Accounting, layout: Layout) -> String {
    let costs = Costs::from_runs(runs);
    let elapsed: Vec<f64> = runs.iter().map(|run| run.replicate.covered.window.elapsed).collect();
    let cpus: Vec<_> = runs[0].cpus.iter().map(ToString::to_string).collect();
    let times = if runs.len() > 1 { format!(", {} runs", runs.len()) } else { String::new() };
    let empty = empty_run_ns(runs);
    let what = empty.map_or(String::new(), |_| format!("one operation, in runs of {}; ", operations(runs)));
    let head = format!(
        "{what}CPU {}, {} of its time{}{times}",
        cpus.join(","),
        format_duration(median(&elapsed)),
        if cpus.len() > 1 { " together" } else { "" }
    );
    let mut text = paint(Tone::Bold, &head, layout) + "\n";
    let rows: Vec<_> =
        named_estimators(&costs).iter().map(|(name, found)| estimator_row(name, found, &costs)).collect();
    text += &columns_text(&rows, prose_width(layout));
    if let Some(missed) = costs.missed_share() {
        text += &match missed >= 0.0 {
            true => format!("\naccounting missed {:.1} % of it\n", 100.0 * missed),
            false => format!("\naccounting charged {:.1} % more than it was\n", -100.0 * missed),
        };
    }
    if let Some(ns) = empty {
        text += &format!("\nsubtracted: the empty run, {}\n", format_duration(ns));
    }
    text + "\n" + &wrap_sentences(costs.flags.iter().chain(&accounting.setting_sentences()), layout)
}

/// Operations by which a run and its empty run differ.
fn operations(runs: &[Covered]) -> u64 {
    runs[0].replicate.covered.operations as u64
}

/// What an empty run took by the gap estimate, ns: the median. `None` if operations are not counted.
fn empty_run_ns(runs: &[Covered]) -> Option<f64> {
    let each: Vec<_> =
        runs.iter().filter(|run| run.empty.is_some()).filter_map(|run| run.replicate.empty.gap).collect();
    (!each.is_empty()).then(|| median(&each))
}

fn estimator_row(name: &str, found: &Found, costs: &Costs) -> [String; 4] {
    let beyond = |value: &Interval| match (&costs.charged, name) {
        (Ok(charged), "gap" | "daemon-free" | "paper") => format_change(value.estimate / charged.estimate),
        _ => String::new(),
    };
    match found {
        Ok(value) if value.low < value.high => {
            [name.into(), format_duration(value.estimate), beyond(value), format_interval(value, "ns")]
        }
        Ok(value) => [name.into(), format_duration(value.estimate), beyond(value), String::new()],
        Err(why) => [name.into(), "–".into(), String::new(), why.clone()],
    }
}

pub fn costs_json(runs: &[Covered], accounting: &Accounting) -> Value {
    let costs = Costs::from_runs(runs);
    let value = |found: &Found| match found {
        Ok(interval) => json!({ "ns": interval.estimate, "low": interval.low, "high": interval.high }),
        Err(why) => json!({ "missing": why }),
    };
    let named = named_estimators(&costs).into_iter().map(|(name, found)| (name.to_owned(), value(found)));
    json!({
        "cpus": runs[0].cpus,
        "operations": operations(runs),
        "empty_run_ns": empty_run_ns(runs),
        "columns": named.collect::<serde_json::Map<_, _>>(),
        "missed": costs.missed_share(),
        "flags": costs.flags,
        "accounting": accounting.setting_sentences(),
        "runs": runs.iter().map(run_json).collect::<Vec<_>>(),
    })
}

fn run_json(run: &Covered) -> Value {
    let covered = &run.replicate.covered;
    json!({
        "elapsed_ns": covered.window.elapsed,
        "charged_ns": covered.charged,
        "deferred_interrupts_ns": covered.deferred,
        "others_share": covered.others_share(),
        "stolen_ticks": run.replicate.stolen_ticks,
        "exit_code": run.code.unwrap_or(0),
        "series": run.series.iter().map(|window| window_json(window, run)).collect::<Vec<_>>(),
    })
}

/// One interval of the series: the time that the fluid lost in it, computed with the interval's own time per loop.
fn window_json(window: &Window, run: &Covered) -> Value {
    let usual = run.replicate.before.interrupts;
    let displaced = window.mean_undisturbed_turn().map(|turn| {
        let lost = window.elapsed - window.loops * (turn + usual);
        lost.clamp(0.0, window.elapsed)
    });
    json!({ "elapsed_ns": window.elapsed, "displaced_ns": displaced, "fluid_ns": window.own })
}
