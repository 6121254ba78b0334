//! The CPUs: how long each was busy, and with what.

use super::file;
use super::text::{hundredths, line, number};
use super::{Fault, Method, Percent, Reading, TICK};
use std::fs::File;
use std::time::Duration;

const UPTIME: &str = "/proc/uptime";
const STAT: &str = "/proc/stat";

/// What the CPUs did since boot, all together or one (proc_stat(5)). Ticks of 10 ms, as the timer's tick saw them,
/// not as time was spent: work that begins after every tick and ends before the next is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// In user space, of ordinary priority.
    pub user: u64,
    /// In user space, of lowered priority.
    pub nice: u64,
    /// In the kernel.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a task waited for a device; it may go back.
    pub waiting: u64,
    /// In interrupts.
    pub interrupts: u64,
    /// In the soft part of interrupts.
    pub soft_interrupts: u64,
    /// Taken by the hypervisor for others.
    pub stolen: u64,
}

/// The CPUs, by two files that are kept open.
#[derive(Debug)]
pub struct Processors {
    uptime: File,
    stat: File,
    buffer: Vec<u8>,
}

impl Processors {
    /// Opens the files.
    ///
    /// # Errors
    /// [`Fault::Denied`] where `/proc` is not mounted or hidden.
    pub fn open() -> Result<Self, Fault> {
        // A line of 120 bytes a CPU, and only those lines are wanted; room for the first 500 of them.
        Ok(Self {
            uptime: file::open(format_args!("{UPTIME}"))?,
            stat: file::open(format_args!("{STAT}"))?,
            buffer: vec![0; 64 << 10],
        })
    }

    /// Time that all CPUs were idle, together.
    ///
    /// # Errors
    /// [`Fault::Parse`].
    #[inline]
    pub fn idle(&self) -> Result<Reading<Duration>, Fault> {
        idle(&self.uptime)
    }

    /// What the CPUs did: all of them, or this one.
    ///
    /// # Errors
    /// [`Fault::Gone`] for a CPU that is not online.
    pub fn spent(&mut self, cpu: Option<usize>) -> Result<Reading<Spent>, Fault> {
        spent(&self.stat, &mut self.buffer, cpu)
    }
}

/// Idle time by the second number of `/proc/uptime`.
#[inline]
pub(super) fn idle(uptime: &File) -> Result<Reading<Duration>, Fault> {
    let mut buffer = [0; 64];
    let text = file::read(uptime, &mut buffer, || UPTIME.into())?;
    let idle = hundredths(text).and_then(|(_, rest)| hundredths(rest));
    let (idle, _) = idle.ok_or_else(|| Fault::parse(UPTIME, "two numbers of seconds", text))?;
    Ok(Reading::now(TICK * idle as u32, TICK, Method::Uptime))
}

pub(super) fn spent(file: &File, buffer: &mut [u8], cpu: Option<usize>) -> Result<Reading<Spent>, Fault> {
    let text = file::read(file, buffer, || STAT.into())?;
    let line = match cpu {
        None => line(text, b"cpu "),
        Some(cpu) => line_of(text, cpu),
    };
    let Some(line) = line else {
        return Err(Fault::Gone(cpu.map_or("cpu".into(), |cpu| format!("CPU {cpu} of {STAT}"))));
    };
    let parsed = parse(line).ok_or_else(|| Fault::parse(STAT, "eight numbers a CPU", line))?;
    let step = Spent {
        user: 1,
        nice: 1,
        system: 1,
        idle: 1,
        waiting: 1,
        interrupts: 1,
        soft_interrupts: 1,
        stolen: 1,
    };
    Ok(Reading::now(parsed, step, Method::Stat))
}

fn line_of(text: &[u8], cpu: usize) -> Option<&[u8]> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let (number, rest) = number(line.strip_prefix(b"cpu").filter(|rest| rest.first() != Some(&b' '))?)?;
        (number == cpu as u64).then_some(rest)
    })
}

/// Old kernels have fewer columns; what is not there is zero.
pub(super) fn parse(mut rest: &[u8]) -> Option<Spent> {
    let mut columns = [0; 8];
    for (at, column) in columns.iter_mut().enumerate() {
        match number(rest) {
            Some((value, after)) => (*column, rest) = (value, after),
            None if at >= 4 => break,
            None => return None,
        }
    }
    let [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen] = columns;
    Some(Spent { user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen })
}

/// The share of the time between two readings that was not idle. Waiting for a device is idle: the CPU was free.
///
/// # Errors
/// [`Fault::TooShort`] within one tick.
pub fn busy(before: &Reading<Spent>, after: &Reading<Spent>) -> Result<Percent, Fault> {
    let idle = |reading: &Reading<Spent>| Reading {
        value: TICK * (reading.value.idle + reading.value.waiting) as u32,
        at: reading.at,
        resolution: TICK,
        method: reading.method,
    };
    Percent::not_idle(&idle(before), &idle(after), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"cpu  9 8 7 6 5 4 3 2 1 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu10 11 0 0 1\nintr 5\n";

    #[test]
    fn a_line_is_that_of_the_cpu_and_no_other() {
        assert_eq!(parse(line_of(TEXT, 0).expect("a line")).expect("columns").stolen, 8);
        assert_eq!(parse(line_of(TEXT, 10).expect("a line")).expect("columns").user, 11);
        assert!(line_of(TEXT, 1).is_none());
    }

    #[test]
    fn columns_that_an_old_kernel_lacks_are_zero_and_four_it_has() {
        assert_eq!(parse(b"1 2 3 4\n").expect("columns").waiting, 0);
        assert!(parse(b"1 2 3\n").is_none());
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_gone() {
        let mut processors = Processors::open().expect("/proc");
        assert!(matches!(processors.spent(Some(1 << 20)), Err(Fault::Gone(_))));
        let all = processors.spent(None).expect("read").value;
        assert!(all.idle > 0 && all.user > 0, "{all:?}");
        assert!(processors.idle().expect("read").value > Duration::ZERO);
    }
}
