//! Control groups of both versions (cgroups(7)): the resources that a container uses, and its limits.
//!
//! The name of a group is its path from the root of its hierarchy, as in `/proc/PID/cgroup`: `/`, `/system.slice`.
//! Version 1 has a hierarchy for each set of controllers; version 2 has one for all. Where both are mounted, each controller
//! belongs to one of them, and is read there.

mod place;

use super::kernel_file::{self, SHORT};
use super::pressure::{Pressure, Resource};
use super::text::{parse_number, rest_of_line};
use super::{Fault, Method, Reading};
use place::Place;
pub(super) use place::group_names;
use std::fs::File;
use std::time::Duration;
use syscost_platform::control_group::Version;

/// Space for a 64-bit number and the end of the line, bytes.
const DIGITS: usize = 24;
/// Space for the times at the beginning of `cpu.stat` in version 2, at their longest, bytes.
const TIMES: usize = 128;

/// The counters of one control group. It keeps at most three files open. After the group was removed every reading is
/// [`Fault::Gone`]. A counter that the kernel or the version lacks is [`Fault::Unsupported`].
#[derive(Debug)]
pub struct ControlGroup {
    name: String,
    /// Version of the hierarchy that counts CPU time, which determines the units.
    version: Option<Version>,
    time: Option<File>,
    bandwidth: Option<File>,
    memory: Option<File>,
    place: Place,
}

/// CPU time of a group, by mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// CPU time in user space.
    pub user: Duration,
    /// CPU time in the kernel.
    pub kernel: Duration,
}

/// How often a group used up its quota of CPU time (Documentation/scheduler/sched-bwc.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// The number of periods that have passed.
    pub periods: u64,
    /// The number of periods in which the group was stopped.
    pub throttled: u64,
    /// The time for which the group was stopped, summed over CPUs.
    pub time: Duration,
}

impl ControlGroup {
    /// The group of this name.
    ///
    /// # Errors
    /// [`Fault::Gone`] where no hierarchy has the group; [`Fault::Unsupported`] where no hierarchy is mounted.
    pub fn open(name: &str) -> Result<Self, Fault> {
        Self::open_at(name.into(), Place::find_by_name(name)?)
    }

    /// The group of a process, in each hierarchy.
    ///
    /// # Errors
    /// [`Fault::Gone`] or [`Fault::Denied`] in the cases of a process; [`Fault::Unsupported`] where no hierarchy is mounted.
    pub fn from_pid(pid: i32) -> Result<Self, Fault> {
        let place = Place::from_pid(pid)?;
        Self::open_at(format!("of {}", super::process_handle::process_label(pid)), place)
    }

    fn open_at(name: String, place: Place) -> Result<Self, Fault> {
        let open = |directory: &Option<String>, file: &str| {
            directory
                .as_ref()
                .and_then(|directory| kernel_file::open(format_args!("{directory}/{file}")).ok())
        };
        let usage = open(&place.cpuacct, "cpuacct.usage");
        let (version, time) = match usage {
            Some(file) => (Some(Version::One), Some(file)),
            None => (Some(Version::Two), open(&place.unified, "cpu.stat")),
        };
        let memory =
            open(&place.memory, "memory.usage_in_bytes").or_else(|| open(&place.unified, "memory.current"));
        let bandwidth = open(&place.cpu, "cpu.stat");
        let version = version.filter(|_| time.is_some());
        Ok(Self { name, version, time, bandwidth, memory, place })
    }

    /// The name of the group; for the group of a process, the process.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// CPU time of all tasks of the group, including ended ones. Version 1 counts in nanoseconds, version 2 in microseconds.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the group was removed; [`Fault::Unsupported`] where the counter is missing.
    pub fn cpu_time(&self) -> Result<Reading<Duration>, Fault> {
        let mut buffer = [0; TIMES];
        let text = self.read(&self.time, "CPU time", &mut buffer)?;
        let (time, step) = match self.version {
            Some(Version::One) => {
                (parse_number(text).map(|(ns, _)| Duration::from_nanos(ns)), Duration::from_nanos(1))
            }
            _ => (field_value(text, b"usage_usec ").map(Duration::from_micros), Duration::from_micros(1)),
        };
        let time = time.ok_or_else(|| self.parse_fault("CPU time", text))?;
        Ok(Reading::now(time, step, Method::ControlGroup))
    }

