//! Parsers of counts in `/proc`, which take text, return numbers and do no I/O. The exceptions are [`Account`], which keeps
//! its file open, and the code mappings of this process (`/proc/self/maps`), which say where its code lies and in which file.

use super::kernel_files::field;
use crate::error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Clock ticks a second in `/proc/stat` and `/proc/PID/stat`: `USER_HZ` is 100 on every architecture that this crate
/// knows.
pub const USER_HZ: f64 = 100.0;

/// Capability: lock memory beyond the limit.
pub const CAP_IPC_LOCK: u32 = 14;
/// Capability: every privilege without a capability of its own, such as perf events on older kernels.
pub const CAP_SYS_ADMIN: u32 = 21;
/// Capability: perf events whatever `perf_event_paranoid` says, since Linux 5.8.
pub const CAP_PERFMON: u32 = 38;

/// `/proc/PID/schedstat` (Documentation/scheduler/sched-stats.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Time on a CPU, ns.
    pub ran_ns: u64,
    /// Time ready while another task ran, ns.
    pub waited_ns: u64,
    /// Number of turns on the CPU.
    pub turns: u64,
}

/// The number of a task's calls of read(2), write(2) and similar ones, by its `io` file (proc_pid_io(5)).
pub fn io_call_count(text: &str) -> Option<u64> {
    let count = |key| field(text, key)?.parse::<u64>().ok();
    Some(count("syscr")? + count("syscw")?)
}

/// Reads a line of `schedstat`.
pub fn parse_schedstat(text: &str) -> Option<Schedstat> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let mut next = || fields.next()?.ok();
    Some(Schedstat { ran_ns: next()?, waited_ns: next()?, turns: next()? })
}

/// The times of the CPUs in `/proc/stat`, in clock ticks (proc_stat(5)): user, nice, system, idle, iowait, irq,
/// softirq, steal. The first row, without a number, is their sum. The time of guests follows; it is left out, since it is
/// counted as user time too.
fn cpu_times(text: &str) -> impl Iterator<Item = (Option<usize>, impl Iterator<Item = u64>)> {
    text.lines().filter_map(|line| {
        let (name, columns) = line.strip_prefix("cpu")?.split_once(' ')?;
        let cpu = if name.is_empty() { None } else { Some(name.parse().ok()?) };
        Some((cpu, columns.split_ascii_whitespace().take(8).map_while(|column| column.parse().ok())))
    })
}

/// Time that the hypervisor took from one CPU, in clock ticks, by `/proc/stat`.
pub fn stolen_ticks(text: &str, cpu: usize) -> Option<u64> {
    cpu_times(text).find(|(number, _)| *number == Some(cpu))?.1.nth(7)
}

/// Time that the hypervisor took, as a share of the time of all CPUs, by `/proc/stat`.
pub fn stolen_share(text: &str) -> Option<f64> {
    let times: Vec<u64> = cpu_times(text).find(|(number, _)| number.is_none())?.1.collect();
    let (total, stolen) = (times.iter().sum::<u64>(), times.get(7)?);
    (total > 0).then(|| *stolen as f64 / total as f64)
}

/// Time that all CPUs except these were busy, in clock ticks, by `/proc/stat`: neither idle nor taken by a hypervisor.
pub fn busy_ticks(text: &str, except: &[usize]) -> Option<u64> {
    let counts = |column: usize| matches!(column, 0..=2 | 5 | 6);
    let mut sum = None;
    for (cpu, times) in cpu_times(text) {
        let Some(cpu) = cpu else { continue };
        let busy: u64 = times.enumerate().filter(|(column, _)| counts(*column)).map(|(_, ticks)| ticks).sum();
        *sum.get_or_insert(0) += if except.contains(&cpu) { 0 } else { busy };
    }
    sum
}

/// Clock ticks in which one CPU was busy, and in which it was idle or waited for a disk, by `/proc/stat`.
pub fn busy_and_idle_ticks(text: &str, cpu: usize) -> Option<(u64, u64)> {
    let times: Vec<u64> = cpu_times(text).find(|(number, _)| *number == Some(cpu))?.1.collect();
    let idle = times.get(3)? + times.get(4).unwrap_or(&0);
    Some((times.iter().sum::<u64>() - idle, idle))
}

/// The sum of the column of one CPU in `/proc/interrupts` or `/proc/softirqs`: interrupts of all kinds since boot.
pub fn sum_of_cpu_column(text: &str, cpu: usize) -> Option<u64> {
    let mut lines = text.lines();
    let title = format!("CPU{cpu}");
    let column = lines.next()?.split_ascii_whitespace().position(|word| word == title)?;
    let counts = lines.filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        // These lines have one number for all CPUs.
        let is_for_all = matches!(fields.next()?, "ERR:" | "Err:" | "MIS:");
        if is_for_all { None } else { fields.nth(column)?.parse::<u64>().ok() }
    });
    Some(counts.sum())
}

