//! Finds the functions that make up the time of an operation, or the difference of two sides, and those that noise hides at this
//! number of samples. An observation is a pair of processes or one process, never a sample, because processes of one binary
//! differ more than the samples of a process.

use crate::record::paired::{FunctionTime, ProcessTimes, SampledCase};
use crate::statistic::student::mean_interval;
use crate::statistic::{Interval, adjusted_p_values, mean, student_upper_quantile, student_upper_tail};
use serde::Serialize;
use std::collections::BTreeSet;

/// The false discovery rate: the expected share of false ones among the functions that are called significant.
const WRONG: f64 = 0.05;

/// A function or a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeRow {
    /// Name of the function or class.
    pub name: String,
    /// Mean time in an operation on each side, ns.
    pub sides_ns: Vec<f64>,
    /// The difference B less A, or the time if there is one side, ns, with its 95 % interval.
    pub figure: Interval,
    /// The difference or time of the function together with all functions that it calls, ns.
    pub with_callees_ns: f64,
    /// Whether `figure` differs from 0 by more than chance, with correction for all functions of the case.
    pub is_significant: bool,
}

/// The functions of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FunctionTimes {
    /// Id of the case.
    pub id: String,
    /// Number of pairs, or of processes.
    pub observations: usize,
    /// Number of samples of each side.
    pub samples: Vec<u64>,
    /// The event that was sampled: `cpu-cycles` or `cpu-clock`.
    pub event: String,
    /// The whole operation.
    pub total: TimeRow,
    /// The functions: first the significant ones, the largest first, then the others, again the largest first.
    pub functions: Vec<TimeRow>,
    /// The classes, in the same order.
    pub classes: Vec<TimeRow>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
    /// The reason why there is no figure.
    pub failure: Option<String>,
}

/// The functions of a case that was sampled.
pub fn study_functions(case: &SampledCase) -> FunctionTimes {
    let sides = case.observations.first().map_or(0, Vec::len);
    let samples_of = |side: usize| case.observations.iter().map(|processes| processes[side].samples).sum();
    let total = |process: &ProcessTimes| {
        Some(FunctionTime { own_ns: process.operation_ns, with_callees_ns: process.operation_ns })
    };
    let (total, p) = time_row(case, "", total);
    let function_names = names(case, |process| process.functions.keys());
    let functions = function_names
        .iter()
        .map(|name| time_row(case, name, |process| process.functions.get(*name).copied()));
    let class_names = names(case, |process| process.classes.keys());
    let classes = class_names.iter().map(|name| {
        let time = |process: &ProcessTimes| {
            process.classes.get(*name).map(|ns| FunctionTime { own_ns: *ns, with_callees_ns: *ns })
        };
        time_row(case, name, time)
    });
    FunctionTimes {
        id: case.id.clone(),
        observations: case.observations.len(),
        samples: (0..sides).map(samples_of).collect(),
        event: case.event.clone(),
        total: TimeRow { is_significant: p <= WRONG, ..total },
        functions: rows_in_order(functions.collect()),
        classes: rows_in_order(classes.collect()),
        notes: case.notes.clone(),
        failure: case.failure.clone(),
    }
}

impl FunctionTimes {
    /// The functions that are significant.
    pub fn significant(&self) -> &[TimeRow] {
        let significant = self.functions.iter().take_while(|row| row.is_significant).count();
        &self.functions[..significant]
    }

    /// The functions that chance can explain.
    pub fn unresolved(&self) -> &[TimeRow] {
        &self.functions[self.significant().len()..]
    }

    /// The factor by which the number of samples must grow to make this function significant, if its figure is the true one.
    /// `None` if the figure is 0.
    pub fn times_as_many(&self, row: &TimeRow) -> Option<f64> {
        let half = row.figure.high - row.figure.estimate;
        let degrees = self.observations.saturating_sub(1);
        let error = half / student_upper_quantile(0.025, degrees);
        // The level at which a single one of this number of functions is significant.
        let level = WRONG / (2 * self.functions.len().max(1)) as f64;
        let needed = student_upper_quantile(level, degrees) * error / row.figure.estimate.abs();
        (row.figure.estimate != 0.0 && needed.is_finite()).then(|| (needed * needed).max(1.0))
    }
}

fn names<'a, K: Iterator<Item = &'a String>>(
    case: &'a SampledCase,
    keys: impl Fn(&'a ProcessTimes) -> K,
) -> BTreeSet<&'a String> {
    case.observations.iter().flatten().flat_map(keys).collect()
}