    /// CPU time by mode. Version 1 opens a file for each part.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the group was removed; [`Fault::Unsupported`] where the counter is missing.
    pub fn cpu_time_by_mode(&self) -> Result<Reading<Parts>, Fault> {
        let mut buffer = [0; SHORT];
        let (parts, step) = match (self.version, &self.place.cpuacct) {
            (Some(Version::One), Some(directory)) => {
                let part = |name: &str| place::read_number(directory, name).map(Duration::from_nanos);
                let parts = Parts { user: part("cpuacct.usage_user")?, kernel: part("cpuacct.usage_sys")? };
                (Some(parts), Duration::from_nanos(1))
            }
            _ => {
                let text = self.read(&self.time, "CPU time", &mut buffer)?;
                let part = |name: &[u8]| field_value(text, name).map(Duration::from_micros);
                let parts = part(b"user_usec ").zip(part(b"system_usec "));
                (parts.map(|(user, kernel)| Parts { user, kernel }), Duration::from_micros(1))
            }
        };
        let parts = parts.ok_or_else(|| self.unsupported_fault("CPU time by parts"))?;
        Ok(Reading::now(parts, Parts { user: step, kernel: step }, Method::ControlGroup))
    }

    /// How often the group's quota of CPU time was used up.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] where the CPU controller is not enabled, as in the root; [`Fault::Gone`] once the group was
    /// removed.
    pub fn throttling(&self) -> Result<Reading<Throttled>, Fault> {
        let mut buffer = [0; SHORT];
        let file = if self.bandwidth.is_some() { &self.bandwidth } else { &self.time };
        let text = self.read(file, "throttling", &mut buffer)?;
        let time = field_value(text, b"throttled_time ")
            .map(Duration::from_nanos)
            .or_else(|| field_value(text, b"throttled_usec ").map(Duration::from_micros));
        let counts = field_value(text, b"nr_periods ").zip(field_value(text, b"nr_throttled "));
        let ((periods, throttled), time) =
            counts.zip(time).ok_or_else(|| self.unsupported_fault("throttling"))?;
        let step = Throttled { periods: 1, throttled: 1, time: Duration::from_micros(1) };
        Ok(Reading::now(Throttled { periods, throttled, time }, step, Method::ControlGroup))
    }

    /// Memory charged to the group and to the groups below it, including page cache, bytes.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the group was removed; [`Fault::Unsupported`] where the counter is missing.
    pub fn memory(&self) -> Result<Reading<u64>, Fault> {
        let mut buffer = [0; DIGITS];
        let text = self.read(&self.memory, "memory", &mut buffer)?;
        let (bytes, _) = parse_number(text).ok_or_else(|| self.parse_fault("memory", text))?;
        Ok(Reading::now(bytes, syscost_platform::process::page_size(), Method::ControlGroup))
    }

    /// The group's limit of memory, bytes; `None` without a limit of its own. Groups above it may have a limit.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the group was removed; [`Fault::Unsupported`] where the controller is not enabled.
    pub fn memory_limit(&self) -> Result<Option<u64>, Fault> {
        self.place.memory_limit().map_err(|fault| self.missing_file_fault("a limit of memory", fault))
    }

    /// The group's quota of CPU time, in CPUs; `None` without a quota of its own. Groups above it may have a quota.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the group was removed; [`Fault::Unsupported`] where the controller is not enabled.
    pub fn cpu_limit(&self) -> Result<Option<f64>, Fault> {
        self.place.cpu_limit().map_err(|fault| self.missing_file_fault("a quota of CPU time", fault))
    }

    /// A handle for the pressure on a resource within the group.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] in a hierarchy of version 1.
    pub fn pressure(&self, resource: Resource) -> Result<Pressure, Fault> {
        let directory = self.place.unified.as_ref().ok_or_else(|| self.unsupported_fault("pressure"))?;
        Pressure::open_for_group(directory, resource)
    }

    #[inline]
    fn read<'a>(&self, file: &Option<File>, what: &str, buffer: &'a mut [u8]) -> Result<&'a [u8], Fault> {
        let file = file.as_ref().ok_or_else(|| self.unsupported_fault(what))?;
        kernel_file::read(file, buffer, || format!("control group {}", self.name))
    }

    /// The fault for a missing file: the controller is missing, unless the whole group was removed.
    fn missing_file_fault(&self, what: &str, fault: Fault) -> Fault {
        match fault {
            Fault::Gone(_) if self.place.is_there() => self.unsupported_fault(what),
            Fault::Gone(_) => Fault::Gone(format!("control group {}", self.name)),
            other => other,
        }
    }

    fn unsupported_fault(&self, what: &str) -> Fault {
        Fault::Unsupported(format!("{what} of control group {}", self.name))
    }

    fn parse_fault(&self, what: &str, text: &[u8]) -> Fault {
        Fault::parse_error(format!("{what} of control group {}", self.name), "a number", text)
    }
}

