//! `syscost kernels`: compares other kernels, as guests by turns or by counted instructions. `gate` compares by counted
//! instructions, and its exit code says whether a kernel became slower.

mod by_turns;
mod counted_table;
mod counting;
mod kernel_bisection;
mod kernel_session;
mod why;

use crate::counted_change::{CountedRow, findings, judge_counts};
use crate::guest::debian;
use crate::guest::kernel::{Kernel, installed_releases};
use crate::instruction_counts::InstructionCounts;
use by_turns::Turning;
use clap::Subcommand;
use counting::kernel_supply;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_analysis::study::gate::{Finding, findings_from_pairs};
use syscost_command_line::flag::{Filter, Form, Format, Home};
use syscost_command_line::judging::{Compared, Judging};
use syscost_command_line::page;
use syscost_command_line::sides::{self, parse_share};
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::record::Verdict;
use syscost_engine::record::guest_side::ClockKind;
use syscost_platform::error::Result;
use syscost_platform::signal;

pub use by_turns::find_kernels;
pub use counting::{Counting, count_and_save};

/// The default threshold: changes of counts up to this share are no findings.
const OF_COUNTS: f64 = 0.001;

/// Compare kernels: as guests that take turns, by counted instructions, or over reboots of this machine
///
/// A guest boots with this program as its first process. If KVM works, or the kernels are user-mode Linux, two guests run
/// at once on one CPU and take turns. Otherwise an emulator counts instructions, which repeat to the last digit on any
/// machine and under any load. They measure the length of the kernel's path, but not the cost of caches, of other CPUs, or
/// of a mitigation on hardware: `syscost help guests`.
#[derive(clap::Args)]
#[command(
    after_help = "A KERNEL is a version (6.12, 6.12-rt, 6.1.0-47), a package, the path of a bzImage or vmlinux, a built \
    tree, `host`, or `uml`; behind an @ come words for its command line: 6.12@pti=on"
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Ab(AbArgs),
    Why(why::WhyArgs),
    /// Print the kernels that can be booted: installed, downloaded, and Debian's packages
    ///
    /// In a pipe: one kernel a line, with its name, version, and where it is, between tabs.
    List(Home),
    Fetch(FetchArgs),
    Bisect(kernel_bisection::BisectArgs),
    Gate(GateArgs),
    #[command(subcommand)]
    Session(kernel_session::SessionCommand),
}

/// Compare two kernels, by turns or by counted instructions
///
/// By turns a pair of fresh boots gives every open case one pair; a case is judged after 8, 16 and 32 of them, as by
/// `syscost ab`. By counted instructions each kernel is booted twice. A case whose two counts agree to the last digit is
/// judged by them; the others are counted in five more boots of both.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: compared, whatever the verdicts; 1: a guest failed, or nothing was measured on one side.\n\
    Examples:\n  syscost kernels ab 6.1 6.12\n  syscost kernels ab 6.12 6.12@pti=on syscall\n  \
    syscost kernels ab host ~/linux/arch/x86/boot/bzImage\n  syscost kernels ab uml ~/uml/linux"
)]
struct AbArgs {
    /// The old kernel
    #[arg(value_name = "KERNEL_A", required_unless_present = "judge")]
    a: Option<String>,
    /// The new kernel
    #[arg(value_name = "KERNEL_B", required_unless_present = "judge")]
    b: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Changes up to this share are no finding [default: 0.1% of counted instructions, 1% by turns]
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    threshold: Option<f64>,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    turning: Turning,
    #[command(flatten)]
    form: Form,
    /// Judge the counts of a stored comparison again, and boot nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["a", "b", "filter", "Counting", "Turning"])]
    judge: Option<PathBuf>,
    #[command(flatten)]
    home: Home,
}

/// Runs the command.
///
/// # Errors
/// What the command asks for cannot be done.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Ab(args) => compare_kernels(args),
        What::Why(args) => why::explain(args),
        What::List(home) => list_kernels(home),
        What::Fetch(args) => fetch_kernel(args),
        What::Bisect(args) => kernel_bisection::bisect(args),
        What::Gate(args) => args.judging.judge_comparison(|| compare_for_gate(args)),
        What::Session(command) => kernel_session::run(command),
    }
}

fn compare_kernels(args: &AbArgs) -> Result<ExitCode> {
    let counts = match (&args.judge, &args.a, &args.b) {
        (Some(file), ..) => InstructionCounts::load(file)?,
        (None, Some(a), Some(b)) => {
            // Before a kernel is downloaded.
            args.counting.selected_questions(&args.filter)?;
            let kernels = find_kernels([a, b], &args.home)?;
            signal::watch_signals()?;
            let clock = args.turning.choose_clock(&kernels, &args.counting)?;
            if clock != ClockKind::Icount {
                return run_by_turns(args, &kernels, clock);
            }
            count_and_save(
                &kernels,
                &args.filter,
                &args.counting,
                args.threshold.unwrap_or(OF_COUNTS),
                &args.home,
            )?
        }
        _ => return Err(syscost_platform::error::Error::Usage("name two kernels".into())),
    };
    let rows = judge_counts(&counts);
    page::write(&counted_table::render_counts(&counts, &rows, &args.form, layout())?)?;
    let failed = counts.sides.iter().any(|side| !side.faults.is_empty()) || !rows.iter().any(is_counted);
    Ok(exit_code(failed && args.judge.is_none()))
}

