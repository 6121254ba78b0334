//! A command or a service, covered by fluids on every CPU on which it may run.

use super::CALIBRATING;
use crate::clock::{Charge, Clock, FluidMeter};
use crate::environment::cpu_list;
use crate::platform::proc;
use crate::platform::{process, signal};
use crate::statistic::fluid_cost::Replicate;
use crate::statistic::fluid_cost::{Calibration, Covered, Window};
use crate::{Error, Result};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Between two looks whether a command has ended.
const LOOK: Duration = Duration::from_millis(1);

/// One run.
pub(super) struct Cover {
    /// Between its calibrations.
    pub(super) replicate: Replicate,
    /// CPUs that were covered.
    pub(super) cpus: Vec<usize>,
    /// The same by calibrations in which it was there, of what ran before it was covered: whatever came as often then
    /// is not in its cost. By those of `replicate` everything is that came at all.
    pub(super) least: Option<Replicate>,
    /// A window an interval.
    pub(super) series: Vec<Window>,
    /// Exit code of a command that failed.
    pub(super) code: Option<u8>,
}

/// A fluid a CPU.
pub(super) struct Fluids {
    meters: Vec<FluidMeter>,
    cpus: Vec<usize>,
    interrupts_apart: bool,
    /// What they cover does not run before: else it is in their calibrations.
    alone: bool,
}

impl Fluids {
    /// Onto these CPUs, where they give way to this process, 0 being our own.
    pub(super) fn pour(cpus: &[usize], clock: &Clock, interrupts_apart: bool, beside: u32) -> Result<Self> {
        let meters = cpus.iter().map(|&cpu| FluidMeter::start(cpu, clock, interrupts_apart, beside));
        let meters = meters.collect::<Result<_>>()?;
        Ok(Self { meters, cpus: cpus.to_vec(), interrupts_apart, alone: beside == 0 })
    }

    fn calibrate(&mut self) -> Result<Vec<Calibration>> {
        self.meters.iter_mut().map(|meter| meter.calibrate(CALIBRATING)).collect()
    }

    /// Ends a window on every CPU: what was counted, in turns of the first CPU.
    fn turn(&mut self, paces: &[Calibration]) -> Result<Window> {
        let mut sum = Window::default();
        for (meter, pace) in self.meters.iter_mut().zip(paces) {
            sum = sum.and(&meter.turn()?.in_turns_of(pace.own / paces[0].own));
        }
        Ok(sum)
    }

    fn stolen_ticks(&mut self) -> u64 {
        self.meters.iter_mut().map(FluidMeter::stolen_ticks).sum()
    }

    fn deferred_ns(&mut self) -> f64 {
        self.meters.iter_mut().filter_map(FluidMeter::deferred_ns).sum()
    }

    /// Covers what happens until `wait` says that it is over, with a window an interval. `charged` is asked at both
    /// ends.
    fn cover(
        &mut self,
        interval: Duration,
        mut charged: impl FnMut() -> Result<Charge>,
        mut begin: impl FnMut() -> Result<()>,
        mut wait: impl FnMut(Duration) -> Result<bool>,
    ) -> Result<Cover> {
        let before = self.calibrate()?;
        let (stolen, deferred) = (self.stolen_ticks(), self.deferred_ns());
        let mut series = Vec::new();
        self.turn(&before)?;
        let charge = charged()?;
        begin()?;
        while {
            let over = wait(interval)?;
            series.push(self.turn(&before)?);
            !over && signal::pending().is_none()
        } {}
        let charged = charged()?;
        let covered = Covered {
            window: series.iter().fold(Window::default(), |sum, window| sum.and(window)),
            charged: charged.clock - charge.clock,
            rusage: charged.rusage - charge.rusage,
            deferred: self.deferred_ns() - deferred,
            operations: 1.0,
            waits: (charged.waits - charge.waits).max(0.0), // a thread that ended takes its own along
            interrupts_apart: self.interrupts_apart,
        };
        let stolen_ticks = self.stolen_ticks().saturating_sub(stolen);
        let after = self.calibrate()?;
        let found = Replicate { before: before[0], covered, after: after[0], stolen_ticks };
        let (replicate, least) = match self.alone {
            true => (found, None),
            false => {
                (Replicate { before: found.before.bare(), after: found.after.bare(), ..found }, Some(found))
            }
        };
        Ok(Cover { replicate, least, cpus: self.cpus.clone(), series, code: None })
    }
}

