//! The nine counters that CAMP's monitor `probe` reads at a fixed rate, as one block.
//!
//! The block has one time stamp. One read of `/proc/PID/stat` gives page faults and threads. It also proves that the process
//! whose CPU clock was read just before still exists. The nine counters thus take eight system calls.
//!
//! Source: CAMP (LISA 2007), "Operational Impact"; proc(5).

use super::network::Counter;
use super::process_handle::{parse_faults_and_threads, read_cpu_clock};
use super::{Disk, Fault, Interface, Process, ProcessIdentifier, Processors, enumeration, physical_memory};
use std::time::{Duration, Instant};

/// The handles for a block: a process, the CPUs, an interface and a disk. They hold eleven descriptors.
#[derive(Debug)]
pub struct Probe {
    process: Process,
    processors: Processors,
    interface: Option<Interface>,
    disk: Option<Disk>,
}

/// Nine counters, read within some microseconds. The names in brackets are CAMP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The time at which the first counter was read.
    pub at: Instant,
    /// Idle time, summed over all CPUs, in steps of 10 ms (`GetPercentProcessorTime`).
    pub idle: Duration,
    /// Free memory, bytes (`GetFreePhysicalMemory`).
    pub free: u64,
    /// Bytes sent by the interface, if there is one (`GetNetBytesSent`).
    pub bytes_sent: Option<u64>,
    /// Bytes received by the interface, if there is one (`GetNetBytesRecvd`).
    pub bytes_received: Option<u64>,
    /// Completed reads and writes of the disk, if there is one (`GetNumReads_Disk` plus `GetNumWrites_Disk`).
    pub disk_operations: Option<u64>,
    /// CPU time of the process, with a resolution of 1 ns (`GetCPUTime_Total`).
    pub cpu_time: Duration,
    /// The number of page faults of the process (`GetNumPageFaults`).
    pub page_faults: u64,
    /// The number of threads of the process (`GetThreadCount`).
    pub threads: u64,
    /// Resident set of the process, bytes (`GetWorkingSetKb`).
    pub resident: u64,
}

impl Probe {
    /// Opens the process, and the interface and the disk that had most traffic so far. `lo` is chosen only if there is no
    /// other interface.
    ///
    /// # Errors
    /// The errors of [`Process::open`].
    pub fn open(process: impl ProcessIdentifier) -> Result<Self, Fault> {
        Ok(Self {
            process: process.confirm(Process::open(process.pid())?)?,
            processors: Processors::open()?,
            interface: busiest_interface(),
            disk: busiest_disk(),
        })
    }

    /// The name of the interface, if there is one.
    pub fn interface_name(&self) -> Option<&str> {
        self.interface.as_ref().map(Interface::name)
    }

    /// The name of the disk, if there is one.
    pub fn disk_name(&self) -> Option<&str> {
        self.disk.as_ref().map(Disk::name)
    }

    /// Reads a block: all nine counters.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the process has ended, or the interface or the disk was removed.
    pub fn read_block(&self) -> Result<Block, Fault> {
        let at = Instant::now();
        let idle = self.processors.idle_time()?;
        let free = physical_memory::free_bytes()?;
        let moved =
            |counter| self.interface.as_ref().map(|interface| interface.counter_value(counter)).transpose();
        let (bytes_sent, bytes_received) = (moved(Counter::BytesSent)?, moved(Counter::BytesReceived)?);
        let disk_operations = self.disk.as_ref().map(Disk::operation_count).transpose()?;
        let cpu_time = read_cpu_clock(self.process.pid())?;
        // Read after the clock: while this file can be read, no other process has the number whose clock was read.
        let (page_faults, threads) = self.process.parse_stat_file(parse_faults_and_threads)?;
        Ok(Block {
            at,
            idle,
            free,
            bytes_sent,
            bytes_received,
            disk_operations,
            cpu_time,
            page_faults,
            threads,
            resident: self.process.resident_bytes()?,
        })
    }
}

fn busiest_interface() -> Option<Interface> {
    let open = |name: &String| Interface::open(name).ok();
    let moved = |interface: &Interface| {
        let bytes = [interface.bytes_sent(), interface.bytes_received()];
        let bytes = bytes.into_iter().flatten().map(|reading| reading.value).sum::<u64>();
        (interface.name() != "lo", bytes)
    };
    enumeration::interfaces().ok()?.iter().filter_map(open).max_by_key(moved)
}

fn busiest_disk() -> Option<Disk> {
    let open = |name: &String| Disk::open(name).ok();
    let moved = |disk: &Disk| disk.traffic().map_or(0, |reading| reading.value.reads + reading.value.writes);
    enumeration::disks().ok()?.iter().filter_map(open).max_by_key(moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camp;
    use std::process::Command;

    #[test]
    fn a_block_agrees_with_the_functions() {
        let pid = std::process::id() as i32;
        let probe = Probe::open(pid).expect("ourselves");
        let (before, block) =
            (camp::num_page_faults(pid).expect("read").value, probe.read_block().expect("read"));
        assert!(block.page_faults >= before && block.threads >= 1);
        assert!(block.cpu_time > Duration::ZERO && block.idle > Duration::ZERO);
        assert!(block.resident >> 10 > 0 && block.free > 0);
        assert_eq!(block.bytes_sent.is_some(), probe.interface_name().is_some());
        assert_eq!(block.disk_operations.is_some(), probe.disk_name().is_some());
        let after = probe.read_block().expect("read");
        assert!(after.cpu_time > block.cpu_time && after.at > block.at);
    }

    #[test]
    fn a_block_of_a_process_that_has_ended_is_gone() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a child");
        let probe = Probe::open(child.id() as i32).expect("a child");
        assert_eq!(probe.read_block().expect("read").threads, 1);
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(matches!(probe.read_block(), Err(Fault::Gone(_))));
    }

    #[test]
    fn a_block_allocates_nothing() {
        let probe = Probe::open(std::process::id() as i32).expect("ourselves");
        let counted = allocation_counter::measure(|| {
            std::hint::black_box(probe.read_block().is_ok());
        });
        assert_eq!(counted.count_total, 0);
    }
}
