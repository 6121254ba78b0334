//! Measures the CPU time that another process takes, a command or a running service. A fluid process on every CPU on which it
//! may run uses the time that the process leaves. The time that the fluid loses is the process's cost, interrupts included.
//!
//! A command runs alone on one CPU. A service runs already when its CPUs are calibrated, so interrupts that work for it look
//! like those that occur anyway: [`Covered::least`] leaves out interrupts that occurred as often before.

mod process_cost;

pub use process_cost::{Costs, Found};

use crate::clock::{CalibrationPlan, Charge, Clock, FluidMeter};
use crate::environment::cpu_list;
use crate::error::{Error, Result};
use crate::platform::process::{self, inheritance};
use crate::platform::{proc, signal};
use crate::statistic::fluid_cost::{self, Calibration, Replicate, Totals, Window};
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Windows and their length before and after each run.
const CALIBRATING: CalibrationPlan = CalibrationPlan { windows: 8, each: Duration::from_millis(5) };
/// How often to look whether a command has ended.
const POLL: Duration = Duration::from_millis(1);

/// One run of a command, or one stretch of a service, covered by fluids.
pub struct Covered {
    /// Totals between two calibrations. Those of a service include the time of every interrupt.
    pub replicate: Replicate,
    /// CPUs that were covered.
    pub cpus: Vec<usize>,
    /// A lower bound of a service's cost: the totals without interrupts that occurred as often before.
    pub least: Option<Replicate>,
    /// One window for each interval.
    pub series: Vec<Window>,
    /// Exit code of a command that failed.
    pub code: Option<u8>,
    /// The empty run that is subtracted, where operations are counted.
    pub empty: Option<Replicate>,
}

impl Covered {
    /// Converts the run to the cost of one operation: this run does `operations` more than the empty run.
    pub fn subtract_empty_run(mut self, empty: &Self, operations: u64) -> Self {
        self.replicate.covered.operations = operations as f64;
        self.replicate.empty = empty.replicate.totals();
        self.empty = Some(empty.replicate);
        self
    }
}

/// One fluid process on each CPU.
pub struct Fluids {
    meters: Vec<FluidMeter>,
    cpus: Vec<usize>,
    interrupts_apart: bool,
    /// Whether the covered process does not run during the calibrations.
    alone: bool,
}

impl Fluids {
    /// Starts one on each of these CPUs. `beside` is the process that they give way to, 0 for our own children.
    ///
    /// # Errors
    /// A fluid cannot be started, or is not given its CPU.
    pub fn start(cpus: &[usize], clock: &Clock, interrupts_apart: bool, beside: u32) -> Result<Self> {
        let meters = cpus.iter().map(|&cpu| FluidMeter::start(cpu, clock, interrupts_apart, beside));
        let meters = meters.collect::<Result<_>>()?;
        Ok(Self { meters, cpus: cpus.to_vec(), interrupts_apart, alone: beside == 0 })
    }

    fn calibrate(&mut self) -> Result<Vec<Calibration>> {
        self.meters.iter_mut().map(|meter| meter.calibrate(CALIBRATING)).collect()
    }

    /// Ends the window on every CPU and returns the sum of the windows, in turns of the first CPU's fluid.
    fn end_window(&mut self, paces: &[Calibration]) -> Result<Window> {
        let mut sum = Window::default();
        for (meter, pace) in self.meters.iter_mut().zip(paces) {
            sum = sum.combined_with(&meter.start_next_window()?.rescale_turns(pace.own / paces[0].own));
        }
        Ok(sum)
    }

    fn stolen_ticks(&mut self) -> u64 {
        self.meters.iter_mut().map(FluidMeter::stolen_ticks).sum()
    }

    fn deferred_ns(&mut self) -> f64 {
        self.meters.iter_mut().filter_map(FluidMeter::deferred_interrupt_ns).sum()
    }

    /// Covers the time from `begin` until `wait` returns true, in one window per interval. `charged` reads what accounting has
    /// charged, at both ends.
    fn cover_process(
        &mut self,
        interval: Duration,
        mut charged: impl FnMut() -> Result<Charge>,
        mut begin: impl FnMut() -> Result<()>,
        mut wait: impl FnMut(Duration) -> Result<bool>,
    ) -> Result<Covered> {
        let before = self.calibrate()?;
        let (stolen, deferred) = (self.stolen_ticks(), self.deferred_ns());
        let mut series = Vec::new();
        self.end_window(&before)?;
        let charge = charged()?;
        begin()?;
        while {
            let over = wait(interval)?;
            series.push(self.end_window(&before)?);
            !over && signal::pending().is_none()
        } {}
        let charged = charged()?;
        let covered = fluid_cost::Covered {
            window: series.iter().fold(Window::default(), |sum, window| sum.combined_with(window)),
            charged: charged.clock - charge.clock,
            rusage: charged.rusage - charge.rusage,
            deferred: self.deferred_ns() - deferred,
            operations: 1.0,
            waits: (charged.waits - charge.waits).max(0.0), // a thread that ends takes its count along
            interrupts_apart: self.interrupts_apart,
        };
        let stolen_ticks = self.stolen_ticks().saturating_sub(stolen);
        let after = self.calibrate()?;
        let found =
            Replicate { before: before[0], covered, after: after[0], stolen_ticks, empty: Totals::default() };
        let bare = Replicate {
            before: found.before.without_interrupts(),
            after: found.after.without_interrupts(),
            ..found
        };
        let (replicate, least) = if self.alone { (found, None) } else { (bare, Some(found)) };
        Ok(Covered { replicate, least, cpus: self.cpus.clone(), series, code: None, empty: None })
    }
}

