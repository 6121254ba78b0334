//! Figures computed from several readings: the rates that CAMP left to its users (its Figure 1), the busiest interface,
//! and the sums over a process and its descendants.
//!
//! A function that returns a rate sleeps for its interval and keeps no state. For repeated rates, read by a handle and use
//! [`Rate::between`].

use super::text::parse_number;
use super::{Fault, Method, ProcessIdentifier, Rate, Reading};
use super::{camp, disk, enumeration, kernel_file, process_handle};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes per second over an interface, both directions together: `BulkByteTransferRate` of CAMP's Figure 1.
///
/// # Errors
/// [`Fault::Gone`] where there is no such interface; [`Fault::TooShort`] for an interval of zero.
#[doc(alias = "BulkByteTransferRate")]
pub fn transfer_rate(interface: &str, interval: Duration) -> Result<Rate, Fault> {
    let both = || -> Result<Reading<u64>, Fault> {
        let (sent, received) = (camp::net_bytes_sent(interface)?, camp::net_bytes_received(interface)?);
        Ok(Reading { value: sent.value + received.value, ..received })
    };
    let before = both()?;
    std::thread::sleep(interval);
    Rate::between(&format!("interface {interface}"), &before, &both()?)
}

/// Completed reads and writes per second of a disk or partition.
///
/// # Errors
/// [`Fault::Gone`] where there is no such disk; [`Fault::TooShort`] for an interval of zero.
pub fn operation_rate(disk: &str, interval: Duration) -> Result<Rate, Fault> {
    let both = || -> Result<Reading<u64>, Fault> {
        let sum = disk::read_traffic(disk)?.map_field(|traffic| traffic.reads + traffic.writes);
        Ok(Reading { resolution: 1, ..sum })
    };
    let before = both()?;
    std::thread::sleep(interval);
    Rate::between(&format!("disk {disk}"), &before, &both()?)
}

/// The name and rate of the interface of this network namespace, including `lo`, that transferred most bytes in both
/// directions. An interface that was added, removed or reset during the interval is left out.
///
/// # Errors
/// [`Fault::Gone`] where no interface existed for the whole interval; [`Fault::TooShort`] for an interval of zero.
pub fn busiest_interface(interval: Duration) -> Result<(String, Rate), Fault> {
    if interval.is_zero() {
        return Err(Fault::TooShort { window: interval, resolution: Duration::from_nanos(1) });
    }
    let before = bytes_per_interface()?;
    std::thread::sleep(interval);
    let rates = bytes_per_interface()?.into_iter().filter_map(|(name, after)| {
        let rate = Rate::between(&name, before.get(&name)?, &after).ok()?;
        Some((name, rate))
    });
    let busiest = rates.max_by(|(_, a), (_, b)| a.per_second().total_cmp(&b.per_second()));
    busiest.ok_or_else(|| Fault::Gone("every network interface".into()))
}

/// The bytes in both directions of each interface of this network namespace, from one read of `/proc/net/dev`.
///
/// # Errors
/// [`Fault::Unsupported`] in a kernel without a network.
pub fn bytes_per_interface() -> Result<BTreeMap<String, Reading<u64>>, Fault> {
    const PATH: &str = "/proc/net/dev";
    let file = kernel_file::open(format_args!("{PATH}")).map_err(|fault| match fault {
        Fault::Gone(what) => Fault::Unsupported(what),
        other => other,
    })?;
    let mut carried = BTreeMap::new();
    kernel_file::for_each_line(&file, PATH, |line| {
        carried.extend(
            parse_interface_line(line).map(|(name, bytes)| (name, Reading::now(bytes, 1, Method::NetDev))),
        );
    })?;
    Ok(carried)
}

/// Name and bytes of a line of `/proc/net/dev`. The line has eight columns for reception, then eight for transmission; bytes
/// are first in each. The two lines of headings have no numbers and give `None`.
fn parse_interface_line(line: &[u8]) -> Option<(String, u64)> {
    let colon = line.iter().rposition(|byte| *byte == b':')?;
    let mut columns = [0; 9];
    let mut rest = &line[colon + 1..];
    for column in &mut columns {
        (*column, rest) = parse_number(rest)?;
    }
    let name = std::str::from_utf8(line[..colon].trim_ascii()).ok()?;
    Some((name.into(), columns[0] + columns[8]))
}

