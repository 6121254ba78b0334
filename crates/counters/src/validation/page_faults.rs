//! C7: minor and major page faults.

use super::finding::Finding;
use super::worker::{Turn, Worker};
use super::{Functions, Setting};
use crate::Stat;
use std::path::Path;
use syscost_platform::error::{Error, Result};
use syscost_platform::evictable::Evictable;
use syscost_platform::process::tool;
use syscost_platform::region::{Order, PAGE, Region};
use syscost_platform::resident::Pages;

const MINOR: usize = 1000;
const MAJOR: usize = 100;
/// Pages from one read to the next: too far apart for the kernel to read ahead.
const STRIDE: usize = 8;
const FILE: usize = 4 << 20;
const _: () = assert!(STRIDE * (MAJOR + 1) * PAGE <= FILE);

pub(super) fn run(setting: &Setting) -> Result<Vec<Finding>> {
    let mut findings = check_minor_faults(&setting.functions)?;
    match check_major_faults(setting.scratch) {
        Ok(finding) => findings.push(finding),
        Err(Error::Missing(why)) => findings.push(Finding::not_judged("with a disk", why)),
        Err(error) => return Err(error),
    }
    Ok(findings)
}

fn check_minor_faults(by: &Functions) -> Result<Vec<Finding>> {
    let mut worker = Worker::start(touch_regions)?;
    worker.run_step()?;
    let (pid, before) = (worker.pid(), (by.page_faults)(worker.pid())?.value);
    worker.run_step()?;
    let after = (by.page_faults)(pid)?.value;
    let stat = worker.process()?.stat()?;
    Ok(vec![
        Finding::exact_count("fresh pages touched", "", MINOR as u64, after - before),
        compare_with_ps(pid, &stat),
    ])
}

/// Writes two fresh regions. The faults of the first are not counted: it also touches code and stack for the first
/// time.
fn touch_regions(turn: &mut Turn) {
    let regions = [(); 2].map(|()| Region::map_anonymous(MINOR * PAGE, Pages::Base));
    turn.report_and_wait(0);
    for region in regions.iter().flatten() {
        region.write(0..region.page_count(), 1);
        turn.report_and_wait(0);
    }
}

/// Compares with `ps`, as the paper did.
fn compare_with_ps(pid: i32, stat: &Stat) -> Finding {
    let ours = vec![stat.minor_faults, stat.major_faults];
    let output = tool::command("ps").args(["-o", "min_flt=,maj_flt=", "-p", &pid.to_string()]).output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let theirs = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            Finding::same_items("min_flt and maj_flt of ps", "equal", theirs, ours)
        }
        _ => {
            Finding::not_judged("min_flt and maj_flt of ps", "there is no `ps` here that tells them (procps)")
        }
    }
}

fn check_major_faults(scratch: &Path) -> Result<Finding> {
    let mut file = Evictable::new(scratch, FILE)?;
    file.evict()?;
    let region = file.region();
    region.advise_order(Order::Random)?;
    // The first page is not counted: its read also touches code and stack for the first time.
    let measured = STRIDE..STRIDE * (MAJOR + 1);
    let mut worker = Worker::start(|turn| {
        turn.report_and_wait(0);
        for pages in [0..1, measured] {
            std::hint::black_box(region.read(pages, STRIDE));
            turn.report_and_wait(0);
        }
    })?;
    worker.run_step()?;
    let process = worker.process()?;
    let before = process.stat()?.major_faults;
    worker.run_step()?;
    Ok(Finding::exact_count(
        "pages read from the disk",
        "",
        MAJOR as u64,
        process.stat()?.major_faults - before,
    ))
}