/// Runs the command on the only CPU of the fluids. Nothing if it was ended by a signal that was meant for us.
pub(super) fn command(words: &[OsString], fluids: &mut Fluids, interval: Duration) -> Result<Option<Cover>> {
    // The command line asks for at least one word.
    let Some((program, arguments)) = words.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    process::on_cpu(command.args(arguments), fluids.cpus[0]);
    let child: std::cell::RefCell<Option<Child>> = None.into();
    let ended: std::cell::Cell<Option<ExitStatus>> = None.into();
    let begin = || {
        let started = command.spawn().map_err(|e| Error::file(program, "starting", e))?;
        signal::pass_on_to(Some(started.id()));
        *child.borrow_mut() = Some(started);
        Ok(())
    };
    let wait = |interval: Duration| {
        let begun = Instant::now();
        loop {
            if let Some(child) = child.borrow_mut().as_mut() {
                ended.set(child.try_wait().map_err(|e| Error::file(program, "waiting for", e))?);
            }
            match ended.get() {
                Some(_) => return Ok(true),
                None if begun.elapsed() >= interval => return Ok(false),
                None => std::thread::sleep(LOOK),
            }
        }
    };
    let cover = fluids.cover(interval, waited_for, begin, wait);
    if let Some(mut child) = child.into_inner().filter(|_| ended.get().is_none()) {
        // We were told to end, and so was it.
        let _ = child.wait();
    }
    signal::pass_on_to(None);
    let code = ended.get().and_then(failure);
    Ok(Some(Cover { code, ..cover? }).filter(|_| signal::pending().is_none()))
}

/// The exit code to hand on, of a command that failed.
fn failure(status: ExitStatus) -> Option<u8> {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    (code != 0).then_some(u8::try_from(code).unwrap_or(1))
}

/// What wait4 has said of all children so far. The fluid has not been waited for.
fn waited_for() -> Result<Charge> {
    let [_, children] = process::family_usage()?;
    let micros = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 * 1e6 + t.tv_usec() as f64;
    let ns = 1e3 * (micros(children.user_time()) + micros(children.system_time()));
    Ok(Charge { clock: ns, rusage: ns, waits: children.voluntary_context_switches() as f64 })
}

/// Watches a process for a while. If it ends meanwhile, so do we.
pub(super) fn service(pid: u32, fluids: &mut Fluids, whole: Duration, interval: Duration) -> Result<Cover> {
    let began = process::began(pid);
    let charged = || match process::cpu_ns_of(pid) {
        0 => Err(Error::Usage(format!("process {pid} has ended: there is nothing to tell of"))),
        ns => Ok(Charge { clock: ns as f64, rusage: ns as f64, waits: waits_of(pid) }),
    };
    let begun = std::cell::Cell::new(Instant::now());
    let begin = || {
        begun.set(Instant::now());
        Ok(())
    };
    let wait = |interval: Duration| {
        let left = whole.saturating_sub(begun.get().elapsed());
        std::thread::sleep(interval.min(left));
        if process::began(pid) != began {
            return Err(Error::Usage(format!("process {pid} has ended while it was watched")));
        }
        Ok(begun.get().elapsed() >= whole)
    };
    fluids.cover(interval, charged, begin, wait)
}

/// How often the threads of a process that live have waited.
fn waits_of(pid: u32) -> f64 {
    let each = |status: &String| proc::switches(status).map_or(0, |(waits, _)| waits);
    statuses(pid).map_or(0.0, |all| all.iter().map(each).sum::<u64>() as f64)
}

/// What `/proc` says of each thread of a process.
fn statuses(pid: u32) -> Result<Vec<String>> {
    let directory = format!("/proc/{pid}/task");
    let threads = std::fs::read_dir(&directory).map_err(|e| Error::file(&directory, "reading", e))?;
    let read = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("status")));
    Ok(read.filter_map(std::result::Result::ok).collect())
}

/// The CPUs on which any thread of a process may run.
pub(super) fn cpus_of(pid: u32) -> Result<Vec<usize>> {
    let statuses = statuses(pid)?;
    let list = |status: &String| {
        Some(cpu_list::parse(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?))
    };
    let lists = statuses.iter().filter_map(list);
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = cpu_list::parse(&online);
    let mut cpus: Vec<_> = lists.flatten().filter(|cpu| online.contains(cpu)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    match cpus.is_empty() {
        true => Err(Error::Usage(format!("/proc/{pid} does not tell on which CPUs process {pid} may run"))),
        false => Ok(cpus),
    }
}
