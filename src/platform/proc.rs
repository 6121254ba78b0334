//! Parsers of the kernel's counter files: text in, numbers out, no I/O.

/// `/proc/PID/schedstat`: time on a CPU, time ready but waiting for one (both ns), and turns taken
/// (Documentation/scheduler/sched-stats.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Nanoseconds spent running.
    pub ran_ns: u64,
    /// Nanoseconds spent ready while another task ran.
    pub waited_ns: u64,
    /// Turns on the CPU.
    pub turns: u64,
}

/// Reads a line of `schedstat`.
pub fn schedstat(text: &str) -> Option<Schedstat> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let mut next = || fields.next()?.ok();
    Some(Schedstat { ran_ns: next()?, waited_ns: next()?, turns: next()? })
}

/// The steal column of one CPU in `/proc/stat`, in units of `USER_HZ` (proc_stat(5)).
pub fn stolen_ticks(text: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|line| line.split(' ').next() == Some(&name))?;
    line.split_ascii_whitespace().nth(8)?.parse().ok()
}

/// What all CPUs but these were busy by `/proc/stat`, in units of `USER_HZ`: all columns but those of idleness and of what
/// a hypervisor took. Guests' time stands among that of users (proc_stat(5)).
pub fn busy_ticks(text: &str, but: &[usize]) -> Option<u64> {
    let mut sum = None;
    for line in text.lines().filter_map(|line| line.strip_prefix("cpu")) {
        let mut fields = line.split_ascii_whitespace();
        // The line of all CPUs together has no number, and begins with a blank.
        let Some(cpu) = fields.next().filter(|_| !line.starts_with(' ')).and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let busy = |(at, field): (usize, &str)| {
            if matches!(at, 0..=2 | 5 | 6) { field.parse().unwrap_or(0) } else { 0u64 }
        };
        let ticks = if but.contains(&cpu) { 0 } else { fields.enumerate().map(busy).sum() };
        *sum.get_or_insert(0) += ticks;
    }
    sum
}

/// Tasks created since the machine was started, threads among them: `processes` of `/proc/stat`
/// (proc_stat(5) says forks; the kernel counts `total_forks` for every `clone`).
pub fn created(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("processes "))?;
    line.trim().parse().ok()
}

/// How often a cgroup was throttled: `nr_throttled` of `cpu.stat`, the same key in versions 1 and 2.
pub fn throttled(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?;
    line.trim().parse().ok()
}

/// How often a task gave up its CPU, of its own will and not: of `/proc/PID/task/TID/status`.
pub fn switches(text: &str) -> Option<(u64, u64)> {
    let field = |name| text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
    Some((field("voluntary_ctxt_switches:")?, field("nonvoluntary_ctxt_switches:")?))
}

/// The CPU that a task ran on last: field 39 of `/proc/PID/task/TID/stat` (proc_pid_stat(5)). The name before
/// may hold anything, brackets and blanks too.
pub fn processor(text: &str) -> Option<usize> {
    let (_, after) = text.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(36)?.parse().ok()
}

/// `bogomips` of `/proc/cpuinfo`. Where x86 delays by the time-stamp counter, which it does wherever that
/// counter is constant, this is twice the counter's frequency in MHz as the kernel believes it
/// (arch/x86/kernel/tsc.c, `lpj_fine`), rounded to 5 kHz.
pub fn bogomips(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("bogomips"))?;
    line.split(':').nth(1)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  1440 0 2793 93219 584 0 73 2255 0 0\n\
        cpu0 522 0 1274 47261 40 0 20 1088 0 0\ncpu1 917 0 1518 45957 544 0 52 1167 0 0\n\
        cpu10 1 2 3 4 5 6 7 8 9 10\nintr 12345 0 0\nctxt 7\nprocesses 4242\nprocs_running 1\n";

    #[test]
    fn schedstat_is_three_numbers() {
        let read = schedstat("40210 87390 17\n").expect("three numbers");
        assert_eq!(read, Schedstat { ran_ns: 40210, waited_ns: 87390, turns: 17 });
        assert_eq!(schedstat("1 2"), None);
        assert_eq!(schedstat("a b c"), None);
    }

    #[test]
    fn a_cpu_is_busy_with_all_but_idling_and_what_was_stolen() {
        assert_eq!(busy_ticks(STAT, &[0, 10]), Some(917 + 1518 + 52));
        assert_eq!(busy_ticks(STAT, &[0, 1]), Some(1 + 2 + 3 + 6 + 7));
        assert_eq!(busy_ticks(STAT, &[0, 1, 10]), Some(0));
        assert_eq!(busy_ticks("intr 5\n", &[]), None);
    }

    #[test]
    fn steal_is_that_of_the_cpu_asked_for() {
        assert_eq!(stolen_ticks(STAT, 1), Some(1167));
        assert_eq!(stolen_ticks(STAT, 10), Some(8));
        assert_eq!(stolen_ticks(STAT, 2), None);
    }

    #[test]
    fn old_kernels_without_a_steal_column_say_nothing() {
        assert_eq!(stolen_ticks("cpu0 1 2 3 4\n", 0), None);
    }

    #[test]
    fn bogomips_is_that_of_the_first_cpu() {
        assert_eq!(bogomips("model name\t: x\nbogomips\t: 5192.25\n\nbogomips\t: 1.0\n"), Some(5192.25));
        assert_eq!(bogomips("BogoMIPS\t: 50.00\n"), None, "AArch64 counts another thing by that name");
    }

    #[test]
    fn a_task_says_where_it_ran_and_how_often_it_left() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(switches(status), Some((150, 545)));
        assert_eq!(switches("Name:\tx\n"), None);
        let numbers: Vec<_> = (4..53).map(|n| n.to_string()).collect();
        assert_eq!(processor(&format!("17 (a) b) S {}", numbers.join(" "))), Some(39));
        assert_eq!(processor("17 (x) S 1"), None);
    }

    #[test]
    fn created_tasks_are_those_of_all_time() {
        assert_eq!(created(STAT), Some(4242));
        assert_eq!(created("procs_running 1\n"), None);
    }

    #[test]
    fn throttling_reads_both_versions() {
        assert_eq!(throttled("nr_periods 10\nnr_throttled 3\nthrottled_time 99\n"), Some(3));
        assert_eq!(throttled("usage_usec 5\nuser_usec 3\n"), None);
    }
}
