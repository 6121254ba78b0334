//! C1 and C2: CPU time of processes with a known load, by process and by CPU.

use super::Setting;
use super::cpu_load::{Load, other_processes_ns};
use super::cpu_mode::{self, Modes, Split};
use super::finding::{Finding, mean_and_half_width};
use crate::{Percent, Process, Processors, Reading, busy_share, camp};
use std::time::{Duration, Instant};
use syscost_platform::cpu;
use syscost_platform::error::Result;

/// The window for a process's share: CAMP's default interval.
const WINDOW: Duration = camp::INTERVAL;
/// The shortest window for a whole CPU, whose counter advances by ticks of 10 ms: half a second, as in the paper.
const GLOBAL: Duration = Duration::from_millis(500);
/// The tolerance, percent. "The range of each confidence interval never exceeded 0.5 %."
const TOLERANCE: f64 = 0.5;
/// The share of the CPU, percent, that other processes must exceed to excuse a load that misses its target.
const CROWDED: f64 = 2.0;
/// The time after which a load counts as begun.
const SETTLING: Duration = Duration::from_secs(1);
/// The number of windows that the paper measured. With fewer windows, a wide interval does not count against the counter.
const PUBLISHED: u32 = 200;

/// C1: idle, half and full load.
pub(super) fn run_one_load(setting: &Setting) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (name, share, published) in [("idle", 0.0, "0"), ("50 %", 0.5, "50"), ("full", 1.0, "100")] {
        let Some(watched) = watch_loads(&[share], setting)? else { break };
        // A full load gets the share that other processes leave.
        let room = watched.others.as_ref().map_or(100.0, |others| 100.0 - others);
        let expected = (100.0 * share).min(room);
        findings.push(watched.process_finding(0, name, published, expected));
        findings.push(watched.cpu_finding(name, published, expected));
    }
    findings
        .extend(run_split_loads(&[("40 % user, 10 % kernel", Split { user: 40.0, kernel: 10.0 })], setting)?);
    findings.extend(cpu_mode::run(setting)?);
    Ok(findings)
}

/// C2: two loads of 30 % on one CPU.
pub(super) fn run_two_loads(setting: &Setting) -> Result<Vec<Finding>> {
    const SHARE: f64 = 0.3;
    let Some(watched) = watch_loads(&[SHARE, SHARE], setting)? else { return Ok(Vec::new()) };
    let each = 100.0 * SHARE;
    let mut findings = vec![
        watched.process_finding(0, "the first of two", "about 30", each),
        watched.process_finding(1, "the second", "about 30", each),
        watched.cpu_finding("both", "slightly above 60", 2.0 * each),
    ];
    let first = ("25 % user, 5 % kernel", Split { user: 25.0, kernel: 5.0 });
    let second = ("5 % user, 25 % kernel", Split { user: 5.0, kernel: 25.0 });
    findings.extend(run_split_loads(&[first, second], setting)?);
    Ok(findings)
}

/// Runs loads with known shares of user and kernel time on one CPU, and checks both times of each.
fn run_split_loads(loads: &[(&str, Split)], setting: &Setting) -> Result<Vec<Finding>> {
    let claimed = cpu::claim_cpu();
    let cpu = claimed.as_ref().map_or_else(cpu::current_cpu, |claimed| claimed.cpu);
    let _aside = cpu::Aside::keep_off(cpu)?;
    let start = |(at, (_, split)): (usize, &(&str, Split))| {
        Load::with_mode_shares(split.user / 100.0, split.kernel / 100.0, cpu, 0xca3e + at as u64)
    };
    let running = loads.iter().enumerate().map(start).collect::<Result<Vec<_>>>()?;
    std::thread::sleep(SETTLING);
    let mut findings = Vec::new();
    for (load, (name, split)) in running.iter().zip(loads) {
        let (begun, before) = (Instant::now(), other_processes_ns(cpu, &running));
        let Some(modes) = Modes::read(load.pid().as_raw(), setting)? else { return Ok(Vec::new()) };
        let others = before.and_then(|before| Ok(other_processes_ns(cpu, &running)?.saturating_sub(before)));
        // If the time of other processes is unknown, they may have taken all of it.
        let others = others.map_or(100.0, |ns| 100.0 * ns as f64 / begun.elapsed().as_nanos() as f64);
        findings.extend(modes.findings(name, *split, others));
    }
    Ok(findings)
}

