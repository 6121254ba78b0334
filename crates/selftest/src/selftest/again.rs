//! `syscost selftest --again`: tests whether the figures of the next run lie in the intervals of the run before.

use crate::error::{Error, Result};
use crate::platform::signal;
use crate::statistic::{Interval, percentile, proportion_interval};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_command_line::page::{self, count_with_noun};
use syscost_engine::driver::{Arguments, Options, Session, layout};
use syscost_engine::exit::Exit;
use syscost_engine::record::store::Store;
use syscost_engine::record::{Measured, Quiet, Record};
use syscost_engine::study::interval::draw_to_earlier;

/// Cases of every kind: arithmetic, calls, the vDSO, system calls, memory, faults, switches, tasks, sockets and files.
const CASES: [&str; 24] = [
    "known_work/multiply",
    "empty_loop/memory",
    "call/u64/3",
    "syscall/clock-gettime-vdso",
    "syscall/getppid",
    "syscall/fstat",
    "syscall/read-zero",
    "syscall/pipe",
    "syscall/open-close",
    "chase/random/16KiB",
    "chase/random/256KiB",
    "chase/random/4MiB",
    "bandwidth/read/256KiB",
    "mapping/first-touch/1MiB",
    "page_fault/anonymous/4KiB",
    "signal/mask",
    "fork/touched-mib/0",
    "thread/same-cpu/hand-off",
    "ping_pong/pipe-processes/same-cpu",
    "ping_pong/pipe-processes/cross-cpu",
    "socket_round_trip/unix-stream-same-cpu/56B",
    "socket_round_trip/tcp-same-cpu/56B",
    "cached_read/pread/4KiB",
    "file_ops/create/1",
];
/// The share of figures that must lie in the intervals, as these promise.
const PROMISED: f64 = 0.95;

/// Measures these cases in several runs, or reads stored runs. Prints the promised share and the share that was found.
///
/// # Errors
/// An error where a file is no record, no case has the id, or no two runs have a figure in common.
pub fn run(ids: &[String], files: &[PathBuf], runs: usize, json: bool) -> Result<ExitCode> {
    let mut records = match files {
        [] => measure_runs(ids, runs)?,
        files => files.iter().map(|file| Store::load(file)).collect::<Result<_>>()?,
    };
    if let Some(signal) = signal::pending() {
        page::warn(&format!("interrupted by {signal}: there is no answer"));
        return Ok(Exit::Signal(signal).into());
    }
    records.sort_by_key(|record| record.started);
    let seen = compare_successive(&records).ok_or_else(|| {
        Error::Usage(
            "no case has a quiet figure in two of these runs: name at least two runs of one suite at default scale".into(),
        )
    })?;
    page::write_json_or(json, &seen, || agreement_text(&seen))?;
    Ok(Exit::failed_if(seen.inside.high < PROMISED).into())
}

/// Measures several runs over the cases, and saves none.
fn measure_runs(ids: &[String], runs: usize) -> Result<Vec<Record>> {
    let of_ours = CASES.map(str::to_owned);
    let ids = if ids.is_empty() { &of_ours } else { ids };
    let filter = format!("^({})$", ids.iter().map(|id| regex::escape(id)).collect::<Vec<_>>().join("|"));
    let arguments = Arguments::parse(vec!["--bench".into(), filter.into()])?;
    let options = Options { known: GROUPS, ..Options::from_environment()? };
    Ok(Session::plan(GROUPS, &arguments, &options, runs, true)?.collect())
}

fn agreement_text(seen: &Again) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let pair = |[median, tenth]: [f64; 2]| {
        format!("{} (median) and {} (90th percentile)", percent(median), percent(tenth))
    };
    let mut lines = vec![
        format!(
            "figures in the interval of the run before: {} of {} [{}, {}]; promised are {}",
            percent(seen.inside.estimate),
            count_with_noun(seen.figures, "figure", "figures"),
            percent(seen.inside.low),
            percent(seen.inside.high),
            percent(PROMISED)
        ),
        format!("two runs differ by {}", pair(seen.distance)),
        format!("half an interval is {}", pair(seen.half_width)),
        format!(
            "settled: {} of the cases, in {}",
            percent(seen.settled),
            count_with_noun(seen.runs, "run", "runs")
        ),
    ];
    let far = |(id, [a, b]): &(String, [f64; 2])| format!("{id} {a:.4} and {b:.4}");
    lines.push(format!("furthest apart: {}", seen.furthest.iter().map(far).collect::<Vec<_>>().join("; ")));
    page::wrap_sentences(lines, layout())
}

/// The predictions of the intervals, and the share of them that held.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Again {
    /// The number of runs.
    runs: usize,
    /// The number of figures for which the run before had an interval.
    figures: usize,
    /// The share of these figures that lay in that interval, with the 95 % interval of the share.
    inside: Interval,
    /// The distance between the figures of a case in two successive runs, as a share: median and 90th percentile.
    distance: [f64; 2],
    /// Half of the width of an interval, as a share of its figure: median and 90th percentile.
    half_width: [f64; 2],
    /// The share of settled cases, over all runs.
    settled: f64,
    /// The cases whose figures lay furthest apart: id, and both figures in the record's unit.
    furthest: Vec<(String, [f64; 2])>,
}

