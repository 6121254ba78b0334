//! C1 and C2: CPU time of processes whose load is known, of each and of the CPU.

use super::Setting;
use super::finding::Finding;
use super::load::{Load, run_ns};
use crate::Result;
use crate::counters::{Percent, Process, Processors, busy};
use crate::machine::cpu;
use std::time::{Duration, Instant};

/// What CAMP's functions wait by default.
const WINDOW: Duration = Duration::from_millis(100);
/// The counter of a CPU moves by ticks of 10 ms, so that its windows are longer: half a second, at which the paper took
/// its samples.
const GLOBAL: usize = 5;
/// "The range of each confidence interval never exceeded 0.5 %."
const TOLERANCE: f64 = 0.5;
/// For a load to begin.
const SETTLING: Duration = Duration::from_millis(300);

/// C1: idle, half and full load, of the process and of its CPU.
pub(super) fn one(setting: &Setting) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (name, share, published) in [("idle", 0.0, "0"), ("50 %", 0.5, "50"), ("full", 1.0, "100")] {
        let Some(watched) = watch(&[share], setting)? else { break };
        // A full load has what others leave.
        let room = watched.others.as_ref().map_or(100.0, |others| 100.0 - others);
        let expected = (100.0 * share).min(room);
        findings.push(watched.process(0, name, published, expected));
        findings.push(watched.global(name, published, expected));
    }
    Ok(findings)
}

/// C2: two loads of 30 % on one CPU, each and together.
pub(super) fn two(setting: &Setting) -> Result<Vec<Finding>> {
    const SHARE: f64 = 0.3;
    let Some(watched) = watch(&[SHARE, SHARE], setting)? else { return Ok(Vec::new()) };
    let each = 100.0 * SHARE;
    Ok(vec![
        watched.process(0, "the first of two", "about 30", each),
        watched.process(1, "the second", "about 30", each),
        watched.global("both", "slightly above 60", 2.0 * each),
    ])
}

/// What was seen of loads on one CPU.
struct Watched {
    /// A list for each process.
    processes: Vec<Vec<f64>>,
    global: Vec<f64>,
    /// Share of the CPU that others had, in hundredths, or why that is not known.
    others: std::result::Result<f64, String>,
}

impl Watched {
    fn process(&self, at: usize, name: &str, published: &str, expected: f64) -> Finding {
        Finding::mean(&format!("{name}, process"), published, expected, &self.processes[at], TOLERANCE)
    }

    /// The CPU was busy with the loads and with others.
    fn global(&self, name: &str, published: &str, loads: f64) -> Finding {
        let what = match &self.others {
            Ok(others) if *others >= 0.05 => format!("{name}, CPU (others {others:.1} %)"),
            _ => format!("{name}, CPU"),
        };
        let others = self.others.as_ref().map_or(0.0, |others| *others);
        let finding = Finding::mean(&what, published, loads + others, &self.global, TOLERANCE);
        match &self.others {
            Ok(_) => finding,
            // As it should be without any others, so that there were none.
            Err(_) if finding.verdict == super::Verdict::Passed => finding,
            Err(why) => finding.but(why),
        }
    }
}

/// Watches loads of these shares; nothing where it was interrupted.
fn watch(shares: &[f64], setting: &Setting) -> Result<Option<Watched>> {
    let claimed = cpu::claim();
    let cpu = claimed.as_ref().map_or_else(cpu::current, |claimed| claimed.cpu);
    let _aside = cpu::Aside::from(cpu)?;
    let start = |(at, share): (usize, &f64)| Load::of(*share, cpu, 0x5eed + at as u64);
    let loads = shares.iter().enumerate().map(start).collect::<Result<Vec<_>>>()?;
    let open = |load: &Load| Process::open(load.pid().as_raw());
    let processes = loads.iter().map(open).collect::<std::result::Result<Vec<_>, _>>()?;
    std::thread::sleep(SETTLING);
    Watch { cpu, processes, processors: Processors::open()? }.all(setting)
}

struct Watch {
    cpu: usize,
    processes: Vec<Process>,
    processors: Processors,
}

impl Watch {
    fn all(&mut self, setting: &Setting) -> Result<Option<Watched>> {
        let mut samples = vec![Vec::new(); self.processes.len()];
        let mut global = Vec::new();
        let (begun, before, ours) = (Instant::now(), run_ns(self.cpu), self.ours()?);
        let mut marks = self.marks()?;
        let mut spent = self.processors.spent(Some(self.cpu))?;
        for n in 1..=setting.samples as usize {
            std::thread::sleep((begun + WINDOW * n as u32).saturating_duration_since(Instant::now()));
            let now = self.marks()?;
            for ((before, after), samples) in marks.iter().zip(&now).zip(&mut samples) {
                samples.push(Percent::busy(before, after)?.value);
            }
            marks = now;
            if n % GLOBAL == 0 {
                let now = self.processors.spent(Some(self.cpu))?;
                global.push(busy(&spent, &now)?.value);
                spent = now;
            }
            if !(setting.tick)() {
                return Ok(None);
            }
        }
        let after = run_ns(self.cpu);
        let (elapsed, ours) = (begun.elapsed().as_nanos() as f64, self.ours()?.saturating_sub(ours));
        let others = before.and_then(|before| Ok(after?.saturating_sub(before).saturating_sub(ours)));
        let others = others.map(|ns| 100.0 * ns as f64 / elapsed).map_err(|error| error.to_string());
        Ok(Some(Watched { processes: samples, global, others }))
    }

    fn marks(&self) -> Result<Vec<crate::counters::Reading<Duration>>> {
        Ok(self.processes.iter().map(Process::cpu_time).collect::<std::result::Result<_, _>>()?)
    }

    /// Nanoseconds that the loads have had.
    fn ours(&self) -> Result<u64> {
        Ok(self.marks()?.iter().map(|mark| mark.value.as_nanos() as u64).sum())
    }
}
