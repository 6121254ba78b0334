//! Names of the objects that can be read: disks, interfaces, CPUs, processes, control groups. The functions of
//! [`camp`](super::camp) take everything that is returned here, unchanged. Every name can be opened as a handle, unless its
//! object is removed in between.

use super::process_handle::{Process, Stat};
use super::{Fault, ProcessIdentifier};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names of disks that have a device. Loop devices, compressed memory and the like are left out.
///
/// # Errors
/// [`Fault::Denied`] where `/sys` is not mounted.
pub fn disks() -> Result<Vec<String>, Fault> {
    entries_with("/sys/block", "device")
}

/// Names of partitions, including those of loop devices.
///
/// # Errors
/// [`Fault::Denied`] where `/sys` is not mounted.
pub fn partitions() -> Result<Vec<String>, Fault> {
    entries_with("/sys/class/block", "partition")
}

/// Names of the network interfaces of this network namespace.
///
/// # Errors
/// [`Fault::Denied`] where `/sys` is not mounted.
pub fn interfaces() -> Result<Vec<String>, Fault> {
    // The directory also contains a file, `bonding_masters`.
    entries_with("/sys/class/net", "statistics")
}

/// The number of CPUs that this process may run on.
///
/// # Errors
/// [`Fault::Denied`] in a sandbox that forbids sched_getaffinity(2).
pub fn allowed_cpu_count() -> Result<usize, Fault> {
    syscost_platform::process::cpus_allowed().map_err(|e| Fault::from_error("the set of CPUs", &e))
}

/// Numbers of the online CPUs, which may have gaps.
///
/// # Errors
/// The errors of [`Processors::time_spent_each`](super::Processors::time_spent_each).
pub fn online_cpus() -> Result<Vec<usize>, Fault> {
    let mut each = Vec::new();
    super::Processors::open()?.time_spent_each(&mut each)?;
    Ok(each.into_iter().map(|(cpu, _)| cpu).collect())
}

/// Names of the control groups of all mounted hierarchies.
///
/// # Errors
/// [`Fault::Unsupported`] where no hierarchy is mounted.
pub fn control_groups() -> Result<Vec<String>, Fault> {
    super::cgroup::group_names()
}

/// Whether `/proc` hides processes of other users (`hidepid` of proc(5)), so that [`pids`] is silently incomplete. It tests
/// the first process of the namespace, which always exists.
pub fn hides_processes() -> bool {
    matches!(Process::open(1), Err(Fault::Denied { .. }))
}