fn field_value(text: &[u8], name: &[u8]) -> Option<u64> {
    Some(parse_number(rest_of_line(text, name)?)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Percent, enumeration};
    use syscost_platform::testing::print_skipped;

    /// A group that a test has made. It is removed when this value is dropped.
    struct Made(std::path::PathBuf);

    impl Drop for Made {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir(&self.0);
        }
    }

    fn make_group(hierarchy: &Option<String>) -> Option<(String, Made)> {
        let name = format!("syscost-test-{}-{}", std::process::id(), line!());
        let path = std::path::Path::new(hierarchy.as_ref()?).join(&name);
        std::fs::create_dir(&path).ok()?;
        Some((format!("/{name}"), Made(path)))
    }

    #[test]
    fn our_own_group_uses_cpu_time() {
        let own = match ControlGroup::from_pid(std::process::id() as i32) {
            Ok(own) => own,
            Err(Fault::Unsupported(why)) => return print_skipped(&why.to_string()),
            Err(fault) => panic!("{fault}"),
        };
        let Ok(before) = own.cpu_time() else { return print_skipped("no CPU time is counted here") };
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(5) {}
        let after = own.cpu_time().expect("read");
        assert!(after.value > before.value, "{before:?} {after:?}");
        assert!(Percent::busy(&before, &after).expect("a share").value > 0.0);
        let allocated = allocation_counter::measure(|| assert!(own.cpu_time().is_ok()));
        assert_eq!(allocated.count_total, 0);
        if let Ok(parts) = own.cpu_time_by_mode() {
            assert!(parts.value.user + parts.value.kernel > Duration::ZERO);
        }
    }

    #[test]
    fn every_listed_group_can_be_opened() {
        let names = match enumeration::control_groups() {
            Ok(names) => names,
            Err(Fault::Unsupported(why)) => return print_skipped(&why.to_string()),
            Err(fault) => panic!("{fault}"),
        };
        assert!(names.iter().any(|name| name == "/"));
        for name in names {
            // Other processes make and remove groups meanwhile.
            let opened = ControlGroup::open(&name);
            assert!(matches!(opened, Ok(_) | Err(Fault::Gone(_))), "{name}: {opened:?}");
        }
    }

    #[test]
    fn a_group_without_limits_reads_none_and_a_removed_group_is_gone() {
        let Ok(root) = Place::find_by_name("/") else { return print_skipped("no hierarchy is mounted") };
        for hierarchy in [&root.cpuacct, &root.memory, &root.cpu, &root.unified] {
            let Some((name, made)) = make_group(hierarchy) else {
                print_skipped(&format!("no group can be made in {hierarchy:?}"));
                continue;
            };
            let group = ControlGroup::open(&name).expect("it was made");
            assert!(
                matches!(group.memory_limit(), Ok(None) | Err(Fault::Unsupported(_))),
                "{:?}",
                group.memory_limit()
            );
            assert!(
                matches!(group.cpu_limit(), Ok(None) | Err(Fault::Unsupported(_))),
                "{:?}",
                group.cpu_limit()
            );
            let empty = group.cpu_time().map(|reading| reading.value);
            assert!(matches!(empty, Ok(Duration::ZERO) | Err(Fault::Unsupported(_))), "{empty:?}");
            drop(made);
            let after = group.cpu_time();
            assert!(matches!(after, Err(Fault::Gone(_) | Fault::Unsupported(_))), "{after:?}");
            let limit = group.memory_limit();
            assert!(matches!(limit, Err(Fault::Gone(_) | Fault::Unsupported(_))), "{limit:?}");
            assert!(matches!(ControlGroup::open(&name), Err(Fault::Gone(_))));
        }
    }

    #[test]
    fn a_name_that_leads_out_of_the_hierarchy_is_refused() {
        for name in ["/../..", "..", "/a/../../b", "relative", ""] {
            assert!(ControlGroup::open(name).is_err(), "{name:?}");
        }
    }
}
