//! Reads the kernel's accounts of a case's partners: how often each gave up its CPU, where it ran, and for how long. They are
//! read before and after a sample, like the counters of the measuring thread.

use super::evidence::read_text;
use crate::error::{Error, Result};
use crate::platform::partner::{Role, Task};
use crate::platform::proc;
use std::fs::File;

/// Why [`PartnerReport::hidden`] is true.
const HIDDEN: &str =
    "what the partners did was not counted: /proc is not mounted, or it is that of another PID namespace";

/// Watches the partners of a case. Their files stay open, so that a reading allocates nothing and opens nothing.
pub struct PartnerMonitor {
    here: usize,
    partners: Vec<WatchedPartner>,
    buffer: Vec<u8>,
    hidden: bool,
}

struct WatchedPartner {
    task: Task,
    status: Option<File>,
    stat: Option<File>,
    schedstat: Option<File>,
    io: Option<File>,
    last: Counts,
}

/// The counters of one partner at one moment.
#[derive(Clone, Copy, Default)]
struct Counts {
    voluntary: u64,
    involuntary: u64,
    ran_ns: Option<u64>,
    waited_ns: Option<u64>,
    transfers: Option<u64>,
    cpu: usize,
}

/// The partners' context switches, I/O calls, run times and waits during one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartnerReport {
    /// Number of partners that answer the measuring thread. Those that only burn CPU time are not counted.
    pub answering: usize,
    /// The smallest number of voluntary switches of an answering partner.
    pub fewest_voluntary: u64,
    /// The smallest number of all switches of an answering partner.
    pub fewest_switches: u64,
    /// The smallest number of calls of read(2) and write(2), and their like, of an answering partner. `None` where the kernel
    /// does not count them. A call that is about to return may not be counted yet.
    pub fewest_transfers: Option<u64>,
    /// Whether any partner shares the measuring CPU.
    pub here: bool,
    /// Time that the partners on the measuring CPU ran, ns.
    pub ran_here_ns: Option<u64>,
    /// Time that the answering partners on the measuring CPU were ready and another task ran, ns.
    pub waited_here_ns: Option<u64>,
    /// The longest time that an answering partner on another CPU was ready and another task ran there, ns.
    pub waited_elsewhere_ns: Option<u64>,
    /// The CPU that a partner belongs on and the CPU where it ran last, if they differ.
    pub strayed: Option<(usize, usize)>,
    /// Whether the kernel's accounts of the partners cannot be read; the counts above then mean nothing.
    pub hidden: bool,
}

impl PartnerMonitor {
    /// Opens the files of these partners of a case that is measured on CPU `here`.
    ///
    /// # Errors
    /// The files of a partner cannot be opened, where `/proc` shows the processes of this namespace.
    pub fn open(tasks: &[Task], here: usize) -> Result<Self> {
        let hidden = !proc::shows_own_numbers();
        let watch = |task: &Task| {
            let directory = format!("/proc/{}/task/{}", task.process, task.thread);
            let open = |name: &str| {
                let path = format!("{directory}/{name}");
                File::open(&path).map_err(|e| Error::file(path, "opening", e))
            };
            // `schedstat` and `io` may be missing or forbidden: the other two suffice for most claims. No claim is about a
            // partner that only burns CPU time.
            let answers = task.role == Role::Answers && !hidden;
            let [status, stat] = ["status", "stat"].map(|name| answers.then(|| open(name)).transpose());
            let (status, stat, schedstat) =
                (status?, stat?, (!hidden).then(|| open("schedstat").ok()).flatten());
            let io = answers.then(|| open("io").ok()).flatten();
            Ok(WatchedPartner { task: *task, status, stat, schedstat, io, last: Counts::default() })
        };
        let partners = tasks.iter().map(watch).collect::<Result<_>>()?;
        Ok(Self { here, partners, buffer: vec![0; 8 << 10], hidden })
    }

    /// A sentence if the kernel's accounts of the partners cannot be read.
    pub fn hidden_sentence(&self) -> Option<String> {
        (self.hidden && !self.partners.is_empty()).then(|| HIDDEN.into())
    }

