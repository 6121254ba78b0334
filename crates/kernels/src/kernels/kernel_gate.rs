//! `syscost kernels gate`: an exit code that says whether a kernel became slower, by counted instructions.

use super::{Counting, count_and_save, find_kernels};
use crate::counted_change::{findings, judge_counts};
use std::process::ExitCode;
use syscost_command_line::flag::{Filter, Home};
use syscost_command_line::judging::{Compared, Judging};
use syscost_platform::error::Result;

/// Fail if a kernel became slower, by counted instructions
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: unchanged or faster; 1: slower; 2: usage; 3: incomparable; 4: inconclusive; 5: \
    the machine is unfit; 125: could not be measured; 128 and the signal: interrupted. With --bisect: 0 good, 1 bad, \
    125 anything else but an interruption."
)]
pub(super) struct GateArgs {
    /// The old kernel
    #[arg(value_name = "GOOD")]
    good: String,
    /// The new kernel
    #[arg(value_name = "BAD")]
    bad: String,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    judging: Judging,
    #[command(flatten)]
    home: Home,
}

pub(super) fn gate(args: &GateArgs) -> Result<ExitCode> {
    args.judging.judge_comparison(|| compare(args))
}

fn compare(args: &GateArgs) -> Result<Compared> {
    // Before a kernel is downloaded.
    args.counting.selected_questions(&args.filter)?;
    let kernels = find_kernels([&args.good, &args.bad], &args.home)?;
    let counts =
        count_and_save(&kernels, &args.filter, &args.counting, args.judging.max_regress, &args.home)?;
    let faults = counts.sides.iter().flat_map(|side| side.faults.iter().cloned());
    let notes = faults.chain(["counted: instructions (icount), not time".into()]).collect();
    Ok((findings(&judge_counts(&counts)), notes))
}
