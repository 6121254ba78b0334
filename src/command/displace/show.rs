//! What was displaced, for a person and for a program.

use super::measure::Cover;
use crate::command::page::{Tone, aligned, paint, prose, wrap};
use crate::environment::Accounting;
use crate::record::quantity::{change, duration, ends};
use crate::render::table::Layout;
use crate::statistic::fluid_cost::{Cost, Nonsense, QUIET, Totals, Window};
use crate::statistic::fluid_cost::{Replicate, Spoilt, Summary};
use crate::statistic::student::FEWEST;
use crate::statistic::{Interval, median};
use serde_json::{Value, json};

/// A column's value, or why there is none.
type Found = Result<Interval, String>;

/// What must be said of a service.
const NEVER_ALONE: &str = "the process ran before it was watched: the interrupts that work for it cannot be told from those \
                           that come anyway, such as the tick. The lower ends leave out whatever came as often before, \
                           the estimates nothing";
/// Why a service beside others has no number but that of accounting.
const AMONG_OTHERS: &str = "beside other tasks what interrupts do for a process that ran before cannot be told from what they \
                            do for those";

/// Why a service on a processor that changed its pace has none either.
const UNEVEN: &str =
    "the processor changed its pace meanwhile: what slowed the fluid cannot be told from what interrupted it";

/// What all runs say together. One run has no interval, and its ends are its value.
struct Columns {
    paper: Found,
    gap: Found,
    daemon_free: Found,
    charged: Found,
    flags: Vec<String>,
}

impl Columns {
    fn of(covers: &[Cover]) -> Self {
        let runs: Vec<_> = covers.iter().map(|cover| cover.replicate).collect();
        match covers {
            [Cover { replicate, least: Some(least), .. }] => Self::of_one(replicate).down_to(least),
            [one] => Self::of_one(&one.replicate),
            _ => Self::of_several(&runs),
        }
    }

    /// Of a service, with what there is at least.
    fn down_to(self, least: &Replicate) -> Self {
        let found = least.estimate(&Totals::default());
        let window = &least.covered.window;
        let quiet = least.covered.others_share() <= QUIET && least.stolen() <= QUIET * window.elapsed;
        // What the hypervisor took the fluid cannot tell from what interrupts did.
        let least_of = |cost: Cost| Some(cost.ns() - least.stolen()).filter(|low| *low > 0.0);
        let bounded = |column: Found, least: Option<Result<Cost, Nonsense>>| match least
            .and_then(Result::ok)
            .and_then(least_of)
        {
            _ if window.is_uneven() => Err(UNEVEN.into()),
            _ if !quiet => Err(AMONG_OTHERS.into()),
            Some(low) => column.map(|found| Interval { low: low.min(found.estimate), ..found }),
            None => column.and(Err("it cannot be told from none".into())),
        };
        Self {
            paper: bounded(self.paper, Some(found.paper)),
            gap: bounded(self.gap, Some(found.gap)),
            daemon_free: bounded(self.daemon_free, found.daemon_free),
            flags: self.flags.into_iter().chain([NEVER_ALONE.into()]).collect(),
            ..self
        }
    }

    fn of_one(run: &Replicate) -> Self {
        let estimate = run.estimate(&Totals::default());
        let found = |cost: Result<Cost, Nonsense>| {
            let point = |cost: Cost| Interval { estimate: cost.ns(), low: cost.ns(), high: cost.ns() };
            cost.map(point).map_err(|nonsense| nonsense.to_string())
        };
        let spoilt = run.spoilt();
        let paper = match spoilt {
            Some(spoilt) => Err(because(spoilt, run)),
            None => found(estimate.paper),
        };
        let gap = found(estimate.gap);
        let daemon_free = estimate.daemon_free.map(found);
        let mut flags: Vec<_> = spoilt.map(|spoilt| because(spoilt, run)).into_iter().collect();
        flags.extend(disagreement(&gap, daemon_free.as_ref()));
        let apart = "the kernel charges interrupts to nobody: they cannot be told from other tasks";
        Self {
            paper,
            gap,
            daemon_free: daemon_free.unwrap_or_else(|| Err(apart.into())),
            charged: found(estimate.charged).map_err(|_| "nothing was charged to it".into()),
            flags,
        }
    }

    fn of_several(runs: &[Replicate]) -> Self {
        let summary = Summary::of(runs, &Totals::default(), runs.len() - runs.len() / 3);
        let why = |column: Option<Interval>| {
            column.ok_or_else(|| match runs.len() < FEWEST {
                true => format!("an interval takes {FEWEST} runs, and there are {}", runs.len()),
                false => {
                    summary.flags.first().cloned().unwrap_or_else(|| "it cannot be told from none".into())
                }
            })
        };
        Self {
            paper: why(summary.paper),
            gap: why(summary.gap),
            daemon_free: why(summary.daemon_free),
            charged: why(summary.charged),
            flags: summary.flags.clone(),
        }
    }

