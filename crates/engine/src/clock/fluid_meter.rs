//! Measures with the fluid, a process of low priority that uses the CPU time which other tasks leave. It is calibrated alone,
//! covers a run, and is calibrated again.
//!
//! `syscost_statistic::fluid_cost` computes displacement from its windows.

use super::evidence::read_text;
use super::{Clock, Ticks};
use crate::error::Result;
use crate::platform::fluid::{Flow, Fluid};
use crate::platform::proc;
use crate::statistic::fluid_cost::{Calibration, Covered, Window};
use std::fs::File;
use std::time::Duration;

/// CPU time and waits that the kernel has charged to a process under test so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Charge {
    /// CPU time by the process clock, ns.
    pub clock: f64,
    /// CPU time by `getrusage`, ns.
    pub rusage: f64,
    /// Voluntary context switches.
    pub waits: f64,
}

/// Number and length of the windows of a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibrationPlan {
    /// Number of windows; their median is used.
    pub windows: usize,
    /// Length of each.
    pub each: Duration,
}

/// A fluid on one CPU, with the scale of its clock and the accounts of that CPU.
pub struct FluidMeter {
    fluid: Fluid,
    cpu: usize,
    ns_per_tick: f64,
    interrupts_apart: bool,
    /// `schedstat` of the thread that runs deferred interrupt work (`ksoftirqd`), where it is visible.
    deferred: Option<File>,
    stat: Option<File>,
    buffer: Vec<u8>,
}

/// Added to the wait for a window that ends by itself: time to wake up.
const MARGIN: Duration = Duration::from_micros(200);

impl FluidMeter {
    /// Starts a fluid on this CPU, with a priority below that of the process `beside`; 0 is the calling process.
    ///
    /// # Errors
    /// The kernel refuses the process, the CPU or the priority.
    pub fn start(cpu: usize, clock: &Clock, interrupts_apart: bool, beside: u32) -> Result<Self> {
        let fluid = Fluid::start(cpu, clock.unfit_reason().is_none(), beside)?;
        let deferred = ksoftirqd_pid(cpu).and_then(|pid| File::open(format!("/proc/{pid}/schedstat")).ok());
        Ok(Self {
            fluid,
            cpu,
            ns_per_tick: clock.nanoseconds(Ticks(1 << 20)).0 / f64::from(1 << 20),
            interrupts_apart,
            deferred,
            stat: File::open("/proc/stat").ok(),
            buffer: vec![0; 64 << 10],
        })
    }

    /// Measures the fluid alone, by windows that end by themselves, so that no other task wakes up to end them.
    ///
    /// # Errors
    /// The fluid has ended, gets no CPU, or was interrupted in every turn.
    pub fn calibrate(&mut self, how: CalibrationPlan) -> Result<Calibration> {
        let limit = (how.each.as_nanos() as f64 / self.ns_per_tick) as u64;
        let mut windows = Vec::with_capacity(how.windows);
        for _ in 0..how.windows {
            self.fluid.next_window(limit)?;
            std::thread::sleep(how.each + MARGIN);
            windows.push(self.fluid.wait_for_window_end()?);
        }
        let windows: Vec<_> = windows.iter().map(|flow| self.window_from_flow(flow)).collect();
        Calibration::from_windows(&windows).ok_or_else(|| {
            crate::error::Error::Disturbed(format!(
                "the fluid on CPU {} was interrupted in every turn: other tasks have that CPU",
                self.cpu
            ))
        })
    }

    /// Covers a run by one window, and reads `charge` before and after it.
    ///
    /// # Errors
    /// An error of `charge` or `run`, or the fluid has ended or gets no CPU.
    pub fn cover_run<T>(
        &mut self,
        mut charge: impl FnMut() -> Result<Charge>,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Covered)> {
        let (before, deferred) = (charge()?, self.deferred_interrupt_ns());
        self.fluid.next_window(u64::MAX)?;
        // This process also waits for the fluid's answers; these waits do not belong to the run.
        let waits = charge()?.waits;
        let value = run()?;
        let waits = charge()?.waits - waits;
        let flow = self.fluid.next_window(u64::MAX)?;
        let (after, deferred_after) = (charge()?, self.deferred_interrupt_ns());
        let covered = Covered {
            window: self.window_from_flow(&flow),
            charged: after.clock - before.clock,
            rusage: after.rusage - before.rusage,
            deferred: deferred_after.zip(deferred).map_or(0.0, |(after, before)| after - before),
            operations: 1.0,
            waits,
            interrupts_apart: self.interrupts_apart,
        };
        Ok((value, covered))
    }

