//! All counters of the machine at one moment, for a monitor and for a record of other events during a measurement.
//!
//! A snapshot is stateless and takes some hundreds of microseconds. A value that cannot be read is `None`, and is listed with
//! the reason.

use super::cpu_usage::{self, Spent};
use super::network::Link;
use super::pressure::{self, Pressed, RESOURCES, Resource};
use super::text::{parse_number, rest_of_line};
use super::{Fault, Interface, Traffic, disk, enumeration, physical_memory};
use std::time::Instant;

/// The counters of the machine at one moment. Counts are since boot.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The time at which the first counter was read.
    pub at: Instant,
    /// Time of all CPUs together, in ticks of 10 ms.
    pub all: Spent,
    /// Number and time of each online CPU.
    pub cpus: Vec<(usize, Spent)>,
    /// The number of interrupts.
    pub interrupts: u64,
    /// The number of context switches.
    pub context_switches: u64,
    /// The number of tasks created, including threads.
    pub created: u64,
    /// The time of boot, Unix seconds.
    pub booted: u64,
    /// Page faults, minor and major.
    pub page_faults: Option<u64>,
    /// Major page faults, which waited for a device.
    pub major_faults: Option<u64>,
    /// Physical memory, bytes.
    pub memory: Memory,
    /// Pressure on each resource that the kernel measures.
    pub pressure: Vec<(Resource, Pressed)>,
    /// Name and counters of each network interface of this namespace.
    pub links: Vec<(String, Link)>,
    /// Name and counters of each disk.
    pub disks: Vec<(String, Traffic)>,
    /// Values that could not be read.
    pub missing: Vec<Missing>,
}

/// Physical memory, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All memory that the kernel manages.
    pub total: u64,
    /// Free memory, without the lists of each CPU.
    pub free: u64,
    /// Free memory, including the lists of each CPU.
    pub truly_free: Option<u64>,
    /// Memory that programs could get without swapping, by the kernel's estimate.
    pub available: Option<u64>,
}

/// A value that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The name of the value: `available memory`.
    pub what: String,
    /// The reason, as a sentence.
    pub why: String,
}

impl Snapshot {
    /// Reads all counters.
    ///
    /// # Errors
    /// [`Fault::Denied`] where `/proc` is not mounted, [`Fault::Parse`] for an unknown format of `/proc/stat`.
    pub fn take() -> Result<Self, Fault> {
        let at = Instant::now();
        let (text, mut missing) = (read_whole_file("/proc/stat")?, Vec::new());
        let stat = Stat::parse(&text)
            .ok_or_else(|| Fault::parse_error("/proc/stat", "the lines of proc_stat(5)", &text))?;
        let faults = value_or_missing("page faults", read_page_faults(), &mut missing);
        let memory = Memory {
            total: physical_memory::total()?.value,
            free: physical_memory::free()?.value,
            truly_free: value_or_missing("truly free memory", physical_memory::truly_free(), &mut missing)
                .map(|reading| reading.value),
            available: value_or_missing("available memory", physical_memory::available(), &mut missing)
                .map(|reading| reading.value),
        };
        let pressure = RESOURCES.iter().filter_map(|resource| {
            let pressed = value_or_missing(
                format!("pressure on {resource}"),
                pressure::read_pressure(*resource),
                &mut missing,
            )?;
            Some((*resource, pressed.value))
        });
        let pressure = pressure.collect();
        let links = value_or_missing("network interfaces", enumeration::interfaces(), &mut missing)
            .unwrap_or_default();
        let disks = value_or_missing("disks", enumeration::disks(), &mut missing).unwrap_or_default();
        Ok(Self {
            at,
            all: stat.all,
            cpus: stat.cpus,
            interrupts: stat.interrupts,
            context_switches: stat.context_switches,
            created: stat.created,
            booted: stat.booted,
            page_faults: faults.map(|(all, _)| all),
            major_faults: faults.map(|(_, major)| major),
            memory,
            pressure,
            // A device that was removed since it was listed is left out.
            links: read_each_name(links, |name| Ok(Interface::open(name)?.all_counters()?.value)),
            disks: read_each_name(disks, |name| Ok(disk::read_traffic(name)?.value)),
            missing,
        })
    }
}