/// The row of a function, and the two-sided p-value of "it is 0" (Student).
fn time_row(
    case: &SampledCase,
    name: &str,
    time: impl Fn(&ProcessTimes) -> Option<FunctionTime>,
) -> (TimeRow, f64) {
    let time = |process: &ProcessTimes| time(process).unwrap_or_default();
    let figures = |ns: fn(FunctionTime) -> f64| -> Vec<f64> {
        let one = |processes: &Vec<ProcessTimes>| match &processes[..] {
            [a, b] => ns(time(b)) - ns(time(a)),
            one => one.iter().map(|process| ns(time(process))).sum(),
        };
        case.observations.iter().map(one).collect()
    };
    let own = figures(|time| time.own_ns);
    let sides = case.observations.first().map_or(0, Vec::len);
    let side = |side: usize| {
        let processes = case.observations.iter().map(|processes| time(&processes[side]).own_ns);
        mean(&processes.collect::<Vec<_>>())
    };
    let unknown = Interval { estimate: mean(&own), low: f64::NEG_INFINITY, high: f64::INFINITY };
    let figure = mean_interval(&own).unwrap_or(unknown);
    let degrees = own.len().saturating_sub(1);
    let error = (figure.high - figure.estimate) / student_upper_quantile(0.025, degrees);
    let p = 2.0 * student_upper_tail(figure.estimate.abs() / error, degrees);
    let row = TimeRow {
        name: name.to_owned(),
        sides_ns: (0..sides).map(side).collect(),
        figure,
        with_callees_ns: mean(&figures(|time| time.with_callees_ns)),
        is_significant: false,
    };
    (row, p)
}

/// Marks the rows that differ from 0 at a false discovery rate of [`WRONG`], and sorts the rows.
fn rows_in_order(rows: Vec<(TimeRow, f64)>) -> Vec<TimeRow> {
    let (mut rows, p): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    for (row, adjusted) in rows.iter_mut().zip(adjusted_p_values(&p)) {
        row.is_significant = adjusted <= WRONG;
    }
    rows.sort_by(|a, b| {
        b.is_significant
            .cmp(&a.is_significant)
            .then(b.figure.estimate.abs().total_cmp(&a.figure.estimate.abs()))
    });
    rows
}

// Classes of the kernel's functions, from a table of the prefixes of their names.

/// The class of code outside the kernel.
pub const USER: &str = "user";
/// The class of functions that the table does not name.
const OTHER: &str = "other kernel";

/// In each line a class and the prefixes of its functions' names, for Linux 5.10 to 6.18. The first class that matches is
/// taken. A class with a `*` matches only the executed function, not its callers.
const CLASSES: &str = "
mitigations*: srso_ retbleed_ zen_untrain entry_untrain entry_ibpb write_ibpb clear_bhb __x86_indirect_ __x86_return_thunk x86_verw its_
entry*: entry_SYSCALL do_syscall_64 x64_sys_call syscall_ do_int80 exit_to_user error_entry error_return asm_exc_ asm_sysvec irqentry_
entry*: swapgs_ native_iret ret_from_ el0 invoke_syscall vectors __x64_sys_ __se_sys_ __arm64_sys_ __do_sys_
filter of system calls: __seccomp seccomp __secure_computing populate_seccomp
copy*: copy_page clear_page copy_user _copy_ copy_to copy_from __copy_ memcpy __memcpy memset __memset memmove __memmove rep_movs rep_stos
copy*: clear_user csum_partial_copy __arch_copy __arch_clear strncpy_from_user
page tables: asm_exc_page_fault exc_page_fault handle_mm_fault do_mem_abort copy_page_range copy_p4d copy_pte zap_ unmap_ exit_mmap dup_mm
page tables: tlb_ flush_tlb __flush_tlb native_flush_tlb free_pgtables free_pgd do_mmap mmap_region do_munmap do_vmi_ vm_mmap vm_munmap
page tables: mprotect change_protection move_page_tables do_madvise populate_vma pte_ pmd_ vma_ mremap
scheduler: schedule __schedule try_to_wake_up ttwu_ wake_up __wake_up default_wake autoremove_wake pick_next enqueue_ dequeue_ switch_mm
scheduler: finish_task_switch __switch_to select_task_rq sched_ do_nanosleep hrtimer_ futex_wait futex_wake do_wait wake_q update_curr
tasks: kernel_clone copy_process do_exit do_group_exit release_task bprm_ begin_new_exec load_elf do_execve
network: tcp_ udp_ ip_ ip6_ __ip_ inet_ sock_ __sock_ unix_ skb_ __sys_send __sys_recv net_ loopback_
signals: do_signal get_signal send_signal __send_signal do_send_s force_sig do_sigaction arch_do_signal
files: vfs_ ksys_ do_sys_open do_filp path_ filename_ link_path filemap_ ext4_ xfs_ btrfs_ shmem_ pipe_ do_iter new_sync generic_file
files: iomap_ blk_ submit_bio iterate_dir do_unlink do_renameat do_mkdir fput __fput fget __fget close_fd do_pipe ep_ do_epoll do_sys_poll io_
security: security_ apparmor_ selinux_ landlock_ bpf_lsm audit_ __audit
";