/// Numbers of all visible processes, ascending. [`hides_processes`] returns whether there may be other processes.
///
/// # Errors
/// [`Fault::Denied`] where `/proc` is not mounted.
pub fn pids() -> Result<Vec<i32>, Fault> {
    let mut pids: Vec<i32> = entry_names("/proc")?.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Handles of the processes whose executable has this file name. If a process's executable may not be read, the process's own
/// name, at most 15 characters, is compared instead.
///
/// # Errors
/// [`Fault::Denied`] where `/proc` is not mounted.
pub fn processes_by_name(name: &str) -> Result<Vec<Process>, Fault> {
    let runs_it = |pid: &i32| executable_name(*pid).is_some_and(|its| its == name.as_bytes());
    // A process that has ended since it was listed is left out.
    Ok(pids()?.into_iter().filter(runs_it).filter_map(|pid| Process::open(pid).ok()).collect())
}

/// A process and its descendants with their [`Stat`], parents first.
///
/// # Errors
/// [`Fault::Gone`] where the root process has ended.
pub fn process_tree(root: impl ProcessIdentifier) -> Result<Vec<(i32, Stat)>, Fault> {
    let pid = root.pid();
    root.confirm(descendants(pid)?)
}

fn descendants(root: i32) -> Result<Vec<(i32, Stat)>, Fault> {
    let all: Vec<(i32, Stat)> = pids()?.into_iter().filter_map(|pid| Some((pid, read_stat(pid)?))).collect();
    let first = all.iter().find(|(pid, _)| *pid == root).copied();
    let mut tree = vec![first.ok_or_else(|| Fault::Gone(super::process_handle::process_label(root)))?];
    let mut at = 0;
    while let Some((parent, parent_stat)) = tree.get(at).copied() {
        // The processes were read one after another, so a reused number could make a cycle. A child that started before its
        // parent is therefore skipped.
        let new = |(pid, stat): &&(i32, Stat)| {
            stat.started >= parent_stat.started && tree.iter().all(|(known, _)| known != pid)
        };
        let children: Vec<_> =
            all.iter().filter(|(_, stat)| stat.parent == parent as u64).filter(new).copied().collect();
        tree.extend(children);
        at += 1;
    }
    Ok(tree)
}

fn read_stat(pid: i32) -> Option<Stat> {
    super::process_handle::parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn executable_name(pid: i32) -> Option<Vec<u8>> {
    if let Ok(path) = fs::read_link(format!("/proc/{pid}/exe")) {
        let name = path.file_name()?.as_bytes();
        // The kernel appends ` (deleted)` once the file was removed or replaced.
        return Some(name.strip_suffix(b" (deleted)").unwrap_or(name).to_vec());
    }
    let mut name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    name.pop(); // the line's end
    Some(name)
}

/// Names of the entries in this class of devices that have a file of this name.
fn entries_with(class: &str, file: &str) -> Result<Vec<String>, Fault> {
    let has_file = |name: &String| Path::new(class).join(name).join(file).exists();
    Ok(entry_names(class)?.into_iter().filter(has_file).collect())
}

fn entry_names(directory: &str) -> Result<Vec<String>, Fault> {
    let denied = |e: std::io::Error| Fault::Denied { what: directory.into(), cause: e.to_string() };
    let entries = fs::read_dir(directory).map_err(denied)?;
    let mut names: Vec<_> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, Interface, Probe, Processors, aggregate, camp};
    use std::process::Command;
    use std::time::Duration;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn the_counters_take_every_listed_name() {
        for disk in &camp::enum_physical_disks().expect("/sys") {
            Disk::open(disk).and_then(|disk| disk.traffic()).expect(disk);
            assert!(camp::num_reads_disk(disk).is_ok() && camp::num_writes_disk(disk).is_ok(), "{disk}");
        }
        for name in &camp::enum_disk_partitions().expect("/sys") {
            Disk::open(name).and_then(|partition| partition.traffic()).expect(name);
            let both = [camp::num_reads_partition(name), camp::num_writes_partition(name)];
            assert!(both.iter().all(Result::is_ok), "{name}: {both:?}");
        }
        let interfaces = camp::enum_network_interfaces().expect("/sys");
        assert!(interfaces.iter().any(|name| name == "lo"));
        for name in &interfaces {
            Interface::open(name).and_then(|interface| interface.bytes_sent()).expect(name);
            let all = [
                camp::net_bytes_sent(name),
                camp::net_packets_sent(name),
                camp::net_bytes_received(name),
                camp::net_packets_received(name),
            ];
            assert!(all.iter().all(Result::is_ok), "{name}: {all:?}");
        }
        assert!(allowed_cpu_count().expect("a set") >= 1);
        for cpu in online_cpus().expect("/proc") {
            Processors::open().and_then(|mut processors| processors.time_spent(cpu)).expect("online");
            camp::percent_processor_time(cpu, SHORT).expect("online");
        }
        camp::percent_processor_time(None, SHORT).expect("all CPUs");
    }

    /// The outcome of every function that takes a process.
    fn outcomes(process: &Process) -> Vec<Result<(), Fault>> {
        let counts = [
            camp::num_page_faults(process),
            camp::working_set_kb(process),
            camp::vm_size_kb(process),
            camp::thread_count(process),
        ];
        let shares = [
            camp::cpu_time_total(process, SHORT),
            camp::cpu_time_user(process, SHORT),
            camp::cpu_time_kernel(process, SHORT),
        ];
        let others = [
            process_tree(process).map(drop),
            aggregate::process_tree(process).map(drop),
            Probe::open(process).map(drop),
        ];
        let counts = counts.into_iter().map(|count| count.map(drop));
        counts.chain(shares.into_iter().map(|share| share.map(drop))).chain(others).collect()
    }

    #[test]
    fn the_functions_take_every_listed_process_until_it_ends() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a child");
        let name = executable_name(child.id() as i32).and_then(|name| String::from_utf8(name).ok());
        let listed = camp::process_identifiers(&name.expect("it runs")).expect("/proc");
        let its = listed.iter().find(|process| process.pid() == child.id() as i32).expect("it is listed");
        assert!(outcomes(its).iter().all(Result::is_ok), "{:?}", outcomes(its));
        assert_eq!(
            camp::vm_size_kb(its).expect("read").value,
            camp::vm_size_kb(its.pid()).expect("read").value
        );
        child.kill().expect("killed");
        child.wait().expect("waited for");
        let after = outcomes(its);
        assert!(after.iter().all(|outcome| matches!(outcome, Err(Fault::Gone(_)))), "{after:?}");
    }

    #[test]
    fn a_reading_by_the_number_of_an_ended_process_is_refused() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a child");
        let process = Process::open(child.id() as i32).expect("it runs");
        assert_eq!((&process).confirm(7).expect("it runs"), 7);
        child.kill().expect("killed");
        child.wait().expect("waited for");
        // The value 7 stands for a reading of a later process with the same number.
        assert!(matches!((&process).confirm(7), Err(Fault::Gone(_))));
        assert_eq!(process.pid().confirm(7).expect("a number is always its process's"), 7);
    }

    #[test]
    fn a_process_is_found_by_its_executable_and_in_its_tree() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a child");
        let pid = child.id() as i32;
        // The executable may have another name than the command (busybox).
        let name = executable_name(pid).expect("it runs");
        let name = String::from_utf8(name).expect("a name");
        let found = processes_by_name(&name).expect("/proc");
        assert!(found.iter().any(|process| process.pid() == pid));
        let tree = process_tree(std::process::id() as i32).expect("ourselves");
        assert_eq!(tree[0].0, std::process::id() as i32);
        assert!(tree.iter().any(|(its, stat)| *its == pid && stat.parent == u64::from(std::process::id())));
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(matches!(super::process_tree(pid), Err(Fault::Gone(_))));
    }
}
