//! `--why` of `syscost ab` and `syscost run`: samples stacks and prints a table of functions.

use super::flag::{Filter, Format, Measuring};
use super::page;
use super::sides::{Manner, Sides, own_executable, with_sides};
use crate::driver::layout;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::platform::signal;
use crate::suite::GROUPS;
use crate::trial::scratch;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use syscost_analysis::pair::experiment::{Experiment, Plan, Testbed, choose_cases};
use syscost_analysis::pair::sampled_sides::{CaseSampler, check_perf_events};
use syscost_analysis::pair::{Launch, Start};
use syscost_analysis::record::paired::{Rule, SampledCase};
use syscost_analysis::render::function_time_table::{function_table, function_times_csv};
use syscost_analysis::study::function_times::{FunctionTimes, study_functions};

/// The default number of pairs of `ab`, and of processes of `run`.
const OBSERVATIONS: usize = 16;

/// Prints the functions that make up the difference between two sides.
///
/// # Errors
/// Perf events are not available here, or an error of `syscost ab`.
pub fn explain_difference(
    filter: &Filter,
    sides: &Sides,
    manner: &Manner,
    format: Format,
    home: &Path,
) -> Result<ExitCode> {
    check_format(format)?;
    check_perf_events()?;
    let pairs = manner.pairs.map_or(OBSERVATIONS, |pairs| 4 << pairs.look_count());
    let (cases, prepared) =
        with_sides(filter, sides, manner, false, home, |testbed, experiment, ids, _, schedule| {
            let mut sampler = CaseSampler::new(testbed, experiment);
            sample_each(ids, |id| sampler.sample_pairs(id, pairs, schedule))
        })?;
    let names = ["A", "B"].iter().zip(&prepared.names);
    let sides: Vec<_> = names.map(|(label, name)| format!("{label}: {name}")).collect();
    write(&cases, &[sides, prepared.differences].concat(), format)
}

/// Prints the functions in which operations spend their time: cases of this program, or of a bench.
///
/// # Errors
/// Perf events are not available here, no case matches, or the bench cannot be started.
pub fn explain_operations(
    filter: &Filter,
    measuring: &Measuring,
    bench: Option<&Path>,
    format: Format,
) -> Result<ExitCode> {
    check_format(format)?;
    check_perf_events()?;
    let matches = filter.matcher()?;
    let links = scratch::make_directory()?;
    let program = bench.map_or_else(own_executable, |bench| Ok(bench.to_owned()))?;
    let launch = Launch::new("A", &program, None, links.path())?;
    let testbed = Testbed::set_up()?;
    let starts = [&launch as &dyn Start; 2];
    let ids = choose_cases(&testbed.match_cases(starts)?.ids, &matches, false)?;
    let plan = Plan {
        sides: ["".into(), "".into()],
        by_turns: false,
        rule: Rule::default(),
        seed: 0,
        scale: measuring.options(GROUPS)?.scale,
        placement: None,
    };
    let experiment = Experiment { starts, plan };
    let mut sampler = CaseSampler::new(&testbed, &experiment);
    let cases = sample_each(&ids, |id| sampler.sample_processes(id, OBSERVATIONS))?;
    write(&cases, &[], format)
}

/// Returns an error for a format that cannot be written, before minutes of sampling.
fn check_format(format: Format) -> Result<()> {
    match format {
        Format::Markdown => {
            Err(Error::Usage("functions are written as a table, CSV or JSON, and not as Markdown".into()))
        }
        Format::Terminal | Format::Csv | Format::Json => Ok(()),
    }
}

fn sample_each(
    ids: &[String],
    mut sample: impl FnMut(&str) -> Result<SampledCase>,
) -> Result<Vec<FunctionTimes>> {
    let bar = page::progress_bar(ids.len(), "{pos}/{len} {wide_msg}");
    let mut cases = Vec::new();
    for id in ids.iter().take_while(|_| signal::pending().is_none()) {
        bar.set_message(id.clone());
        cases.push(study_functions(&sample(id)?));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(cases)
}

fn write(cases: &[FunctionTimes], notes: &[String], format: Format) -> Result<ExitCode> {
    match format {
        Format::Json => page::write_json(&json!({ "notes": notes, "cases": cases }))?,
        Format::Csv => page::write(&function_times_csv(cases)?)?,
        // `check_format` has refused Markdown before.
        Format::Terminal | Format::Markdown => {
            let mut text = page::wrap_sentences(notes, layout());
            for case in cases {
                text += &format!("\n{}", function_table(case, layout()));
            }
            page::write(text.trim_start_matches('\n'))?;
        }
    }
    let has_none = cases.iter().all(|case| case.failure.is_some());
    Ok(Exit::failed_if(has_none).or_signal(signal::pending()).into())
}
