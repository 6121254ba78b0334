//! The division of CPU time: user space, kernel, interrupts, idle, stolen.

use super::kernel_file;
use super::text::{parse_hundredths, parse_number, skip_line};
use super::{Fault, Method, Percent, Reading, TICK, ticks_to_duration};
use std::fs::File;
use std::time::Duration;
use syscost_platform::process::cpus_configured;

const UPTIME: &str = "/proc/uptime";
const STAT: &str = "/proc/stat";
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Space for the line of all CPUs, and for the line of one CPU (ten 64-bit numbers), bytes.
const HEAD: usize = 1024;
const LINE: usize = 224;

/// Time of all CPUs or of one since boot (proc_stat(5)), in ticks of 10 ms. At each tick the kernel charges the whole tick to
/// what runs at that moment. Work that begins after a tick and ends before the next is therefore not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time in user space at ordinary priority.
    pub user: u64,
    /// Time in user space at lowered priority.
    pub nice: u64,
    /// Time in the kernel.
    pub system: u64,
    /// Idle time.
    pub idle: u64,
    /// Idle time while a task waited for a device. This counter may decrease.
    pub waiting: u64,
    /// Time in hard interrupts.
    pub interrupts: u64,
    /// Time in soft interrupts.
    pub soft_interrupts: u64,
    /// Time that the hypervisor gave to other guests.
    pub stolen: u64,
    /// The number of CPUs that the times sum up.
    pub cpus: u64,
}

/// The division of the time between two readings, percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Share in user space.
    pub user: Percent,
    /// Share in the kernel on behalf of a task.
    pub system: Percent,
    /// Share in hard interrupts: 0 in a kernel without `CONFIG_IRQ_TIME_ACCOUNTING` whose tick never finds an interrupt.
    pub interrupts: Percent,
    /// Share in soft interrupts.
    pub soft_interrupts: Percent,
    /// Share that the hypervisor gave to other guests.
    pub stolen: Percent,
    /// Share idle, or waiting for a device.
    pub idle: Percent,
}

/// Counters of the CPUs. It holds two descriptors.
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
        Ok(Self {
            uptime: kernel_file::open(format_args!("{UPTIME}"))?,
            stat: kernel_file::open(format_args!("{STAT}"))?,
            // Space only for the lines of CPUs, including CPUs that are offline now.
            buffer: vec![0; HEAD + LINE * cpus_configured()],
        })
    }

    /// Idle time, summed over all CPUs.
    ///
    /// # Errors
    /// [`Fault::Parse`] for an unknown format of `/proc/uptime`.
    #[inline]
    pub fn idle(&self) -> Result<Reading<Duration>, Fault> {
        idle_reading(&self.uptime)
    }

    /// Idle time without a time stamp, for a block of several counters.
    #[inline]
    pub(super) fn idle_time(&self) -> Result<Duration, Fault> {
        idle_time(&self.uptime)
    }

    /// The time of all CPUs (`None`), or of the CPU with this number.
    ///
    /// # Errors
    /// [`Fault::Gone`] for a CPU that is not online.
    pub fn time_spent(&mut self, cpu: impl Into<Option<usize>>) -> Result<Reading<Spent>, Fault> {
        read_time_spent(&self.stat, &mut self.buffer, cpu.into())
    }

    /// Replaces `list` by the number and the time of each online CPU, all from one read. A list with enough capacity is not
    /// reallocated.
    ///
    /// # Errors
    /// [`Fault::Parse`] for an unknown format of `/proc/stat`.
    pub fn time_spent_each(&mut self, list: &mut Vec<(usize, Reading<Spent>)>) -> Result<(), Fault> {
        read_time_spent_each(&self.stat, &mut self.buffer, list)
    }
}

#[inline]
pub(super) fn idle_reading(uptime: &File) -> Result<Reading<Duration>, Fault> {
    Ok(Reading::now(idle_time(uptime)?, TICK, Method::Uptime))
}

/// Idle time, from the second number of `/proc/uptime`.
#[inline]
fn idle_time(uptime: &File) -> Result<Duration, Fault> {
    let mut buffer = [0; 64];
    let text = kernel_file::read(uptime, &mut buffer, || UPTIME.into())?;
    let idle = parse_hundredths(text).and_then(|(_, rest)| parse_hundredths(rest));
    let (idle, _) = idle.ok_or_else(|| Fault::parse_error(UPTIME, "two numbers of seconds", text))?;
    Ok(ticks_to_duration(idle))
}