/// Tasks created since the machine was started, threads among them: `processes` of `/proc/stat`
/// (proc_stat(5) says forks; the kernel counts `total_forks` for every `clone`). `None` for 0, which gVisor writes, as it does
/// not count them.
pub fn created_tasks(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("processes "))?;
    line.trim().parse().ok().filter(|&count| count > 0)
}

/// How often a control group was throttled: `nr_throttled` of `cpu.stat`, the same key in versions 1 and 2.
pub fn throttled_periods(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?;
    line.trim().parse().ok()
}

/// How often a task gave up its CPU, voluntarily and not, by `/proc/PID/task/TID/status`.
pub fn context_switches(text: &str) -> Option<(u64, u64)> {
    let count = |key| field(text, key)?.parse().ok();
    Some((count("voluntary_ctxt_switches")?, count("nonvoluntary_ctxt_switches")?))
}

/// Whether a capability is in force, by `/proc/PID/status`.
pub fn has_capability(status: &str, capability: u32) -> bool {
    field(status, "CapEff")
        .and_then(|hex| u64::from_str_radix(hex, 16).ok())
        .is_some_and(|c| c >> capability & 1 == 1)
}

/// The fields of `/proc/PID/stat` from the third on, which is the state (proc_pid_stat(5)). The name before it may hold
/// anything, brackets and blanks too.
fn stat_fields_from_state(text: &str) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    Some(text.rsplit_once(')')?.1.split_ascii_whitespace())
}

/// The CPU that a task ran on last: field 39 of `/proc/PID/task/TID/stat`.
pub fn last_cpu(text: &str) -> Option<usize> {
    stat_fields_from_state(text)?.nth(36)?.parse().ok()
}

/// When a process began, in clock ticks since boot: field 22 of `/proc/PID/stat`. `None` for one that has ended and
/// that its parent has not waited for yet.
pub fn start_ticks(text: &str) -> Option<u64> {
    let mut fields = stat_fields_from_state(text)?;
    if matches!(fields.next()?, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// The soft limit on locked memory, bytes, by `/proc/PID/limits`; `u64::MAX` when unlimited.
pub fn locked_memory_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|l| l.strip_prefix("Max locked memory"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        bytes => bytes.parse().ok(),
    }
}

/// The size of a page, bytes, by the auxiliary vector (`/proc/PID/auxv`), which is pairs of machine words: the one
/// tagged `AT_PAGESZ`. `getauxval` returns the same, but a test cannot fake it.
pub fn page_size(auxv: &[u8]) -> Option<u64> {
    const AT_PAGESZ: usize = 6;
    const WORD: usize = size_of::<usize>();
    let words: Vec<usize> =
        auxv.chunks_exact(WORD).filter_map(|w| w.try_into().ok()).map(usize::from_ne_bytes).collect();
    words.chunks_exact(2).find(|pair| pair[0] == AT_PAGESZ).map(|pair| pair[1] as u64)
}

/// `bogomips` of `/proc/cpuinfo`. Where x86 delays by the time-stamp counter, which it does wherever that
/// counter is constant, this is twice the counter's frequency in MHz as the kernel believes it
/// (arch/x86/kernel/tsc.c, `lpj_fine`), rounded to 5 kHz.
pub fn bogomips(text: &str) -> Option<f64> {
    field(text, "bogomips")?.parse().ok()
}

/// Whether `/proc` is mounted and shows processes by their numbers in this PID namespace. A namespace without a `/proc` of its own
/// sees the numbers of the namespace outside, where the same number is another process.
pub fn shows_own_numbers() -> bool {
    let own = std::process::id().to_string();
    std::fs::read_link("/proc/self").is_ok_and(|number| number.as_os_str() == own.as_str())
}

/// The number of the process that traces the process of this `/proc/PID/status`; `None` if it is not traced.
pub fn tracer(status: &str) -> Option<u32> {
    field(status, "TracerPid")?.parse().ok().filter(|&tracer| tracer != 0)
}

const OWN_IO: &str = "/proc/self/io";
const OWN_INTERFACES: &str = "/proc/self/net/dev";

/// Bytes that were moved to and from devices on behalf of a process, or in and out by the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Read from devices, or received.
    pub read: u64,
    /// Written to devices or to pages that are yet to be written, or sent.
    pub written: u64,
}

/// The place where bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// At the devices: by all threads of this process and the children that it has waited for (proc_pid_io(5)).
    Device,
    /// At all network interfaces, whichever process used them (proc_pid_net(5)).
    Network,
}

