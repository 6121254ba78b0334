//! C8: enumerated names compared with the kernel's own lists.

use super::finding::Finding;
use super::worker::{Turn, Worker};
use super::{Functions, Setting};
use crate::{Fault, Interface, camp, enumeration};
use std::fs;
use std::path::Path;
use syscost_platform::cpu::cpu_list;
use syscost_platform::error::{Error, Result};
use syscost_platform::namespace::{self, run_ip_commands};
use syscost_platform::process::tool;

/// The number of processes that the experiment starts.
const CHILDREN: usize = 20;

pub(super) fn run(setting: &Setting) -> Result<Vec<Finding>> {
    let [allowed, system] = check_cpu_counts(&setting.functions)?;
    let mut findings =
        vec![check_interfaces()?, check_block_devices()?, system, allowed, check_online_cpus()?];
    findings.extend(check_processes()?);
    findings.push(check_made_interfaces());
    Ok(findings)
}

fn read_text(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(|e| Error::file(path, "reading", e))
}

fn check_interfaces() -> Result<Finding> {
    let text = read_text("/proc/net/dev")?;
    let names = text.lines().filter_map(|line| Some(line.rsplit_once(':')?.0.trim().to_owned()));
    Ok(Finding::same_items(
        "interfaces: /proc/net/dev",
        "netstat -i",
        names.collect(),
        camp::enum_network_interfaces()?,
    ))
}

/// Compares disks and partitions, without block devices that have no disk behind them: loop devices, RAM disks, device maps.
fn check_block_devices() -> Result<Finding> {
    let text = read_text("/proc/partitions")?;
    let names = text.lines().skip(2).filter_map(|line| line.split_whitespace().last());
    let is_device = |name: &&str| {
        let class = Path::new("/sys/class/block").join(name);
        class.join("partition").exists() || class.join("device").exists()
    };
    let expected = names.filter(is_device).map(str::to_owned).collect();
    // The driver decides whether the kernel lists a drive without a medium.
    let has_size = |name: &String| {
        fs::read_to_string(format!("/sys/class/block/{name}/size")).is_ok_and(|size| size.trim() != "0")
    };
    let mut found = camp::enum_physical_disks()?;
    found.extend(camp::enum_disk_partitions()?);
    found.retain(has_size);
    Ok(Finding::same_items("disks, partitions: /proc/partitions", "/dev/disk/by-id", expected, found))
}

/// Compares the number of CPUs that this process may use, and the number of the system's CPUs.
fn check_cpu_counts(by: &Functions) -> Result<[Finding; 2]> {
    let text = read_text("/proc/self/status")?;
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let stat = self::read_text("/proc/stat")?;
    let is_cpu = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let system = stat.lines().filter(is_cpu).count() as u64;
    Ok([
        Finding::exact_count(
            "CPUs allowed: Cpus_allowed_list",
            "",
            cpu_list::parse(list).len() as u64,
            (by.cpu_count_allowed)()? as u64,
        ),
        Finding::exact_count("CPUs of the system: /proc/stat", "equal", system, (by.cpu_count)()? as u64),
    ])
}

fn check_online_cpus() -> Result<Finding> {
    let list = read_text("/sys/devices/system/cpu/online")?;
    Ok(Finding::same_items(
        "CPUs online: /sys/devices",
        "",
        cpu_list::parse(&list),
        enumeration::online_cpus()?,
    ))
}

