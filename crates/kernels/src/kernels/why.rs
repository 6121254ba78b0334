//! `syscost kernels why`: the functions that make up the difference of a case between two kernels, as tables and as three flame
//! graphs: of A, of B, and of B coloured by its difference from A.

mod function_rows;

use super::counting::{Counting, Ready};
use super::{counted_table, find_kernels};
use crate::executed::execution_log::ExecutionLog;
use crate::executed::function_table::{CaseDifference, Naming, note_replacements};
use crate::guest::emulator::Plugin;
use crate::guest::kernel::{Kernel, Supply, configuration_differences};
use clap::ValueEnum;
use inferno::flamegraph::{Options, from_lines};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_command_line::flag::{Filter, Home};
use syscost_command_line::page;
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::record::guest_side::GuestSide;
use syscost_platform::error::{Error, Result};

/// Say which functions make up the difference of a case between two kernels
///
/// Each kernel boots once, and the emulator counts the instructions of each function. The functions sum up to the difference to
/// the digit: `syscost help why`.
#[derive(clap::Args)]
#[command(after_help = "Exit code 0: counted; 1: a guest failed, or no case was counted on both sides.\n\
    Examples:\n  syscost kernels why 6.1 6.12 syscall/pipe --exact\n  \
    syscost kernels why 6.12 6.12@audit=1 getppid --disassemble do_syscall_64\n  \
    syscost kernels why 6.1 6.12 '^fork/' --flame-graphs graphs")]
pub(super) struct WhyArgs {
    /// The old kernel
    #[arg(value_name = "KERNEL_A")]
    a: String,
    /// The new kernel
    #[arg(value_name = "KERNEL_B")]
    b: String,
    #[command(flatten)]
    filter: Filter,
    /// Show the callers of the functions that moved, too
    #[arg(long)]
    tree: bool,
    /// List the executed instructions of this function, too
    #[arg(long, value_name = "FUNCTION")]
    disassemble: Option<String>,
    /// Write flame graphs of both kernels and of the difference to this directory
    #[arg(long, value_name = "DIR")]
    flame_graphs: Option<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = WhyFormat::Terminal)]
    format: WhyFormat,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    home: Home,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhyFormat {
    Terminal,
    Json,
    Csv,
}

/// The executed instructions of both kernels, and their differences.
struct Executed {
    logs: [ExecutionLog; 2],
    sides: [GuestSide; 2],
    notes: Vec<String>,
    cases: Vec<CaseDifference>,
    /// A sentence for each case that one kernel did not count: its id and the reason.
    missing: Vec<String>,
}

pub(super) fn explain(args: &WhyArgs) -> Result<ExitCode> {
    let executed = execute(args)?;
    if let Some(directory) = &args.flame_graphs {
        let naming = Naming::of_both([&executed.logs[0], &executed.logs[1]]);
        for file in write_flame_graphs(directory, &executed, &naming)? {
            page::write_to_stderr(&format!("written: {}", file.display()));
        }
    }
    page::write(&match args.format {
        WhyFormat::Terminal => function_tables_text(args, &executed),
        WhyFormat::Csv => function_rows::csv(&executed.cases)?,
        WhyFormat::Json => {
            let value = json!({
                "unit": "instructions an iteration",
                "sides": executed.sides,
                "notes": executed.notes,
                "cases": executed.cases,
                "missing": executed.missing,
            });
            format!("{value:#}\n")
        }
    })?;
    let faults = executed.sides.iter().flat_map(|side| &side.faults).count();
    Ok(Exit::failed_if(faults > 0 || executed.cases.is_empty()).into())
}

fn execute(args: &WhyArgs) -> Result<Executed> {
    let ready = args.counting.prepare(&args.filter, Supply::architecture(&args.a))?;
    let kernels = find_kernels([&args.a, &args.b], &args.home)?;
    execute_on(&ready, &kernels, args.disassemble.is_some())
}

/// The tables of functions of two kernels as text, for a command that has found a difference.
///
/// # Errors
/// This emulator loads no plugin, a file cannot be written, or a signal came.
pub(super) fn function_tables(ready: &Ready<'_>, kernels: &[Kernel; 2]) -> Result<String> {
    let executed = execute_on(ready, kernels, false)?;
    Ok(executed.cases.iter().map(|difference| function_rows::table(difference, layout())).collect())
}