/// An open count of bytes. It proves that a read bypassed the page cache. Reading it opens no file, and allocates only
/// if the text has grown.
pub struct Account {
    file: File,
    source: Source,
    buffer: Vec<u8>,
}

impl Source {
    fn path(self) -> &'static str {
        if self == Self::Device { OWN_IO } else { OWN_INTERFACES }
    }
}

/// What to do about a count that cannot be opened. If a user may not read a program, the files of its processes belong
/// to root (proc(5), PR_SET_DUMPABLE).
fn absence_advice(cause: std::io::ErrorKind) -> &'static str {
    if cause == std::io::ErrorKind::PermissionDenied {
        "let this user read the program (`chmod +r PROGRAM`; one of mode 0711 may only be executed), or allow the \
         file in the sandbox"
    } else {
        "mount /proc, and build the kernel with CONFIG_TASK_IO_ACCOUNTING"
    }
}

impl Account {
    /// Opens the kernel's file.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel has none.
    pub fn open(source: Source) -> Result<Self> {
        let path = source.path();
        let file = File::open(path).map_err(|cause| {
            let advice = absence_advice(cause.kind());
            Error::Missing(format!(
                "{path}: {cause}; without it the source of the bytes is unknown: {advice}"
            ))
        })?;
        Ok(Self { file, source, buffer: vec![0; 16 << 10] })
    }

    /// The counts at this moment.
    ///
    /// # Errors
    /// The file cannot be read, or has another form.
    pub fn read(&mut self) -> Result<Moved> {
        let path = self.source.path();
        let length = self.fill_buffer().map_err(|e| Error::file(path, "reading", e))?;
        let text = std::str::from_utf8(&self.buffer[..length]).unwrap_or_default();
        let moved =
            if self.source == Source::Device { parse_device_bytes(text) } else { parse_network_bytes(text) };
        moved.ok_or_else(|| {
            let (found, remedy) =
                (text.lines().next().unwrap_or_default(), "this kernel writes it in another form");
            Error::invalid_content(path, "bytes", "counts of bytes", found, remedy)
        })
    }

    /// Reads the whole text. The kernel returns it in pieces of a page, and the text for forty interfaces has two.
    fn fill_buffer(&mut self) -> std::io::Result<usize> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64)? {
                0 => return Ok(length),
                more => length += more,
            }
        }
    }
}

/// The bytes in `/proc/PID/io` (proc_pid_io(5)).
pub fn parse_device_bytes(text: &str) -> Option<Moved> {
    let count = |key| field(text, key)?.parse().ok();
    Some(Moved { read: count("read_bytes")?, written: count("write_bytes")? })
}

/// The bytes of all interfaces in `/proc/net/dev`: two header lines, then an interface a line, bytes received in the
/// first column and bytes sent in the ninth.
fn parse_network_bytes(text: &str) -> Option<Moved> {
    let interface = |line: &str| {
        let mut columns = line.rsplit_once(':')?.1.split_ascii_whitespace().map(|n| n.parse().ok());
        let read: u64 = columns.next()??;
        Some(Moved { read, written: columns.nth(7)?? })
    };
    let sum = |a: Moved, b: Moved| Moved { read: a.read + b.read, written: a.written + b.written };
    text.lines().skip(2).map(interface).try_fold(Moved::default(), |all, one| Some(sum(all, one?)))
}

#[cfg(test)]
mod tests;

/// A mapping of executable code with a name.
pub struct CodeMapping {
    /// The address of its first byte.
    pub begin: u64,
    /// The address behind its last byte.
    pub end: u64,
    /// Offset of its first byte in the file, bytes.
    pub offset: u64,
    /// The path, or a name in brackets such as `[vdso]`.
    pub file: String,
}

impl CodeMapping {
    /// Parses a line of `/proc/PID/maps`; `None` for memory that is not executable or has no name.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (range, mode, offset) = (words.next()?, words.next()?, words.next()?);
        let file = words.nth(2)?.trim_start();
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
        let (begin, end) = range.split_once('-')?;
        (mode.contains('x') && !file.is_empty()).then_some(Self {
            begin: hexadecimal(begin)?,
            end: hexadecimal(end)?,
            offset: hexadecimal(offset)?,
            file: file.to_owned(),
        })
    }

    /// The offset in the file of the byte at this address, if this mapping contains it.
    pub fn place_in_file(&self, address: u64) -> Option<u64> {
        (self.begin..self.end).contains(&address).then(|| address - self.begin + self.offset)
    }
}

/// The mappings of code of this process.
///
/// # Errors
/// `/proc` is not mounted, or hidden.
pub fn own_code_mappings() -> std::io::Result<Vec<CodeMapping>> {
    let text = std::fs::read_to_string("/proc/self/maps")?;
    Ok(text.lines().filter_map(CodeMapping::parse).collect())
}