/// The experiment's own children must be found while they run and not after their end. Other processes start and end
/// meanwhile, and are left out of both lists, that of `ps` too.
fn check_processes() -> Result<Vec<Finding>> {
    let own = std::process::id() as i32;
    let workers =
        (0..CHILDREN).map(|_| Worker::start(|turn| turn.report_and_wait(0))).collect::<Result<Vec<_>>>()?;
    let children: Vec<_> = workers.iter().map(Worker::pid).collect();
    let ours = |pids: Vec<i32>| pids.into_iter().filter(|pid| children.contains(pid)).collect::<Vec<_>>();
    let all = ours(enumeration::pids()?);
    let executable =
        fs::read_link("/proc/self/exe").map_err(|e| Error::file("/proc/self/exe", "reading", e))?;
    let name = executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = camp::process_identifiers(&name)?.iter().map(|process| process.pid()).collect();
    let by_number: std::result::Result<Vec<_>, Fault> =
        children.iter().map(|pid| Ok(camp::process_identifier(*pid)?.pid())).collect();
    let tree = enumeration::process_tree(own)?.into_iter().map(|(pid, _)| pid).collect();
    let by_ps = ps_children(own).map(&ours);
    drop(workers);
    let after = ours(enumeration::pids()?);
    Ok(vec![
        Finding::same_items("processes, of 20 children", "", children.clone(), all),
        Finding::same_items("by the executable's name", "", children.clone(), ours(named)),
        Finding::same_items("by their numbers", "", children.clone(), by_number?),
        Finding::same_items("in the tree of their parent", "", children.clone(), ours(tree)),
        match by_ps {
            Some(theirs) => Finding::same_items("by ps --ppid", "", theirs, children.clone()),
            None => Finding::not_judged("by ps --ppid", "there is no `ps` here that tells them (procps)"),
        },
        Finding::exact_count("after their end", "", 0, after.len() as u64),
    ])
}

fn ps_children(parent: i32) -> Option<Vec<i32>> {
    let output = tool::command("ps").args(["--ppid", &parent.to_string(), "-o", "pid="]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// Checks that a pair of interfaces is listed once it is made, and not once it is removed.
fn check_made_interfaces() -> Finding {
    const WHAT: &str = "interfaces made and removed";
    let holding = Worker::start(make_and_remove_interfaces).and_then(|mut worker| worker.run_step());
    match holding {
        Ok(holding) if holding < u64::MAX => Finding::exact_count(WHAT, "", 4, holding),
        _ => {
            Finding::not_judged(WHAT, "a network namespace of our own takes root, and interfaces in it `ip`")
        }
    }
}

/// Reports the number of passed checks of four: two names listed, both unlisted after removal, the open handle refused.
fn make_and_remove_interfaces(turn: &mut Turn) {
    turn.report_and_wait(0);
    let prepared = namespace::enter_new_namespace()
        .and_then(|()| run_ip_commands("link add come type veth peer name go"));
    if prepared.is_err() {
        return turn.report_and_wait(u64::MAX);
    }
    let listed = || camp::enum_network_interfaces().unwrap_or_default();
    let both =
        |names: &[String]| ["come", "go"].iter().filter(|name| names.iter().any(|its| its == *name)).count();
    let (there, kept) = (both(&listed()), Interface::open("come"));
    let removed = run_ip_commands("link delete come").is_ok();
    let is_gone = |interface: &Interface| matches!(interface.bytes_sent(), Err(Fault::Gone(_)));
    let gone = removed && both(&listed()) == 0;
    let refused = kept.as_ref().is_ok_and(is_gone);
    turn.report_and_wait(there as u64 + u64::from(gone) + u64::from(refused));
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::super::tests::Lie;
    use super::*;

    #[test]
    fn a_miscounted_cpu_fails() {
        let verdicts = |by: &Functions| check_cpu_counts(by).expect("listed").map(|row| row.verdict);
        assert_eq!(verdicts(&Functions::OURS), [Verdict::Passed, Verdict::Passed]);
        let lying = |name| Lie::by_name(name).expect("a lie").bent_functions();
        assert_eq!(verdicts(&lying("cpu-count-allowed")), [Verdict::Failed, Verdict::Passed]);
        assert_eq!(verdicts(&lying("cpu-count")), [Verdict::Passed, Verdict::Failed]);
        // This swaps the system's CPUs for the allowed ones; the two numbers are equal only if all CPUs are allowed.
        let swapped = Functions { cpu_count_allowed: camp::cpu_count, ..Functions::OURS };
        let all = camp::cpu_count().ok() == camp::cpu_count_allowed().ok();
        assert_eq!(verdicts(&swapped)[0] == Verdict::Passed, all);
    }
}