    /// Reads the partners' counters and returns the change since the last reading; `None` without partners.
    pub fn read(&mut self) -> Option<PartnerReport> {
        let mut sum = PartnerReport {
            fewest_voluntary: u64::MAX,
            fewest_switches: u64::MAX,
            hidden: self.hidden,
            ..Default::default()
        };
        for partner in &mut self.partners {
            let counts = partner.read_counts(&mut self.buffer);
            sum.add(&partner.task, self.here, &partner.last, &counts);
            partner.last = counts;
        }
        (!self.partners.is_empty()).then_some(sum)
    }
}

impl WatchedPartner {
    fn read_counts(&self, buffer: &mut [u8]) -> Counts {
        let (voluntary, involuntary) =
            read_text(&self.status, buffer).and_then(proc::context_switches).unwrap_or_default();
        let cpu = read_text(&self.stat, buffer).and_then(proc::last_cpu);
        let times = read_text(&self.schedstat, buffer).and_then(proc::parse_schedstat);
        Counts {
            voluntary,
            involuntary,
            transfers: read_text(&self.io, buffer).and_then(proc::io_call_count),
            ran_ns: times.map(|times| times.ran_ns),
            waited_ns: times.map(|times| times.waited_ns),
            cpu: cpu.unwrap_or(self.task.cpu),
        }
    }
}

impl PartnerReport {
    fn add(&mut self, task: &Task, here: usize, before: &Counts, after: &Counts) {
        let grown = |f: fn(&Counts) -> Option<u64>| Some(f(after)?.saturating_sub(f(before)?));
        let transfers = grown(|counts| counts.transfers);
        let (ran, waited) = (grown(|counts| counts.ran_ns), grown(|counts| counts.waited_ns));
        if task.cpu == here {
            self.here = true;
            self.ran_here_ns = ran.map(|ns| ns + self.ran_here_ns.unwrap_or(0));
        }
        if task.role == Role::Burns {
            return;
        }
        let voluntary = after.voluntary.saturating_sub(before.voluntary);
        let involuntary = after.involuntary.saturating_sub(before.involuntary);
        self.fewest_transfers = match (self.answering, self.fewest_transfers) {
            (0, _) => transfers,
            (_, fewest) => fewest.zip(transfers).map(|(fewest, own)| fewest.min(own)),
        };
        self.answering += 1;
        self.fewest_voluntary = self.fewest_voluntary.min(voluntary);
        self.fewest_switches = self.fewest_switches.min(voluntary + involuntary);
        if after.cpu != task.cpu {
            self.strayed = Some((task.cpu, after.cpu));
        }
        if task.cpu == here {
            self.waited_here_ns = waited.map(|ns| ns + self.waited_here_ns.unwrap_or(0));
        } else {
            self.waited_elsewhere_ns = self.waited_elsewhere_ns.max(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;
    use crate::platform::partner::{Class, Kind, Partner, start_spinner};

    #[test]
    fn a_partner_that_yields_its_cpu_is_counted_and_a_spinner_is_not() {
        let here = cpu::allowed_cpus().into_iter().max().expect("a CPU");
        let sleep = || {
            std::thread::sleep(std::time::Duration::from_micros(100));
            0
        };
        let sleeper = Partner::start(Kind::Thread, (here, Class::Ordinary), sleep, || ()).expect("started");
        let burner = start_spinner(here, Class::Idle).expect("started");
        let mut partners = PartnerMonitor::open(&[sleeper.task(), burner.task()], here).expect("seen");
        partners.read();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let report = partners.read().expect("two partners");
        assert_eq!((report.answering, report.here, report.strayed), (1, true, None));
        assert!(report.fewest_voluntary > 0, "{report:?}");
    }

    #[test]
    fn a_partner_that_ran_on_another_cpu_than_its_own_is_reported() {
        let (Some(first), Some(last)) =
            (cpu::allowed_cpus().into_iter().min(), cpu::allowed_cpus().into_iter().max())
        else {
            return;
        };
        let sleep = || {
            std::thread::sleep(std::time::Duration::from_micros(100));
            0
        };
        let partner = Partner::start(Kind::Process, (last, Class::Ordinary), sleep, || ()).expect("started");
        let mut partners = PartnerMonitor::open(&[partner.task()], last).expect("seen");
        let mut elsewhere = nix::sched::CpuSet::new();
        elsewhere.set(first).expect("a CPU");
        nix::sched::sched_setaffinity(partner.task().thread, &elsewhere).expect("moved");
        std::thread::sleep(std::time::Duration::from_millis(20));
        let strayed = partners.read().expect("a partner").strayed;
        assert_eq!(strayed, (first != last).then_some((last, first)));
    }
}