    /// Begins a new window, and returns the one that it ends.
    ///
    /// # Errors
    /// The fluid has ended or gets no CPU.
    pub fn start_next_window(&mut self) -> Result<Window> {
        let flow = self.fluid.next_window(u64::MAX)?;
        Ok(self.window_from_flow(&flow))
    }

    /// Runs something while the fluid is stopped.
    ///
    /// # Errors
    /// An error of `run`, or the fluid has ended.
    pub fn run_while_paused<T>(&mut self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.fluid.pause()?;
        let value = run();
        self.fluid.resume()?;
        value
    }

    /// Time that the hypervisor has taken from this CPU so far, in clock ticks ([`super::USER_HZ`]).
    pub fn stolen_ticks(&mut self) -> u64 {
        let text = read_text(&self.stat, &mut self.buffer);
        text.and_then(|text| proc::stolen_ticks(text, self.cpu)).unwrap_or(0)
    }

    /// CPU time of the thread that runs deferred interrupt work so far, ns.
    pub fn deferred_interrupt_ns(&mut self) -> Option<f64> {
        let text = read_text(&self.deferred, &mut self.buffer);
        text.and_then(proc::parse_schedstat).map(|read| read.ran_ns as f64)
    }

    fn window_from_flow(&self, flow: &Flow) -> Window {
        let ns = |ticks: u64| ticks as f64 * self.ns_per_tick;
        Window {
            elapsed: ns(flow.ticks),
            loops: flow.loops as f64,
            own: flow.own_ns as f64,
            gaps: flow.gaps as f64,
            gapped: ns(flow.gapped),
            after: ns(flow.after),
            afters: flow.afters as f64,
            preempted: flow.preempted as f64,
        }
    }
}

/// The kernel's thread that runs deferred interrupt work on a CPU. It is not visible in a container.
fn ksoftirqd_pid(cpu: usize) -> Option<u32> {
    let name = format!("ksoftirqd/{cpu}");
    let numbers = std::fs::read_dir("/proc").ok()?.flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|number| {
            std::fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|comm| comm.trim() == name)
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{arch, cpu, time};

    fn charge() -> Result<Charge> {
        let clock = time::thread_cpu_ns() as f64;
        Ok(Charge { clock, rusage: clock, waits: 0.0 })
    }

    #[test]
    fn computation_displaces_about_what_it_is_charged() {
        let clock = Clock::start_up();
        let cpu = cpu::allowed_cpus().into_iter().max().expect("a CPU");
        let found = cpu::run_on_cpu(cpu, || {
            let mut meter = FluidMeter::start(cpu, &clock, false, 0)?;
            let how = CalibrationPlan { windows: 3, each: Duration::from_millis(2) };
            let before = meter.calibrate(how)?;
            let work = || Ok(arch::multiply_chain(20_000_000));
            let (_, covered) = meter.cover_run(charge, work)?;
            Ok::<_, crate::error::Error>((before, covered))
        });
        let (before, covered) = found.expect("pinned").expect("measured");
        // Other tests share the CPU. The time that they had is known to within their context switches, so that the rest may
        // fall below zero.
        let slack = 0.05 * before.own;
        assert!(before.wall >= 0.9 * before.own && before.interrupts > -slack, "{before:?}");
        // Other tests may run at the same time, but the time that the process was charged lies inside the window.
        assert!(covered.charged > 1e6 && covered.window.elapsed > 0.9 * covered.charged, "{covered:?}");
        assert!(covered.window.own < covered.window.elapsed, "{covered:?}");
    }
}
