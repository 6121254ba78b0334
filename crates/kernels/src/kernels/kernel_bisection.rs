//! `syscost kernels bisect`: finds the two neighbouring packages between which a count changed. As a step of `git bisect run` it
//! decides whether one kernel has the count of a good one.

use super::counting::{Counting, Ready, kernel_supply};
use super::why;
use crate::counted_change::{CountedRow, judge_counts};
use crate::guest::debian::{self, Package};
use crate::guest::kernel::{Kernel, Supply};
use std::process::ExitCode;
use std::time::Instant;
use syscost_command_line::flag::{Filter, Home};
use syscost_command_line::page;
use syscost_command_line::sides::parse_share;
use syscost_engine::exit::Exit;
use syscost_engine::record::Verdict;
use syscost_platform::error::{Error, Result};

/// Find the kernel at which a case began to cost other instructions
///
/// With --bad: over Debian's packages from the good kernel to the bad one. Each step boots the good kernel and the one in
/// the middle. With --step: compares one kernel with the good one, as the command of `git bisect run` in a kernel tree.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code with --bad: 0: found; 1: good and bad do not differ; 125: a kernel could not be counted. With \
    --step: 0: as the good one; 1: changed; 125: anything else.\n\
    Example:\n  git bisect run sh -c 'make -j8 bzImage || exit 125; \
    syscost kernels bisect --exact --good ../good --step . syscall/getppid'"
)]
pub(super) struct BisectArgs {
    /// A kernel before the change
    #[arg(long, value_name = "KERNEL")]
    good: String,
    /// A package after the change
    #[arg(long, value_name = "KERNEL", required_unless_present = "step", conflicts_with = "step")]
    bad: Option<String>,
    /// The one kernel to be compared
    #[arg(long, value_name = "KERNEL")]
    step: Option<String>,
    /// Changes up to this share are no finding
    #[arg(long, value_name = "PERCENT", default_value = "0.1%", value_parser = parse_share)]
    threshold: f64,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    home: Home,
}

pub(super) fn bisect(args: &BisectArgs) -> Result<ExitCode> {
    match (&args.step, &args.bad) {
        (Some(kernel), _) => Ok(run_step(args, kernel).unwrap_or_else(|error| {
            // `git bisect run` takes exit codes 1 to 127 as "bad", except 125, which skips the revision.
            page::warn(&error);
            Exit::Skipped.into()
        })),
        (None, Some(bad)) => bisect_packages(args, bad),
        (None, None) => Err(Error::Usage("name the --bad kernel, or one --step".into())),
    }
}

/// The means to count one case on pairs of kernels.
struct Bench<'a> {
    ready: Ready<'a>,
    supply: Supply,
    threshold: f64,
}

impl<'a> Bench<'a> {
    fn new(args: &'a BisectArgs) -> Result<Self> {
        let ready = args.counting.prepare(&args.filter, Supply::architecture(&args.good))?;
        match ready.asked.cases.len() {
            1 => Ok(Self { ready, supply: kernel_supply(&args.home.directory()), threshold: args.threshold }),
            count => Err(Error::Usage(format!(
                "a bisection is of one case, and {count} match: --exact takes the whole id"
            ))),
        }
    }

    /// Counts the case on both kernels and prints the faults of the guests as warnings.
    fn count_row(&self, good: &Kernel, other: &Kernel) -> Result<CountedRow> {
        let counts = self.ready.count_instructions(&[good.clone(), other.clone()], self.threshold)?;
        counts.sides.iter().flat_map(|side| &side.faults).for_each(page::warn);
        judge_counts(&counts)
            .pop()
            .ok_or_else(|| Error::Disproved("a case was asked and none was judged".into()))
    }

    fn fetch_kernel(&self, package: &Package) -> Result<Kernel> {
        let (image, configuration) = self.supply.fetch_image(package)?;
        Ok(Kernel { name: package.release.clone(), image, configuration, ..Kernel::default() })
    }
}

fn run_step(args: &BisectArgs, name: &str) -> Result<ExitCode> {
    let bench = Bench::new(args)?;
    let row = bench.count_row(&bench.supply.find(&args.good)?, &bench.supply.find(name)?)?;
    page::write(&format!("{name}: {}\n", verdict_line(&row)))?;
    Ok(match row.verdict {
        Verdict::Same => Exit::Success,
        Verdict::Slower | Verdict::Faster => Exit::Disproved,
        Verdict::Inconclusive | Verdict::Incomparable => Exit::Skipped,
    }
    .into())
}