    fn named(&self) -> [(&'static str, &Found); 4] {
        [
            ("accounting", &self.charged),
            ("gap", &self.gap),
            ("daemon-free", &self.daemon_free),
            ("paper", &self.paper),
        ]
    }

    /// The share of the cost that accounting missed.
    fn missed(&self) -> Option<f64> {
        let (gap, charged) = (self.gap.as_ref().ok()?, self.charged.as_ref().ok()?);
        Some(1.0 - charged.estimate / gap.estimate)
    }
}

/// One run has no interval: two estimates of it that are so far apart are not of one thing.
fn disagreement(gap: &Found, daemon_free: Option<&Found>) -> Option<String> {
    const SAME: f64 = 0.03;
    let (gap, free) = (gap.as_ref().ok()?, daemon_free?.as_ref().ok()?);
    let off = free.estimate / gap.estimate - 1.0;
    (off.abs() > SAME).then(|| {
        format!(
            "the estimators do not agree: daemon-free is {:+.1} % off gap; --runs 5 tells how much of it is chance",
            100.0 * off
        )
    })
}

fn because(spoilt: Spoilt, run: &Replicate) -> String {
    let others = 100.0 * run.covered.others_share();
    match spoilt {
        Spoilt::Others => format!("the machine was not quiet: other tasks had {others:.1} % of the CPU"),
        Spoilt::Drift => "the machine was not quiet: the processor changed its pace meanwhile".into(),
        Spoilt::Stolen => "the machine was not quiet: the hypervisor took time from the CPU".into(),
        Spoilt::Uncovered => format!(
            "the machine was not quiet: other tasks had {others:.1} % of the CPU and left the fluid hardly any"
        ),
    }
}

pub(super) fn text(covers: &[Cover], accounting: &Accounting, layout: Layout) -> String {
    let columns = Columns::of(covers);
    let elapsed: Vec<f64> = covers.iter().map(|cover| cover.replicate.covered.window.elapsed).collect();
    let cpus: Vec<_> = covers[0].cpus.iter().map(ToString::to_string).collect();
    let runs = if covers.len() > 1 { format!(", {} runs", covers.len()) } else { String::new() };
    let head = format!(
        "CPU {}, {} of its time{}{runs}",
        cpus.join(","),
        duration(median(&elapsed)),
        if cpus.len() > 1 { " together" } else { "" }
    );
    let mut text = paint(Tone::Bold, &head, layout) + "\n";
    let rows: Vec<_> = columns.named().iter().map(|(name, found)| row(name, found, &columns)).collect();
    aligned(&rows, prose(layout)).into_iter().for_each(|line| text += &(line + "\n"));
    if let Some(missed) = columns.missed() {
        text += &match missed >= 0.0 {
            true => format!("\naccounting missed {:.1} % of it\n", 100.0 * missed),
            false => format!("\naccounting charged {:.1} % more than it was\n", -100.0 * missed),
        };
    }
    text.push('\n');
    for sentence in columns.flags.iter().chain(&accounting.sentences()) {
        text += &(wrap("", sentence, prose(layout)) + "\n");
    }
    text
}

fn row(name: &str, found: &Found, columns: &Columns) -> [String; 4] {
    let beyond = |value: &Interval| match (&columns.charged, name) {
        (Ok(charged), "gap" | "daemon-free" | "paper") => change(value.estimate / charged.estimate),
        _ => String::new(),
    };
    match found {
        Ok(value) if value.low < value.high => {
            [name.into(), duration(value.estimate), beyond(value), ends(value, "ns")]
        }
        Ok(value) => [name.into(), duration(value.estimate), beyond(value), String::new()],
        Err(why) => [name.into(), "–".into(), String::new(), why.clone()],
    }
}

pub(super) fn json(covers: &[Cover], accounting: &Accounting) -> Value {
    let columns = Columns::of(covers);
    let value = |found: &Found| match found {
        Ok(interval) => json!({ "ns": interval.estimate, "low": interval.low, "high": interval.high }),
        Err(why) => json!({ "missing": why }),
    };
    let named = columns.named().into_iter().map(|(name, found)| (name.to_owned(), value(found)));
    json!({
        "cpus": covers[0].cpus,
        "columns": named.collect::<serde_json::Map<_, _>>(),
        "missed": columns.missed(),
        "flags": columns.flags,
        "accounting": accounting.sentences(),
        "runs": covers.iter().map(run).collect::<Vec<_>>(),
    })
}

fn run(cover: &Cover) -> Value {
    let covered = &cover.replicate.covered;
    json!({
        "elapsed_ns": covered.window.elapsed,
        "charged_ns": covered.charged,
        "deferred_interrupts_ns": covered.deferred,
        "others_share": covered.others_share(),
        "stolen_ticks": cover.replicate.stolen_ticks,
        "exit_code": cover.code.unwrap_or(0),
        "series": cover.series.iter().map(|window| point(window, cover)).collect::<Vec<_>>(),
    })
}

/// One interval: what of it the fluid lost, by the pace of that interval itself.
fn point(window: &Window, cover: &Cover) -> Value {
    let usual = cover.replicate.before.interrupts;
    let displaced = window.plain_turn().map(|turn| {
        let lost = window.elapsed - window.loops * (turn + usual);
        lost.clamp(0.0, window.elapsed)
    });
    json!({ "elapsed_ns": window.elapsed, "displaced_ns": displaced, "fluid_ns": window.own })
}