fn execute_on(ready: &Ready<'_>, kernels: &[Kernel; 2], has_listing: bool) -> Result<Executed> {
    let adjust = |mut plugin: Plugin| {
        (plugin.writes_order, plugin.writes_listing) = (true, has_listing);
        plugin
    };
    let (outcome, refusal) = ready.boot_kernels(kernels, 1, adjust)?;
    if let Some(why) = refusal {
        return Err(Error::Missing(format!(
            "{why}; only the plugin counts by function: install QEMU 6.0 or later"
        )));
    }
    let logs = outcome.logs.map(Option::unwrap_or_default);
    let (mut cases, mut missing) = (Vec::new(), Vec::new());
    for (question, counts) in ready.asked.cases.iter().zip(&outcome.cases) {
        match difference(&logs, &question.id, question.iterations) {
            Some(difference) => cases.push(difference),
            None => {
                let why = counts.sides.iter().flatten().find_map(|outcome| outcome.why());
                missing.push(format!("{}: {}", question.id, why.unwrap_or("a guest gave no answer")));
            }
        }
    }
    let notes = configuration_differences(kernels);
    Ok(Executed { logs, sides: outcome.sides, notes, cases, missing })
}

/// The difference of a case, with notes on the functions that only one kernel executes.
fn difference(logs: &[ExecutionLog; 2], id: &str, iterations: u64) -> Option<CaseDifference> {
    let logs = [&logs[0], &logs[1]];
    let mut difference = CaseDifference::between(logs, id, iterations)?;
    note_replacements(&mut difference, &Naming::of_both(logs), [logs[0].case(id)?, logs[1].case(id)?]);
    Some(difference)
}

fn function_tables_text(args: &WhyArgs, executed: &Executed) -> String {
    let layout = layout();
    let naming = Naming::of_both([&executed.logs[0], &executed.logs[1]]);
    let counted = "executed instructions of an iteration, a repeated string instruction as one; not time";
    let mut said = counted_table::kernel_lines(&executed.sides, &executed.notes, counted, layout);
    for difference in &executed.cases {
        said += &format!("\n{}", function_rows::table(difference, layout));
        if args.tree {
            said += &format!("\n{}", function_rows::call_tree(difference, &executed.logs, &naming));
        }
        if let Some(function) = &args.disassemble {
            said += &format!("\n{}", function_rows::listing(difference, &executed.logs, &naming, function));
        }
    }
    said + &page::wrap_sentences(&executed.missing, layout)
}

/// Writes three flame graphs of each case, and returns their paths.
///
/// # Errors
/// A file cannot be written.
fn write_flame_graphs(directory: &Path, executed: &Executed, naming: &Naming<'_>) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "making", e))?;
    let mut written = Vec::new();
    for difference in &executed.cases {
        let stacks = [0, 1].map(|side| {
            let case = executed.logs[side].case(&difference.id);
            case.map_or_else(BTreeMap::new, |case| naming.paths(side, case))
        });
        let lines = [lines_of_side(&stacks[0]), lines_of_side(&stacks[1]), lines_of_both(&stacks)];
        for (lines, what) in lines.iter().zip(["a", "b", "difference"]) {
            let path = directory.join(format!("{}.{what}.svg", difference.id.replace('/', "-")));
            draw_flame_graph(&path, difference, what, lines)?;
            written.push(path);
        }
    }
    Ok(written)
}

/// Own instructions by path, from the outermost function to the innermost.
type Stacks<'a> = BTreeMap<Vec<&'a str>, i64>;

/// The input of a flame graph of one kernel: a line of folded stack and count for each path.
fn lines_of_side(stacks: &Stacks<'_>) -> Vec<String> {
    let whole = stacks.iter().filter(|(_, count)| **count > 0);
    whole.map(|(path, count)| format!("{} {count}", path.join(";"))).collect()
}

/// The input of a differential flame graph: a line of folded stack, count in A and count in B for each path.
fn lines_of_both(stacks: &[Stacks<'_>; 2]) -> Vec<String> {
    let paths: BTreeSet<_> = stacks.iter().flat_map(BTreeMap::keys).collect();
    let count = |side: usize, path: &Vec<&str>| stacks[side].get(path).copied().unwrap_or(0).max(0);
    paths
        .into_iter()
        .map(|path| format!("{} {} {}", path.join(";"), count(0, path), count(1, path)))
        .collect()
}

fn draw_flame_graph(path: &Path, difference: &CaseDifference, what: &str, lines: &[String]) -> Result<()> {
    let failed = |e: std::io::Error| Error::file(path, "writing", e);
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    let mut options = Options::default();
    options.title = format!("{} {what}", difference.id);
    options.count_name = format!("instructions in {} iterations", difference.iterations);
    options.deterministic = true;
    let drawn = from_lines(&mut options, lines.iter().map(String::as_str), file);
    drawn.map_err(|e| failed(std::io::Error::other(e)))
}