/// The number of online CPUs, from a list in the kernel's notation: `0-3,6`.
pub(super) fn online_count() -> Result<usize, Fault> {
    let mut buffer = [0; kernel_file::SHORT];
    let text =
        kernel_file::read(&kernel_file::open(format_args!("{ONLINE}"))?, &mut buffer, || ONLINE.into())?;
    count_in_ranges(text).ok_or_else(|| Fault::parse_error(ONLINE, "ranges of CPUs", text))
}

fn count_in_ranges(ranges: &[u8]) -> Option<usize> {
    let each = ranges.trim_ascii().split(|byte| *byte == b',').map(|range| {
        let (first, rest) = parse_number(range)?;
        let last = rest.strip_prefix(b"-").map_or(Some(first), |rest| Some(parse_number(rest)?.0))?;
        Some(last.checked_sub(first)? as usize + 1)
    });
    each.sum()
}

/// The share of `interval` for which a CPU was busy, read without a handle.
pub(super) fn busy_percent(cpu: usize, interval: Duration) -> Result<Percent, Fault> {
    /// The number of CPUs whose lines fit into a buffer on the stack.
    const FEW: usize = 30;
    let file = kernel_file::open(format_args!("{STAT}"))?;
    let (mut few, mut many) = ([0; HEAD + FEW * LINE], Vec::new());
    let buffer = if cpu < FEW {
        &mut few[..]
    } else {
        // No kernel supports more CPUs than this.
        many.resize(HEAD + (cpu.min(1 << 16) + 1) * LINE, 0);
        &mut many
    };
    let before = read_time_spent(&file, buffer, Some(cpu))?;
    std::thread::sleep(interval);
    busy_share(&before, &read_time_spent(&file, buffer, Some(cpu))?)
}

pub(super) fn read_time_spent(
    file: &File,
    buffer: &mut [u8],
    cpu: Option<usize>,
) -> Result<Reading<Spent>, Fault> {
    let text = kernel_file::read(file, buffer, || STAT.into())?;
    let mut lines = cpu_lines(text);
    let line = match cpu {
        None => text.strip_prefix(b"cpu ").map(|line| (line, lines.count() as u64)),
        Some(cpu) => lines.find(|(its, _)| *its == cpu).map(|(_, line)| (line, 1)),
    };
    let Some((line, cpus)) = line else {
        return Err(Fault::Gone(cpu.map_or("cpu".into(), |cpu| format!("CPU {cpu} of {STAT}"))));
    };
    Ok(Reading::now(parse_cpu_line(line, cpus)?, tick_resolution(cpus), Method::Stat))
}

fn read_time_spent_each(
    file: &File,
    buffer: &mut [u8],
    list: &mut Vec<(usize, Reading<Spent>)>,
) -> Result<(), Fault> {
    list.clear();
    for (cpu, line) in cpu_lines(kernel_file::read(file, buffer, || STAT.into())?) {
        list.push((cpu, Reading::now(parse_cpu_line(line, 1)?, tick_resolution(1), Method::Stat)));
    }
    Ok(())
}

/// The resolution of the times: one tick for each part.
fn tick_resolution(cpus: u64) -> Spent {
    spent_from_columns([1; 8], cpus)
}

/// The lines of single CPUs as number and rest. They are the first lines; the search stops there, because the line of all
/// interrupts may fill pages.
fn cpu_lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut text = text;
    std::iter::from_fn(move || {
        text = skip_line(text)?;
        let (cpu, rest) = parse_number(text.strip_prefix(b"cpu")?)?;
        Some((cpu as usize, rest))
    })
}

fn parse_cpu_line(line: &[u8], cpus: u64) -> Result<Spent, Fault> {
    let spent = parse_columns(line).ok_or_else(|| Fault::parse_error(STAT, "eight numbers a CPU", line))?;
    Ok(Spent { cpus, ..spent })
}

/// Parses the columns of a CPU. A column that an old kernel lacks is zero.
pub(super) fn parse_columns(mut rest: &[u8]) -> Option<Spent> {
    let mut columns = [0; 8];
    for (at, column) in columns.iter_mut().enumerate() {
        match parse_number(rest) {
            Some((value, after)) => (*column, rest) = (value, after),
            None if at >= 4 => break,
            None => return None,
        }
    }
    Some(spent_from_columns(columns, 1))
}