/// The class of a stack of the kernel's functions: the class of the first function that has one. The executed function comes
/// first.
pub fn kernel_class<'a>(mut functions: impl Iterator<Item = &'a str>) -> &'static str {
    let executed = functions.next().and_then(|name| find_class(name, true));
    executed.or_else(|| functions.find_map(|name| find_class(name, false))).unwrap_or(OTHER)
}

fn find_class(name: &str, is_executed: bool) -> Option<&'static str> {
    let mut classes = CLASSES.lines().filter_map(|line| line.split_once(": "));
    let (class, _) = classes.find(|(class, begins)| {
        (is_executed || !class.ends_with('*')) && begins.split(' ').any(|begin| name.starts_with(begin))
    })?;
    Some(class.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistic::Random;

    /// Pairs with 300 samples a side. The function `f` takes a tenth of A's time, and `more_ns` more on B; 30 other functions
    /// differ by chance.
    fn sampled(pairs: usize, more_ns: f64, random: &mut Random) -> SampledCase {
        let mut process = |more_ns: f64| {
            let operation_ns = 1_000.0 + more_ns;
            let mut functions = std::collections::BTreeMap::<String, FunctionTime>::new();
            for _ in 0..300 {
                let at = random.number_below(1 << 20) as f64 / f64::from(1 << 20) * operation_ns;
                let name = if at < 100.0 + more_ns { "f".into() } else { format!("g{}", (at as u64) % 30) };
                let time = functions.entry(name).or_default();
                time.own_ns += operation_ns / 300.0;
                time.with_callees_ns += operation_ns / 300.0;
            }
            ProcessTimes { operation_ns, samples: 300, functions, ..ProcessTimes::default() }
        };
        let observations = (0..pairs).map(|_| vec![process(0.0), process(more_ns)]).collect();
        SampledCase { id: "a/b".into(), observations, ..SampledCase::default() }
    }

    #[test]
    fn a_function_that_grew_is_first_and_significant_with_its_growth() {
        let study = study_functions(&sampled(16, 50.0, &mut Random::new(3)));
        let [first, ..] = study.significant() else { panic!("{study:?}") };
        assert_eq!((first.name.as_str(), study.samples.clone()), ("f", vec![4_800; 2]));
        assert!(first.figure.low < 50.0 && 50.0 < first.figure.high, "{first:?}");
        assert!((study.total.figure.estimate - 50.0).abs() < 1e-9);
        let sum: f64 = study.functions.iter().map(|row| row.figure.estimate).sum();
        assert!((sum - 50.0).abs() < 1e-6, "the functions sum up to the whole: {sum}");
    }

    #[test]
    fn two_equal_sides_have_hardly_a_significant_function() {
        let mut random = Random::new(4);
        let significant = (0..100)
            .filter(|_| !study_functions(&sampled(16, 0.0, &mut random)).significant().is_empty())
            .count();
        assert!(significant <= 10, "{significant} of 100 comparisons of equal sides find a function");
    }

    #[test]
    fn an_insignificant_function_names_the_samples_that_it_needs() {
        let mut random = Random::new(5);
        let study = study_functions(&sampled(8, 4.0, &mut random));
        let row = study.unresolved().iter().find(|row| row.name == "f").expect("too small");
        // The same row with the true size of the function.
        let row = TimeRow {
            figure: Interval { estimate: 4.0, ..row.figure.map(|x| x - row.figure.estimate + 4.0) },
            ..row.clone()
        };
        let times = study.times_as_many(&row).expect("a number");
        let pairs = (8.0 * times).ceil() as usize;
        assert!((16..4_000).contains(&pairs), "{pairs}");
        let more = study_functions(&sampled(pairs, 4.0, &mut random));
        assert!(more.significant().iter().any(|row| row.name == "f"), "not by {pairs} pairs");
    }

    #[test]
    fn one_process_shows_no_significant_function() {
        let study = study_functions(&sampled(1, 50.0, &mut Random::new(6)));
        assert!(study.significant().is_empty() && study.times_as_many(&study.functions[0]).is_none());
        assert_eq!(study_functions(&SampledCase::default()).functions, []);
    }

    #[test]
    fn a_stack_has_the_class_of_its_first_function_that_has_one() {
        for (stack, class) in [
            (&["srso_alias_safe_ret", "ksys_read"][..], "mitigations"),
            (&["clear_page_erms", "handle_mm_fault", "asm_exc_page_fault"], "copy"),
            (&["_raw_spin_lock", "try_to_wake_up", "pipe_write", "do_syscall_64"], "scheduler"),
            (&["_raw_spin_lock", "pipe_write", "do_syscall_64"], "files"),
            (
                &["(generated code, such as a filter of system calls)", "__seccomp_filter", "do_syscall_64"],
                "filter of system calls",
            ),
            (&["do_syscall_64", "entry_SYSCALL_64_after_hwframe"], "entry"),
            (&["mutex_lock", "do_syscall_64"], "other kernel"),
            (&[], "other kernel"),
        ] {
            assert_eq!(kernel_class(stack.iter().copied()), class, "{stack:?}");
        }
    }
}