/// Reads the object of each name. Names whose object cannot be read are left out.
fn read_each_name<T>(names: Vec<String>, read: impl Fn(&str) -> Result<T, Fault>) -> Vec<(String, T)> {
    names.into_iter().filter_map(|name| read(&name).ok().map(|value| (name, value))).collect()
}

/// Returns the value, or adds an entry to `missing` and returns `None`.
fn value_or_missing<T>(
    what: impl Into<String>,
    answer: Result<T, Fault>,
    missing: &mut Vec<Missing>,
) -> Option<T> {
    answer.map_err(|fault| missing.push(Missing { what: what.into(), why: fault.to_string() })).ok()
}

/// The content of `/proc/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    all: Spent,
    cpus: Vec<(usize, Spent)>,
    interrupts: u64,
    context_switches: u64,
    created: u64,
    booted: u64,
}

impl Stat {
    fn parse(text: &[u8]) -> Option<Self> {
        let count = |name: &[u8]| Some(parse_number(rest_of_line(text, name)?)?.0);
        let of_each = |line: &[u8]| {
            let rest =
                line.strip_prefix(b"cpu").filter(|rest| rest.first().is_some_and(u8::is_ascii_digit))?;
            let (cpu, rest) = parse_number(rest)?;
            Some((cpu as usize, cpu_usage::parse_columns(rest)?))
        };
        Some(Self {
            all: cpu_usage::parse_columns(rest_of_line(text, b"cpu ")?)?,
            cpus: text.split(|byte| *byte == b'\n').filter_map(of_each).collect(),
            interrupts: count(b"intr ")?,
            context_switches: count(b"ctxt ")?,
            created: count(b"processes ")?,
            booted: count(b"btime ")?,
        })
    }
}

/// Page faults since boot: all of them, and the major ones.
fn read_page_faults() -> Result<(u64, u64), Fault> {
    let text = read_whole_file("/proc/vmstat")?;
    let count = |name: &[u8]| Some(parse_number(rest_of_line(&text, name)?)?.0);
    let both = count(b"pgfault ").zip(count(b"pgmajfault "));
    both.ok_or_else(|| Fault::parse_error("/proc/vmstat", "`pgfault` and `pgmajfault`", &text))
}

fn read_whole_file(path: &str) -> Result<Vec<u8>, Fault> {
    std::fs::read(path).map_err(|e| Fault::from_error(path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lines_and_counts_are_parsed() {
        let text = b"cpu  3 0 0 9 0 0 0 1\ncpu0 1 0 0 4 0 0 0 1\ncpu3 2 0 0 5 0 0 0 0\nintr 77 1 2\nctxt 8\nbtime 9\nprocesses 10\n";
        let stat = Stat::parse(text).expect("a file");
        assert_eq!((stat.all.user, stat.all.stolen), (3, 1));
        assert_eq!(
            stat.cpus.iter().map(|(cpu, spent)| (*cpu, spent.idle)).collect::<Vec<_>>(),
            [(0, 4), (3, 5)]
        );
        assert_eq!((stat.interrupts, stat.context_switches, stat.booted, stat.created), (77, 8, 9, 10));
        assert_eq!(Stat::parse(b"cpu  3 0 0 9\n"), None);
    }

    #[test]
    fn the_second_of_two_snapshots_is_later() {
        let (before, after) = (Snapshot::take().expect("/proc"), Snapshot::take().expect("/proc"));
        assert!(after.interrupts >= before.interrupts && after.context_switches > 0);
        assert_eq!(before.booted, after.booted);
        assert_eq!(before.memory.total, after.memory.total);
        assert!(after.page_faults >= before.page_faults && !after.cpus.is_empty());
        assert!(after.links.iter().any(|(name, _)| name == "lo"));
    }
}
