//! `syscost ab`: two sides compared by pairs of live processes.

use super::flag::{Filter, Home};
use super::page;
use super::sides::{Form, Manner, Sides, compare_sides, write};
use super::why::explain_difference;
use crate::driver::layout;
use crate::error::Result;
use crate::exit::Exit;
use crate::platform::signal;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_analysis::record::paired::Paired;

/// Compare two builds, settings or wrappers, by pairs of live processes
///
/// Two fresh processes, one a side, take turns of a millisecond on one CPU; the next pair is two fresh ones again.
/// Sides that exclude each other, settings of the whole machine, run one after the other in blocks. A case is judged
/// after 8, 16, 32 and 64 pairs; a change must be found again on fresh pairs. The sides differ in their binary (--a-bin,
/// --b-bin, or --a-rev, --b-rev to have two git revisions built), in what runs them (--a-wrap, --b-wrap), or in a
/// state of the machine (--a, --b).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  syscost ab --a-rev main --b-rev HEAD syscall\n  \
    syscost ab --b-wrap 'setarch -R' call/\n  \
    syscost ab --a 'echo always > /sys/kernel/mm/transparent_hugepage/enabled' \\\n             \
    --b 'echo never > /sys/kernel/mm/transparent_hugepage/enabled' mapping")]
pub struct Args {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    sides: Sides,
    #[command(flatten)]
    manner: Manner,
    #[command(flatten)]
    form: Form,
    /// Sample the stacks of both sides, and say which functions make up the difference (`syscost help why`)
    #[arg(long, requires = "filter", conflicts_with_all = ["judge", "only", "threshold"])]
    why: bool,
    /// Judge the pairs of a stored comparison again, and measure nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["filter", "Sides", "Manner"])]
    judge: Option<PathBuf>,
    #[command(flatten)]
    home: Home,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(file) = &args.judge {
        let paired = Paired::load(file)?;
        write(&paired, &paired.judge(), &args.form, layout())?;
        return Ok(ExitCode::SUCCESS);
    }
    let home = args.home.directory();
    if args.why {
        return explain_difference(&args.filter, &args.sides, &args.manner, args.form.format(), &home);
    }
    let paired = compare_sides(&args.filter, &args.sides, &args.manner, &home)?;
    write(&paired, &paired.judge(), &args.form, layout())?;
    let without = !paired.has_pairs();
    if without && signal::pending().is_none() {
        page::warn(
            &"nothing was measured: no pair of a case counts, so that nothing can be said; the rows tell why",
        );
    }
    Ok(Exit::failed_if(paired.has_failed() || without).or_signal(signal::pending()).into())
}