/// Busy shares that were measured while loads ran on one CPU, percent.
struct Watched {
    /// One list of samples for each process.
    processes: Vec<Vec<f64>>,
    /// The samples of the CPU's share.
    global: Vec<f64>,
    /// The share of other processes, or the reason why it is unknown.
    others: std::result::Result<f64, String>,
    /// Whether there were fewer windows than in the paper.
    is_short: bool,
}

impl Watched {
    fn process_finding(&self, at: usize, name: &str, published: &str, expected: f64) -> Finding {
        self.judge_unless_crowded(&format!("{name}, process"), published, expected, &self.processes[at])
    }

    /// Excuses a load that lacks no more than the time of other processes. A larger deficit, or a surplus, fails.
    fn judge_unless_crowded(&self, what: &str, published: &str, expected: f64, samples: &[f64]) -> Finding {
        let finding = Finding::mean_share(what, published, expected, samples, TOLERANCE);
        match self.others {
            Ok(others) if others > CROWDED && is_explained_by_others(others, expected, samples) => finding
                .excuse_failure(format!(
                    "others had {others:.1} % of this CPU: try again when it is at rest"
                )),
            _ if self.is_short && is_too_uncertain(expected, samples) => {
                finding.excuse_failure("so few windows do not tell it that well: give it more --samples")
            }
            _ => finding,
        }
    }

    /// The finding on the busy share of the CPU, to which other processes contribute.
    fn cpu_finding(&self, name: &str, published: &str, loads: f64) -> Finding {
        let what = match &self.others {
            Ok(others) if *others >= 0.05 => format!("{name}, CPU (others {others:.1} %)"),
            _ => format!("{name}, CPU"),
        };
        let others = self.others.as_ref().map_or(0.0, |others| *others);
        let finding = self.judge_unless_crowded(&what, published, loads + others, &self.global);
        match &self.others {
            Ok(_) => finding,
            // A value that matches the loads alone shows that there were no other processes.
            Err(why) => finding.excuse_failure(why),
        }
    }
}

/// Whether the interval of the mean is wider than the tolerance and contains the expected value.
fn is_too_uncertain(expected: f64, samples: &[f64]) -> bool {
    let (mean, half) = mean_and_half_width(samples);
    half > TOLERANCE && (mean - expected).abs() <= half
}

/// Whether the mean of `samples` lies below `expected` by at most `others`, within its own uncertainty.
fn is_explained_by_others(others: f64, expected: f64, samples: &[f64]) -> bool {
    let (mean, half) = mean_and_half_width(samples);
    let slack = TOLERANCE + half;
    (expected - others - slack..=expected + slack).contains(&mean) && half <= others + TOLERANCE
}

/// Runs loads of these shares and samples them; `None` if it was interrupted.
fn watch_loads(shares: &[f64], setting: &Setting) -> Result<Option<Watched>> {
    let claimed = cpu::claim_cpu();
    let cpu = claimed.as_ref().map_or_else(cpu::current_cpu, |claimed| claimed.cpu);
    let _aside = cpu::Aside::keep_off(cpu)?;
    let start = |(at, share): (usize, &f64)| Load::with_share(*share, cpu, 0x5eed + at as u64);
    let loads = shares.iter().enumerate().map(start).collect::<Result<Vec<_>>>()?;
    let open = |load: &Load| Process::open(load.pid().as_raw());
    let processes = loads.iter().map(open).collect::<std::result::Result<Vec<_>, _>>()?;
    std::thread::sleep(SETTLING);
    Watch { cpu, loads, processes, processors: Processors::open()? }.run(setting)
}

struct Watch {
    cpu: usize,
    loads: Vec<Load>,
    processes: Vec<Process>,
    processors: Processors,
}