/// Sums over a process and its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTree {
    /// The number of processes that exist.
    pub processes: u64,
    /// The number of threads of the existing processes.
    pub threads: u64,
    /// CPU time of existing processes, with a resolution of nanoseconds, and of ended ones that were waited for, in ticks.
    pub cpu_time: Duration,
    /// The part of `cpu_time` that ended processes used.
    pub of_ended: Duration,
    /// Page faults of existing and of ended processes.
    pub page_faults: u64,
    /// Resident memory of existing processes, bytes. A shared page counts once for each process that maps it.
    pub resident: u64,
}

/// Sums over a process and its descendants. Descendants that have ended and were waited for are included, so that the sums do
/// not fall when a child ends. A child is missing if its parent ignores SIGCHLD or ended before it; a control group
/// ([`ControlGroup`](super::ControlGroup)) includes such children too.
///
/// # Errors
/// [`Fault::Gone`] where the root process has ended; [`Fault::Denied`] where `/proc` hides it.
pub fn process_tree(root: impl ProcessIdentifier) -> Result<Reading<ProcessTree>, Fault> {
    let mut sum = ProcessTree::default();
    for (pid, stat) in enumeration::process_tree(root)? {
        // A process that has ended since it was listed counts by its ticks. Its parent does not include it if the parent was
        // read before it waited for this child.
        let own = process_handle::cpu_time(pid)
            .map_or(super::ticks_to_duration(stat.user + stat.kernel), |reading| reading.value);
        let ended = super::ticks_to_duration(stat.children);
        sum.processes += 1;
        sum.threads += stat.threads;
        sum.cpu_time += own + ended;
        sum.of_ended += ended;
        sum.page_faults += stat.minor_faults + stat.major_faults + stat.children_faults;
        sum.resident += camp::working_set_kb(pid).map_or(0, |kb| kb.value << 10);
    }
    let step = ProcessTree {
        processes: 1,
        threads: 1,
        cpu_time: super::TICK,
        of_ended: super::TICK,
        page_faults: 1,
        resident: syscost_platform::process::page_size(),
    };
    root.confirm(Reading::now(sum, step, Method::Tree))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::process::Command;

    const SHORT: Duration = Duration::from_millis(30);

    #[test]
    fn columns_of_an_interface_are_added() {
        let line = b"veth:0: 10 2 0 0 0 0 0 0 30 4 0 0 0 0 0 0";
        assert_eq!(parse_interface_line(line), Some(("veth:0".into(), 40)));
        assert_eq!(parse_interface_line(b" face |bytes    packets errs"), None);
        assert_eq!(parse_interface_line(b"  lo: 1 2 3"), None);
    }

    #[test]
    fn sent_bytes_are_counted_and_one_interface_is_busiest() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("its address");
        let before = bytes_per_interface().expect("read")["lo"].value;
        socket.send_to(&[0; 1000], address).expect("sent");
        assert!(bytes_per_interface().expect("read")["lo"].value >= before + 2000, "once each way");
        let (name, rate) = busiest_interface(SHORT).expect("one of them");
        assert!(enumeration::interfaces().expect("/sys").contains(&name), "{name}");
        assert!(rate.window >= SHORT);
        assert!(transfer_rate("lo", SHORT).expect("a rate").per_second() >= 0.0);
    }

    #[test]
    fn without_an_interval_there_is_no_rate() {
        assert!(matches!(busiest_interface(Duration::ZERO), Err(Fault::TooShort { .. })));
        assert!(matches!(operation_rate("no-such-0", SHORT), Err(Fault::Gone(_))));
    }

    #[test]
    fn the_use_of_an_ended_child_stays_in_the_sum() {
        // The shell runs in a process of its own, since other tests also start children.
        let mut shell = Command::new("sh")
            .args(["-c", "i=0; (while [ $i -lt 60000 ]; do i=$((i+1)); done); echo done; read x"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let mut output = std::io::BufReader::new(shell.stdout.take().expect("piped"));
        std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
        let sum = process_tree(shell.id() as i32).expect("it lives").value;
        assert!(sum.of_ended > Duration::ZERO, "{sum:?}");
        assert!(sum.cpu_time >= sum.of_ended && sum.processes == 1 && sum.resident > 0, "{sum:?}");
        drop(shell.stdin.take());
        shell.wait().expect("waited for");
        assert!(matches!(process_tree(shell.id() as i32), Err(Fault::Gone(_))));
    }
}
