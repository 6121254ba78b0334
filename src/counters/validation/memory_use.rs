//! C3: a process that allocates and touches 976 KB, twice (the paper's Table 1) and 30 times more.

use super::Setting;
use super::finding::{Finding, median_kb};
use super::worker::{Turn, Worker};
use crate::counters::{Fault, Process, Reading, physical_memory};
use crate::error::Result;
use crate::platform::region::Region;
use crate::platform::resident::Pages;

const KB: usize = 976;
/// Free memory changes with every process: only the median of this many differences is that of the worker.
const TIMES: usize = 32;

/// Tolerances of the paper: "just over 1 %" of the resident set, "within 10 %" of free memory.
const RESIDENT_PERCENT: f64 = 1.0;
const FREE_PERCENT: f64 = 10.0;

pub(super) fn run(setting: &Setting) -> Result<Vec<Finding>> {
    let mut worker = Worker::start(take)?;
    let process = worker.process()?;
    let size = setting.functions.vm_size_kb;
    // The first step also touches the child's stack and code for the first time, and is not counted.
    worker.step()?;
    let memory = physical_memory::Memory::open()?;
    let mut taken = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let before = read(&process, size, &memory)?;
        worker.step()?;
        let after = read(&process, size, &memory)?;
        taken.push(std::array::from_fn::<_, 4, _>(|at| after[at] - before[at]));
        if !(setting.tick)() {
            return Ok(Vec::new());
        }
    }
    Ok(judge(&taken))
}

fn judge(taken: &[[f64; 4]]) -> Vec<Finding> {
    let kb = |at: usize, which: usize| taken[which][at] / 1024.0;
    let of_all = |at: usize| median_kb(&taken.iter().map(|row| row[at]).collect::<Vec<_>>());
    let size = KB as f64;
    let free =
        Finding::within("free memory, CPUs' lists included", "972, 872, 968", -size, of_all(2), FREE_PERCENT);
    let plain = Finding::within("free memory alone", "972, 872, 968", -size, of_all(3), FREE_PERCENT);
    vec![
        Finding::within("address space", "", size, kb(0, 0), 0.0),
        Finding::within("resident set, first", "988, 984, 988", size, kb(1, 0), RESIDENT_PERCENT),
        Finding::within("resident set, second", "", size, kb(1, 1), RESIDENT_PERCENT),
        free,
        plain.but("pages come from the lists of each CPU, which this figure leaves out: shown to warn"),
    ]
}

/// Address space, resident set, truly free and free memory, in bytes.
fn read(
    process: &Process,
    size: fn(i32) -> std::result::Result<Reading<u64>, Fault>,
    memory: &physical_memory::Memory,
) -> Result<[f64; 4]> {
    let size = size(process.pid())?.value << 10;
    let readings = [process.resident()?, memory.truly_free()?, physical_memory::free()?];
    let [resident, truly_free, free] = readings.map(|reading| reading.value as f64);
    Ok([size as f64, resident, truly_free, free])
}

fn take(turn: &mut Turn) {
    let mut kept = Vec::with_capacity(TIMES + 1);
    turn.done(0);
    for _ in 0..=TIMES {
        let Ok(region) = Region::anonymous(KB << 10, Pages::Base) else { return };
        region.write(0..region.pages(), 1);
        kept.push(region);
        turn.done(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Functions, Verdict};
    use super::*;

    #[test]
    fn another_process_s_address_space_is_not_taken_for_the_worker_s() {
        let place = tempfile::tempdir().expect("made");
        let verdict = |functions| {
            let setting = Setting { samples: 10, scratch: place.path(), functions, tick: &|| true };
            run(&setting).expect("a worker")[0].verdict.clone()
        };
        assert_eq!(verdict(Functions::OURS), Verdict::Passed);
        let other = Functions { vm_size_kb: |_| fixed(1 << 20), ..Functions::OURS };
        assert_eq!(verdict(other), Verdict::Failed);
    }

    /// A process that takes nothing.
    fn fixed(kb: u64) -> std::result::Result<Reading<u64>, Fault> {
        Ok(Reading::now(kb, 1, crate::counters::Method::ProcessStatm))
    }
}