impl Watch {
    fn run(&mut self, setting: &Setting) -> Result<Option<Watched>> {
        let mut samples = vec![Vec::new(); self.processes.len()];
        let mut global = Vec::new();
        let (begun, before) = (Instant::now(), self.other_processes_ns());
        let mut times = self.cpu_times()?;
        let mut spent = self.processors.time_spent(self.cpu)?;
        for _ in 0..setting.samples {
            // There is no fixed schedule: on a single CPU a full load can delay this process, and a window that made up for
            // the delay would be one in which the load hardly ran.
            std::thread::sleep(WINDOW);
            let now = self.cpu_times()?;
            for ((before, after), samples) in times.iter().zip(&now).zip(&mut samples) {
                samples.push(Percent::busy(before, after)?.value);
            }
            times = now;
            if spent.at.elapsed() >= GLOBAL {
                let now = self.processors.time_spent(self.cpu)?;
                global.push(busy_share(&spent, &now)?.value);
                spent = now;
            }
            if !(setting.tick)() {
                return Ok(None);
            }
            let rest = setting.interval.saturating_sub(WINDOW);
            if !rest.is_zero() {
                std::thread::sleep(rest);
                times = self.cpu_times()?;
            }
        }
        let (after, elapsed) = (self.other_processes_ns(), begun.elapsed().as_nanos() as f64);
        let others = before.and_then(|before| Ok(after?.saturating_sub(before)));
        let others = others.map(|ns| 100.0 * ns as f64 / elapsed).map_err(|error| error.to_string());
        Ok(Some(Watched { processes: samples, global, others, is_short: setting.samples < PUBLISHED }))
    }

    fn cpu_times(&self) -> Result<Vec<Reading<Duration>>> {
        Ok(self.processes.iter().map(Process::cpu_time).collect::<std::result::Result<_, _>>()?)
    }

    fn other_processes_ns(&self) -> Result<u64> {
        other_processes_ns(self.cpu, &self.loads)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    /// The verdict on a load of 50 % that is read as `seen` while other processes use `others` percent.
    fn verdict(seen: f64, others: f64) -> Verdict {
        let samples = vec![seen - 0.1, seen, seen + 0.1, seen - 0.1, seen + 0.1];
        verdict_on(samples, others, false)
    }

    fn verdict_on(samples: Vec<f64>, others: f64, is_short: bool) -> Verdict {
        let watched = Watched { processes: vec![samples], global: Vec::new(), others: Ok(others), is_short };
        watched.process_finding(0, "50 %", "50", 50.0).verdict
    }

    #[test]
    fn few_windows_excuse_a_wide_interval_but_not_a_wrong_mean() {
        let wide = || vec![47.0, 53.0, 48.0, 52.0];
        assert_eq!(verdict_on(wide(), 0.0, false), Verdict::Failed, "the paper's number tells it well");
        assert!(matches!(verdict_on(wide(), 0.0, true), Verdict::Inconclusive(_)));
        assert_eq!(verdict_on(vec![57.0, 63.0, 58.0, 62.0], 0.0, true), Verdict::Failed);
        assert_eq!(verdict_on(vec![51.0, 51.1, 50.9], 0.0, true), Verdict::Failed);
    }

    #[test]
    fn windows_begin_an_interval_apart() {
        let place = tempfile::tempdir().expect("made");
        // Without a pause the windows would last 0.2 s in all, which is too short for a window of a whole CPU.
        let interval = Duration::from_millis(500);
        let functions = super::super::Functions::OURS;
        let setting = Setting { samples: 2, interval, scratch: place.path(), functions, tick: &|| true };
        let watched = watch_loads(&[0.0], &setting).expect("watched").expect("not interrupted");
        assert!(watched.processes[0].len() == 2 && !watched.global.is_empty());
    }

    #[test]
    fn other_processes_excuse_only_the_time_they_can_have_taken() {
        assert_eq!(verdict(50.1, 30.0), Verdict::Passed);
        assert!(matches!(verdict(48.0, 3.0), Verdict::Inconclusive(_)));
        assert_eq!(verdict(48.0, 1.0), Verdict::Failed, "they had too little");
        assert_eq!(verdict(25.0, 3.0), Verdict::Failed, "they had not so much");
        assert_eq!(verdict(53.0, 30.0), Verdict::Failed, "no load gets more through others");
    }
}