/// A line with the count, its change from the good kernel, and the verdict.
fn verdict_line(row: &CountedRow) -> String {
    let [Some(good), Some(other)] = &row.sides else {
        return row.reason.clone().unwrap_or_default();
    };
    let by = other.instructions - good.instructions;
    let change = 100.0 * row.change.unwrap_or(0.0);
    format!(
        "{:.3} instructions, {by:+.3} ({change:+.2} %) against the good kernel: {}{}",
        other.instructions,
        row.verdict,
        row.reason.as_ref().map_or(String::new(), |why| format!(": {why}"))
    )
}

fn bisect_packages(args: &BisectArgs, bad: &str) -> Result<ExitCode> {
    let bench = Bench::new(args)?;
    let all = debian::available_packages()?;
    let ends = [debian::find_package(&args.good, &all)?, debian::find_package(bad, &all)?];
    let range = debian::packages_between(&ends[0], &ends[1], &all);
    if !ends[0].has_same_flavour(&ends[1]) || range.len() < 2 {
        return Err(Error::Usage(format!(
            "{} and {} are not two packages of one flavour: a bisection goes over the packages between them",
            ends[0].release, ends[1].release
        )));
    }
    let good = bench.fetch_kernel(&range[0])?;
    let ask = |package: &Package| {
        let begun = Instant::now();
        let row = bench.count_row(&good, &bench.fetch_kernel(package)?)?;
        page::write(&format!(
            "{}: {} ({:.0} s)\n",
            package.release,
            verdict_line(&row),
            begun.elapsed().as_secs_f64()
        ))?;
        Ok::<_, Error>(row)
    };
    let verdict = ask(&range[range.len() - 1])?.verdict;
    match verdict {
        Verdict::Same => {
            page::write("good and bad do not differ: there is nothing to find\n")?;
            return Ok(Exit::Disproved.into());
        }
        Verdict::Inconclusive | Verdict::Incomparable => return Ok(Exit::Skipped.into()),
        Verdict::Slower | Verdict::Faster => {}
    }
    let mut changed = |at: usize| Ok(has_changed(ask(&range[at])?.verdict));
    let [last_good, first_bad] = narrow_range(range.len(), &mut changed)?;
    let skipped = first_bad - last_good - 1;
    page::write(&format!(
        "the change is between {} ({}) and {} ({}){}\n",
        range[last_good].release,
        range[last_good].version,
        range[first_bad].release,
        range[first_bad].version,
        if skipped > 0 { format!(", {skipped} between them could not be counted") } else { String::new() }
    ))?;
    let neighbours = [bench.fetch_kernel(&range[last_good])?, bench.fetch_kernel(&range[first_bad])?];
    match why::function_tables(&bench.ready, &neighbours) {
        Ok(tables) => page::write(&tables)?,
        // The bisection has its result without the tables.
        Err(error) => page::warn(&error),
    }
    Ok(Exit::Success.into())
}

/// Whether the verdict is a change; `None` if it is undecided.
fn has_changed(verdict: Verdict) -> Option<bool> {
    match verdict {
        Verdict::Same => Some(false),
        Verdict::Slower | Verdict::Faster => Some(true),
        Verdict::Inconclusive | Verdict::Incomparable => None,
    }
}

/// Halves a range whose first kernel is good and whose last is bad. Returns the last good and the first bad kernel: neighbours,
/// unless the kernels between them cannot be judged.
fn narrow_range(length: usize, changed: &mut dyn FnMut(usize) -> Result<Option<bool>>) -> Result<[usize; 2]> {
    let (mut good, mut bad) = (0, length - 1);
    let mut unjudged = vec![false; length];
    loop {
        let middle = (good + bad) / 2;
        let next = (good + 1..bad).filter(|at| !unjudged[*at]).min_by_key(|at| at.abs_diff(middle));
        let Some(at) = next else { return Ok([good, bad]) };
        match changed(at)? {
            Some(true) => bad = at,
            Some(false) => good = at,
            None => unjudged[at] = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(length: usize, first_bad: usize, unjudged: &[usize]) -> ([usize; 2], usize) {
        let mut asked = 0;
        let mut changed = |at: usize| {
            asked += 1;
            Ok((!unjudged.contains(&at)).then_some(at >= first_bad))
        };
        (narrow_range(length, &mut changed).expect("no error"), asked)
    }

    #[test]
    fn the_first_bad_kernel_of_sixteen_is_found_in_four_steps() {
        for first_bad in 1..16 {
            let (ends, asked) = found(16, first_bad, &[]);
            assert_eq!(ends, [first_bad - 1, first_bad]);
            assert!(asked <= 4, "{asked}");
        }
        assert_eq!(found(2, 1, &[]), ([0, 1], 0));
    }

    #[test]
    fn kernels_that_cannot_be_judged_are_passed_over() {
        assert_eq!(found(8, 5, &[3, 4]).0, [2, 5]);
        assert_eq!(found(8, 7, &[1, 2, 3]).0, [6, 7]);
    }
}