fn run_by_turns(args: &AbArgs, kernels: &[Kernel; 2], clock: ClockKind) -> Result<ExitCode> {
    let how = (&args.counting, &args.turning);
    let paired = by_turns::compare_by_turns(kernels, clock, &args.filter, how, args.threshold, &args.home)?;
    let rows = paired.judge();
    let format = if args.form.json { Format::Json } else { Format::Terminal };
    sides::write(&paired, &rows, &sides::Form::new(format), layout())?;
    let has_faults =
        paired.guests.iter().flat_map(|guests| &guests.sides).any(|side| !side.faults.is_empty());
    Ok(exit_code(has_faults || paired.has_failed()))
}

/// Compares two kernels by this clock and returns a finding for each case.
///
/// # Errors
/// A name has no kernel, no case matches, something that guests need is missing, or a signal came.
pub fn comparison_findings(
    names: [&str; 2],
    clock: ClockKind,
    filter: &Filter,
    counting: &Counting,
    threshold: f64,
    home: &Home,
) -> Result<Vec<Finding>> {
    let kernels = find_kernels(names, home)?;
    signal::watch_signals()?;
    if clock == ClockKind::Icount {
        return Ok(findings(&judge_counts(&count_and_save(&kernels, filter, counting, threshold, home)?)));
    }
    let how = (counting, &Turning::without_flags());
    let paired = by_turns::compare_by_turns(&kernels, clock, filter, how, Some(threshold), home)?;
    Ok(findings_from_pairs(&paired, &paired.judge()))
}

/// The exit code of a comparison, or of the signal that ended it.
fn exit_code(failed: bool) -> ExitCode {
    Exit::failed_if(failed).or_signal(signal::pending()).into()
}

fn is_counted(row: &CountedRow) -> bool {
    row.verdict != Verdict::Incomparable
}

/// Fail if a kernel became slower, by counted instructions
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: unchanged or faster; 1: slower; 2: usage; 3: incomparable; 4: inconclusive; 5: \
    the machine is unfit; 125: could not be measured; 128 and the signal: interrupted. With --bisect: 0 good, 1 bad, \
    125 anything else but an interruption."
)]
struct GateArgs {
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

fn compare_for_gate(args: &GateArgs) -> Result<Compared> {
    // Before a kernel is downloaded.
    args.counting.selected_questions(&args.filter)?;
    let kernels = find_kernels([&args.good, &args.bad], &args.home)?;
    let counts =
        count_and_save(&kernels, &args.filter, &args.counting, args.judging.max_regress, &args.home)?;
    let faults = counts.sides.iter().flat_map(|side| side.faults.iter().cloned());
    let notes = faults.chain(["counted: instructions (icount), not time".into()]).collect();
    Ok((findings(&judge_counts(&counts)), notes))
}

// `syscost kernels list` and `fetch`: list the kernels, and download one of Debian's.

/// Download a kernel of Debian's, without installing it
#[derive(clap::Args)]
struct FetchArgs {
    /// Version, release or package: 6.12, 6.12-rt, 6.1.0-47
    kernel: String,
    #[command(flatten)]
    home: Home,
}

fn list_kernels(home: &Home) -> Result<ExitCode> {
    let downloaded = kernel_supply(&home.directory()).downloaded_releases();
    let row = |name: String, version: &str, place: &str| [name, version.to_owned(), place.to_owned()];
    let mut rows: Vec<_> = installed_releases().into_iter().map(|name| row(name, "", "installed")).collect();
    let packages = debian::available_packages();
    for package in packages.as_deref().unwrap_or_default() {
        let there = downloaded.contains(&package.release);
        let place = if there { "downloaded" } else { "package" };
        rows.push(row(package.release.clone(), &package.version, place));
    }
    let is_listed = |name: &String| rows.iter().any(|row| row[0] == *name);
    let withdrawn: Vec<_> = downloaded.into_iter().filter(|name| !is_listed(name)).collect();
    rows.extend(withdrawn.into_iter().map(|name| row(name, "", "downloaded, package withdrawn")));
    let columns = || page::align_columns(&rows, page::table_width(layout())).join("\n") + "\n";
    page::write(&if page::is_piped() { page::tabbed_rows(&rows) } else { columns() })?;
    if let Err(error) = packages {
        page::warn(&error);
    }
    if rows.is_empty() {
        page::write_to_stderr(
            "there is none: `apt-get update` fetches Debian's lists of packages; an image can be given by its path",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn fetch_kernel(args: &FetchArgs) -> Result<ExitCode> {
    let package = debian::find_package(&args.kernel, &debian::available_packages()?)?;
    let (image, _) = kernel_supply(&args.home.directory()).fetch_image(&package)?;
    page::write(&format!("{}\n", image.display()))?;
    Ok(ExitCode::SUCCESS)
}