/// The number of cases that are named.
const NAMED: usize = 5;

/// Compares every run with the one before it. Intervals that were not yet extended to earlier runs, as in unsaved runs, are
/// extended here. `None` if no two successive runs have a figure in common.
fn compare_successive(runs: &[Record]) -> Option<Again> {
    let mut known: BTreeMap<&str, Vec<Quiet>> = BTreeMap::new();
    let (mut pairs, mut settled) = (Vec::new(), Vec::new());
    for (at, run) in runs.iter().enumerate() {
        let next = runs.get(at + 1).map(quiet_figures).unwrap_or_default();
        for (id, mut quiet) in quiet_figures(run) {
            let earlier = known.entry(id).or_default();
            draw_to_earlier(&mut quiet, earlier);
            settled.push(quiet.is_settled());
            earlier.insert(0, quiet);
            // A saved run converts its figures to the CPU frequency of earlier runs.
            let figure = |next: &Quiet| next.figure.estimate * next.frequency_factor_to(&quiet);
            pairs.extend(next.get(id).map(|next| (id, quiet.figure, figure(next))));
        }
    }
    summarize_pairs(runs.len(), &mut pairs, &settled)
}

fn quiet_figures(run: &Record) -> BTreeMap<&str, Quiet> {
    let quiet = |measured: &Measured| measured.quiet.filter(|quiet| quiet.figure.estimate > 0.0);
    run.cases().filter_map(|(_, case)| Some((case.id.as_str(), quiet(case.measured()?)?))).collect()
}

fn summarize_pairs(runs: usize, pairs: &mut [(&str, Interval, f64)], settled: &[bool]) -> Option<Again> {
    if pairs.is_empty() {
        return None;
    }
    let apart = |(_, figure, next): &(&str, Interval, f64)| (next / figure.estimate).ln().abs();
    pairs.sort_by(|a, b| apart(b).total_cmp(&apart(a)));
    let inside = pairs.iter().filter(|(_, figure, next)| (figure.low..=figure.high).contains(next)).count();
    let half = |figure: &Interval| (figure.high - figure.low) / 2.0 / figure.estimate;
    let both = |values: Vec<f64>| [percentile(&values, 50.0), percentile(&values, 90.0)];
    Some(Again {
        runs,
        figures: pairs.len(),
        inside: proportion_interval(inside as u64, pairs.len() as u64),
        distance: both(pairs.iter().map(apart).collect()),
        half_width: both(pairs.iter().map(|(_, figure, _)| half(figure)).collect()),
        settled: settled.iter().filter(|is| **is).count() as f64 / settled.len().max(1) as f64,
        furthest: pairs.iter().take(NAMED).map(|(id, a, b)| ((*id).to_owned(), [a.estimate, *b])).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::{Outcome, fixture_run};

    #[test]
    fn every_case_exists_and_is_of_the_default_suite() {
        let known = syscost_engine::pair::side::case_ids(GROUPS);
        for id in CASES {
            assert!(known.iter().any(|known| known == id), "{id}");
        }
    }

    /// The fixture with its first case at this figure, ± 1, and nothing else measured.
    fn run(ns: f64) -> Record {
        let mut run = fixture_run::fixture_record();
        run.groups.truncate(1);
        run.groups[0].cases.truncate(1);
        if let Outcome::Measured(measured) = &mut run.groups[0].cases[0].outcome {
            measured.quiet = Some(Quiet { figure: Interval::around(ns, 1.0), ..Quiet::default() });
        }
        run
    }

    #[test]
    fn a_figure_outside_the_interval_is_counted_once_and_widens_later_ones() {
        let seen = compare_successive(&[run(100.0), run(100.5), run(110.0), run(100.0), run(105.0)])
            .expect("figures");
        // 100 → 100.5 is inside; 100.5 → 110 is outside. 110 → 100 and 100 → 105 are inside, since the interval then spans
        // 100 and 110.
        assert_eq!((seen.runs, seen.figures, seen.inside.estimate), (5, 4, 0.75));
        assert!(seen.distance[1] > 0.09 && seen.furthest[0].1 == [110.0, 100.0], "{seen:?}");
        assert!(
            seen.settled > 0.0 && seen.settled < 1.0,
            "an interval that rests on 100 and 110 is wide: {seen:?}"
        );
    }

    #[test]
    fn runs_without_a_common_figure_give_no_result() {
        assert_eq!(compare_successive(&[run(100.0)]), None);
        assert_eq!(
            compare_successive(&[fixture_run::fixture_record(), fixture_run::fixture_record()]),
            None,
            "single executions promise nothing"
        );
    }
}