/// Runs the command on the first CPU of the fluids and covers it. `None` if `words` is empty or a signal to this
/// process ended the run.
///
/// # Errors
/// The command cannot be started, or a fluid ends or is not given its CPU.
pub fn cover_command(words: &[OsString], fluids: &mut Fluids, interval: Duration) -> Result<Option<Covered>> {
    let Some((program, arguments)) = words.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    process::pin_command(inheritance::restore_inherited(command.args(arguments)), fluids.cpus[0]);
    let child: RefCell<Option<Child>> = None.into();
    let ended: Cell<Option<ExitStatus>> = None.into();
    let begin = || {
        let started = command.spawn().map_err(|e| Error::file(program, "starting", e))?;
        signal::forward_to_child(Some(started.id()));
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
                None => std::thread::sleep(POLL),
            }
        }
    };
    let covered = fluids.cover_process(interval, charged_to_children, begin, wait);
    if let Some(mut child) = child.into_inner().filter(|_| ended.get().is_none()) {
        // The signal that interrupted us was passed on to it.
        let _ = child.wait();
    }
    signal::forward_to_child(None);
    let code = ended.get().and_then(failure_code);
    Ok(Some(Covered { code, ..covered? }).filter(|_| signal::pending().is_none()))
}

/// The exit code of a command that failed, as a shell gives it.
fn failure_code(status: ExitStatus) -> Option<u8> {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    (code != 0).then_some(u8::try_from(code).unwrap_or(1))
}

/// CPU time and voluntary switches of all children that were waited for so far. The fluid is not among them until it ends.
fn charged_to_children() -> Result<Charge> {
    let [_, children] = process::process_usage()?;
    let ns = 1e3 * process::cpu_time_us(&children) as f64;
    Ok(Charge { clock: ns, rusage: ns, waits: children.voluntary_context_switches() as f64 })
}

/// Covers a running process for a while.
///
/// # Errors
/// The process ends meanwhile, or a fluid ends or is not given its CPU.
pub fn cover_service(pid: u32, fluids: &mut Fluids, whole: Duration, interval: Duration) -> Result<Covered> {
    let began = process::process_start_ticks(pid);
    let charged = || match process::process_cpu_ns(pid) {
        0 => Err(Error::Missing(format!("process {pid} has ended: its CPU time can no longer be read"))),
        ns => Ok(Charge { clock: ns as f64, rusage: ns as f64, waits: voluntary_switches_of(pid) }),
    };
    let begun = Cell::new(Instant::now());
    let begin = || {
        begun.set(Instant::now());
        Ok(())
    };
    let wait = |interval: Duration| {
        let left = whole.saturating_sub(begun.get().elapsed());
        std::thread::sleep(interval.min(left));
        if process::process_start_ticks(pid) != began {
            return Err(Error::Missing(format!("process {pid} has ended while it was watched")));
        }
        Ok(begun.get().elapsed() >= whole)
    };
    fluids.cover_process(interval, charged, begin, wait)
}

/// Voluntary context switches of the living threads of a process.
fn voluntary_switches_of(pid: u32) -> f64 {
    let each = |status: &String| proc::context_switches(status).map_or(0, |(waits, _)| waits);
    thread_statuses(pid).map_or(0.0, |all| all.iter().map(each).sum::<u64>() as f64)
}

/// `/proc/PID/task/TID/status` of each thread of a process.
fn thread_statuses(pid: u32) -> Result<Vec<String>> {
    let directory = format!("/proc/{pid}/task");
    let threads = std::fs::read_dir(&directory).map_err(|e| Error::file(&directory, "reading", e))?;
    let read = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("status")));
    Ok(read.filter_map(std::result::Result::ok).collect())
}

/// The CPUs, in order, that are online and on which any thread of a process may run.
///
/// # Errors
/// There is no such process, or `/proc` hides it.
pub fn allowed_cpus_of(pid: u32) -> Result<Vec<usize>> {
    let statuses = thread_statuses(pid)?;
    let list = |status: &String| {
        Some(cpu_list::parse(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?))
    };
    let lists = statuses.iter().filter_map(list);
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = cpu_list::parse(&online);
    let mut cpus: Vec<_> = lists.flatten().filter(|cpu| online.contains(cpu)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() {
        Err(Error::Missing(format!("/proc/{pid} does not tell on which CPUs process {pid} may run")))
    } else {
        Ok(cpus)
    }
}