fn spent_from_columns(columns: [u64; 8], cpus: u64) -> Spent {
    let [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen] = columns;
    Spent { user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen, cpus }
}

/// The share of the time between two readings for which the CPUs were not idle. Waiting for a device counts as idle.
///
/// # Errors
/// [`Fault::TooShort`] for readings within one tick.
pub fn busy_share(before: &Reading<Spent>, after: &Reading<Spent>) -> Result<Percent, Fault> {
    let [before, after] = [before, after].map(|reading| average_time(reading, idle_ticks));
    Percent::busy_from_idle(&before, &after, 1)
}

/// The division of the time between two readings.
///
/// # Errors
/// [`Fault::TooShort`] for readings within one tick.
pub fn time_shares(before: &Reading<Spent>, after: &Reading<Spent>) -> Result<Shares, Fault> {
    let share =
        |field: fn(&Spent) -> u64| Percent::busy(&average_time(before, field), &average_time(after, field));
    Ok(Shares {
        user: share(|spent| spent.user + spent.nice)?,
        system: share(|spent| spent.system)?,
        interrupts: share(|spent| spent.interrupts)?,
        soft_interrupts: share(|spent| spent.soft_interrupts)?,
        stolen: share(|spent| spent.stolen)?,
        idle: share(idle_ticks)?,
    })
}

fn idle_ticks(spent: &Spent) -> u64 {
    spent.idle + spent.waiting
}

/// One part of the time, averaged over the CPUs.
fn average_time(reading: &Reading<Spent>, field: fn(&Spent) -> u64) -> Reading<Duration> {
    let each = |spent: &Spent| TICK.mul_f64(field(spent) as f64 / spent.cpus.max(1) as f64);
    Reading { resolution: TICK, ..reading.map_field(each) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"cpu  9 8 7 6 5 4 3 2 1 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu10 11 0 0 1\nintr 5\n";

    #[test]
    fn a_line_is_that_of_the_cpu_and_no_other() {
        let found: Vec<_> =
            cpu_lines(TEXT).map(|(cpu, line)| (cpu, parse_columns(line).expect("columns"))).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].0, found[0].1.stolen), (0, 8));
        assert_eq!((found[1].0, found[1].1.user), (10, 11));
    }

    #[test]
    fn ranges_are_counted() {
        assert_eq!(
            (
                count_in_ranges(b"0-3,6\n"),
                count_in_ranges(b"0\n"),
                count_in_ranges(b"x"),
                count_in_ranges(b"")
            ),
            (Some(5), Some(1), None, None)
        );
        assert_eq!(online_count().expect("/sys"), syscost_platform::process::cpus_online());
    }

    #[test]
    fn columns_that_an_old_kernel_lacks_are_zero_and_four_are_required() {
        assert_eq!(parse_columns(b"1 2 3 4\n").expect("columns").waiting, 0);
        assert!(parse_columns(b"1 2 3\n").is_none());
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_gone() {
        let mut processors = Processors::open().expect("/proc");
        assert!(matches!(processors.time_spent(Some(1 << 20)), Err(Fault::Gone(_))));
        let all = processors.time_spent(None).expect("read").value;
        assert!(all.idle > 0 && all.user > 0, "{all:?}");
        assert!(processors.idle().expect("read").value > Duration::ZERO);
        let mut each = Vec::new();
        processors.time_spent_each(&mut each).expect("read");
        assert_eq!(each.len() as u64, all.cpus);
        assert!(each.iter().all(|(cpu, _)| processors.time_spent(Some(*cpu)).is_ok()), "{each:?}");
    }

    #[test]
    fn one_busy_cpu_of_two_is_half() {
        let start = std::time::Instant::now();
        let at = |ms, user, idle, stolen| Reading {
            value: Spent { user, idle, stolen, cpus: 2, ..Spent::default() },
            at: start + Duration::from_millis(ms),
            resolution: tick_resolution(2),
            method: Method::Stat,
        };
        let (before, after) = (at(0, 0, 0, 0), at(1000, 90, 100, 10));
        assert!((busy_share(&before, &after).expect("a share").value - 50.0).abs() < 1e-6);
        let shares = time_shares(&before, &after).expect("shares");
        let values = (shares.user.value, shares.idle.value, shares.stolen.value, shares.interrupts.value);
        assert_eq!(values, (45.0, 50.0, 5.0, 0.0));
        assert!(matches!(busy_share(&before, &before), Err(Fault::TooShort { .. })));
    }
}
