//! All that the machine tells of itself at one moment: what a monitor shows, and what else happened while something
//! was measured.
//!
//! It opens, reads and closes: some hundreds of microseconds. What cannot be read is left out and named with its reason,
//! so that nobody takes it for a zero.

use super::cpu_usage::{self, Spent};
use super::network::Link;
use super::pressure::{self, Pressed, RESOURCES, Resource};
use super::text::{line, number};
use super::{Fault, Interface, Traffic, disk, enumeration, physical_memory};
use std::time::Instant;

/// The machine at one moment. Counts are since boot.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was begun.
    pub at: Instant,
    /// What the CPUs did, all together: in clock ticks of 10 ms.
    pub all: Spent,
    /// The same of each CPU that is online.
    pub cpus: Vec<(usize, Spent)>,
    /// Interrupts.
    pub interrupts: u64,
    /// Context switches.
    pub context_switches: u64,
    /// Tasks created, threads among them.
    pub created: u64,
    /// When the kernel was started, Unix seconds.
    pub booted: u64,
    /// Page faults, those that waited for a device among them.
    pub page_faults: Option<u64>,
    /// Page faults that waited for a device.
    pub major_faults: Option<u64>,
    /// Physical memory, bytes.
    pub memory: Memory,
    /// For how long work stood still for want of a resource, where the kernel counts it.
    pub pressure: Vec<(Resource, Pressed)>,
    /// The network interfaces of our namespace.
    pub links: Vec<(String, Link)>,
    /// The disks.
    pub disks: Vec<(String, Traffic)>,
    /// What could not be read, and why.
    pub missing: Vec<Missing>,
}

/// Physical memory, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What the kernel manages.
    pub total: u64,
    /// What no list counts as used.
    pub free: u64,
    /// The same with what lies in the lists of each CPU.
    pub truly_free: Option<u64>,
    /// What programs could have, as the kernel estimates it.
    pub available: Option<u64>,
}

/// A reading that there is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which: `available memory`.
    pub what: String,
    /// Why, in a sentence.
    pub why: String,
}

impl Snapshot {
    /// Takes one.
    ///
    /// # Errors
    /// [`Fault::Denied`] where `/proc` is not mounted, [`Fault::Parse`] where `/proc/stat` is none.
    pub fn take() -> Result<Self, Fault> {
        let at = Instant::now();
        let (text, mut missing) = (whole("/proc/stat")?, Vec::new());
        let stat =
            Stat::of(&text).ok_or_else(|| Fault::parse("/proc/stat", "the lines of proc_stat(5)", &text))?;
        let faults = kept("page faults", faults(), &mut missing);
        let memory = Memory {
            total: physical_memory::total()?.value,
            free: physical_memory::free()?.value,
            truly_free: kept("truly free memory", physical_memory::truly_free(), &mut missing)
                .map(|reading| reading.value),
            available: kept("available memory", physical_memory::available(), &mut missing)
                .map(|reading| reading.value),
        };
        let pressure = RESOURCES.iter().filter_map(|resource| {
            let pressed = kept(format!("pressure on {resource}"), pressure::once(*resource), &mut missing)?;
            Some((*resource, pressed.value))
        });
        let pressure = pressure.collect();
        let links = kept("network interfaces", enumeration::interfaces(), &mut missing).unwrap_or_default();
        let disks = kept("disks", enumeration::disks(), &mut missing).unwrap_or_default();
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
            // What vanishes in between is left out: it is no longer there.
            links: each(links, |name| Ok(Interface::open(name)?.link()?.value)),
            disks: each(disks, |name| Ok(disk::once(name)?.value)),
            missing,
        })
    }
}

/// What is read of each of these names.
fn each<T>(names: Vec<String>, read: impl Fn(&str) -> Result<T, Fault>) -> Vec<(String, T)> {
    names.into_iter().filter_map(|name| read(&name).ok().map(|value| (name, value))).collect()
}

/// The value, or nothing and the reason.
fn kept<T>(what: impl Into<String>, answer: Result<T, Fault>, missing: &mut Vec<Missing>) -> Option<T> {
    answer.map_err(|fault| missing.push(Missing { what: what.into(), why: fault.to_string() })).ok()
}

/// What is read of `/proc/stat`.
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
    fn of(text: &[u8]) -> Option<Self> {
        let count = |name: &[u8]| Some(number(line(text, name)?)?.0);
        let of_each = |line: &[u8]| {
            let rest =
                line.strip_prefix(b"cpu").filter(|rest| rest.first().is_some_and(u8::is_ascii_digit))?;
            let (cpu, rest) = number(rest)?;
            Some((cpu as usize, cpu_usage::parse(rest)?))
        };
        Some(Self {
            all: cpu_usage::parse(line(text, b"cpu ")?)?,
            cpus: text.split(|byte| *byte == b'\n').filter_map(of_each).collect(),
            interrupts: count(b"intr ")?,
            context_switches: count(b"ctxt ")?,
            created: count(b"processes ")?,
            booted: count(b"btime ")?,
        })
    }
}

/// Page faults since boot, all and those that waited for a device.
fn faults() -> Result<(u64, u64), Fault> {
    let text = whole("/proc/vmstat")?;
    let count = |name: &[u8]| Some(number(line(&text, name)?)?.0);
    let both = count(b"pgfault ").zip(count(b"pgmajfault "));
    both.ok_or_else(|| Fault::parse("/proc/vmstat", "`pgfault` and `pgmajfault`", &text))
}

fn whole(path: &str) -> Result<Vec<u8>, Fault> {
    std::fs::read(path).map_err(|e| Fault::of(path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_cpus_and_of_the_counts() {
        let text = b"cpu  3 0 0 9 0 0 0 1\ncpu0 1 0 0 4 0 0 0 1\ncpu3 2 0 0 5 0 0 0 0\nintr 77 1 2\nctxt 8\nbtime 9\nprocesses 10\n";
        let stat = Stat::of(text).expect("a file");
        assert_eq!((stat.all.user, stat.all.stolen), (3, 1));
        assert_eq!(
            stat.cpus.iter().map(|(cpu, spent)| (*cpu, spent.idle)).collect::<Vec<_>>(),
            [(0, 4), (3, 5)]
        );
        assert_eq!((stat.interrupts, stat.context_switches, stat.booted, stat.created), (77, 8, 9, 10));
        assert_eq!(Stat::of(b"cpu  3 0 0 9\n"), None);
    }

    #[test]
    fn two_of_this_machine_are_in_order() {
        let (before, after) = (Snapshot::take().expect("/proc"), Snapshot::take().expect("/proc"));
        assert!(after.interrupts >= before.interrupts && after.context_switches > 0);
        assert_eq!(before.booted, after.booted);
        assert_eq!(before.memory.total, after.memory.total);
        assert!(after.page_faults >= before.page_faults && !after.cpus.is_empty());
        assert!(after.links.iter().any(|(name, _)| name == "lo"));
    }
}
