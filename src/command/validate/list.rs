//! C8: what is enumerated, against the kernel's own lists.

use super::Setting;
use super::finding::Finding;
use super::worker::{Turn, Worker};
use crate::counters::{Fault, Interface, camp, enumeration};
use crate::platform::cpu_list;
use crate::platform::namespace::{self, ip};
use crate::{Error, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Processes that are started for it.
const CHILDREN: usize = 20;

pub(super) fn run(_: &Setting) -> Result<Vec<Finding>> {
    let mut findings = vec![interfaces()?, blocks()?, cpus()?, online()?];
    findings.extend(processes()?);
    findings.push(coming_and_going());
    Ok(findings)
}

fn text(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(|e| Error::file(path, "reading", e))
}

fn interfaces() -> Result<Finding> {
    let text = text("/proc/net/dev")?;
    let names = text.lines().filter_map(|line| Some(line.rsplit_once(':')?.0.trim().to_owned()));
    Ok(Finding::same(
        "interfaces: /proc/net/dev",
        "netstat -i",
        names.collect(),
        camp::enum_network_interfaces()?,
    ))
}

/// Disks and partitions, but for what is no device: loop devices, memory, maps.
fn blocks() -> Result<Finding> {
    let text = text("/proc/partitions")?;
    let names = text.lines().skip(2).filter_map(|line| line.split_whitespace().last());
    let is_device = |name: &&str| {
        let class = Path::new("/sys/class/block").join(name);
        class.join("partition").exists() || class.join("device").exists()
    };
    let expected = names.filter(is_device).map(str::to_owned).collect();
    // A disk without a medium has no size and is on the kernel's list all the same, or not: it depends on the driver.
    let has_size = |name: &String| {
        fs::read_to_string(format!("/sys/class/block/{name}/size")).is_ok_and(|size| size.trim() != "0")
    };
    let mut found = camp::enum_physical_disks()?;
    found.extend(camp::enum_disk_partitions()?);
    found.retain(has_size);
    Ok(Finding::same("disks, partitions: /proc/partitions", "/dev/disk/by-id", expected, found))
}

fn cpus() -> Result<Finding> {
    let text = text("/proc/self/status")?;
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    Ok(Finding::exact(
        "CPUs: Cpus_allowed_list",
        "equal",
        cpu_list::parse(list).len() as u64,
        camp::cpu_count()? as u64,
    ))
}

fn online() -> Result<Finding> {
    let list = text("/sys/devices/system/cpu/online")?;
    Ok(Finding::same("CPUs online: /sys/devices", "", cpu_list::parse(&list), enumeration::processors()?))
}

/// Children of our own are found by their parent's name, and are no longer when they have ended; and `ps` counts as many
/// in the group of ours that does not change meanwhile.
fn processes() -> Result<Vec<Finding>> {
    let own = std::process::id() as i32;
    let workers = (0..CHILDREN).map(|_| Worker::start(|turn| turn.done(0))).collect::<Result<Vec<_>>>()?;
    let children: Vec<_> = workers.iter().map(Worker::pid).collect();
    let of_ours = |pids: Vec<i32>| pids.into_iter().filter(|pid| children.contains(pid)).collect::<Vec<_>>();
    let all = of_ours(enumeration::pids()?);
    let executable =
        fs::read_link("/proc/self/exe").map_err(|e| Error::file("/proc/self/exe", "reading", e))?;
    let name = executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = camp::process_identifiers(&name)?.iter().map(|process| process.pid()).collect();
    let tree = enumeration::tree(own)?.into_iter().map(|(pid, _)| pid).collect();
    let by_ps = ps(own).map(&of_ours);
    drop(workers);
    let after = of_ours(enumeration::pids()?);
    Ok(vec![
        Finding::same("processes, of 20 children", "", children.clone(), all),
        Finding::same("by the executable's name", "", children.clone(), of_ours(named)),
        Finding::same("in the tree of their parent", "", children.clone(), of_ours(tree)),
        match by_ps {
            Some(theirs) => Finding::same("by ps --ppid", "", theirs, children.clone()),
            None => Finding::not_judged("by ps --ppid", "there is no `ps` here that tells them (procps)"),
        },
        Finding::exact("after their end", "", 0, after.len() as u64),
    ])
}

fn ps(parent: i32) -> Option<Vec<i32>> {
    let output = Command::new("ps").args(["--ppid", &parent.to_string(), "-o", "pid="]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// A pair of interfaces made on purpose is on the list, and is gone when it is removed.
fn coming_and_going() -> Finding {
    const WHAT: &str = "interfaces made and removed";
    let counted = Worker::start(make_and_remove).and_then(|mut worker| worker.step());
    match counted {
        Ok(right) if right < u64::MAX => Finding::exact(WHAT, "", 4, right),
        _ => {
            Finding::not_judged(WHAT, "a network namespace of our own takes root, and interfaces in it `ip`")
        }
    }
}

/// Answers how many of four things are so.
fn make_and_remove(turn: &mut Turn) {
    turn.done(0);
    let prepared = namespace::go_apart().and_then(|()| ip("link add come type veth peer name go"));
    if prepared.is_err() {
        return turn.done(u64::MAX);
    }
    let listed = || camp::enum_network_interfaces().unwrap_or_default();
    let both =
        |names: &[String]| ["come", "go"].iter().filter(|name| names.iter().any(|its| its == *name)).count();
    let (there, kept) = (both(&listed()), Interface::open("come"));
    let removed = ip("link delete come").is_ok();
    let is_gone = |interface: &Interface| matches!(interface.bytes_sent(), Err(Fault::Gone(_)));
    let gone = removed && both(&listed()) == 0;
    let refused = kept.as_ref().is_ok_and(is_gone);
    turn.done(there as u64 + u64::from(gone) + u64::from(refused));
}
