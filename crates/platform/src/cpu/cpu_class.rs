//! Classes of CPUs. On a hybrid processor the cost of the same work depends on the CPU, so that a figure holds for one class.
//! The choice of the class must not depend on how the CPUs are numbered.
//!
//! | the kernel shows classes by | where |
//! |---|---|
//! | `/sys/devices/cpu_core/cpus`, `cpu_atom`, `cpu_lowpower`: the counters of each class | Intel's hybrids |
//! | `cpu_capacity` of every CPU, 1024 for the fastest | Arm's big.LITTLE, RISC-V, and x86 where the scheduler knows them |

use super::{allowed_cpus, cpu_list};
use crate::error::{Error, Result};
use crate::kernel_files::KernelFiles;
use std::sync::OnceLock;

const CPUS: &str = "sys/devices/system/cpu";
/// The counters of Intel's classes, the fastest class first.
const COUNTERS: [&str; 3] = ["core", "atom", "lowpower"];
/// Environment variable with the CPU or class to measure on, in place of the fastest class.
pub const CPU_VARIABLE: &str = "SYSCOST_CPU";

/// CPUs of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuClass {
    /// `core`, `atom`, or `capacity-1024`.
    pub name: String,
    /// Its CPUs, of those that were asked for.
    pub cpus: Vec<usize>,
}

/// The classes of these CPUs, the fastest first. Empty if all CPUs of the machine are of one class, or the kernel shows none.
pub fn cpu_classes(files: &KernelFiles, cpus: &[usize]) -> Vec<CpuClass> {
    let online = files.read_first_line(&format!("{CPUS}/online")).map(|list| cpu_list::parse(&list));
    let online = online.unwrap_or_else(|| cpus.to_vec());
    let mut classes = classes_by_counters(files, &online);
    // If a CPU has no class by counters, they cannot be used: it would be left out silently.
    if classes.iter().map(|class| class.cpus.len()).sum::<usize>() != online.len() {
        classes = classes_by_capacity(files, &online).unwrap_or_default();
    }
    if classes.len() < 2 {
        return Vec::new();
    }
    let of_these = |class: CpuClass| {
        let cpus = cpus.iter().copied().filter(|cpu| class.cpus.contains(cpu)).collect();
        CpuClass { cpus, ..class }
    };
    classes.into_iter().map(of_these).filter(|class| !class.cpus.is_empty()).collect()
}

fn classes_by_counters(files: &KernelFiles, cpus: &[usize]) -> Vec<CpuClass> {
    let class = |name: &&str| {
        let list = cpu_list::parse(&files.read_first_line(&format!("sys/devices/cpu_{name}/cpus"))?);
        let cpus: Vec<_> = cpus.iter().copied().filter(|cpu| list.contains(cpu)).collect();
        (!cpus.is_empty()).then(|| CpuClass { name: (*name).into(), cpus })
    };
    COUNTERS.iter().filter_map(class).collect()
}

/// The classes by capacity, the fastest first; `None` if the kernel states no capacity for one of the CPUs.
fn classes_by_capacity(files: &KernelFiles, cpus: &[usize]) -> Option<Vec<CpuClass>> {
    let mut capacities = std::collections::BTreeMap::<u32, Vec<usize>>::new();
    for &cpu in cpus {
        let capacity = files.read_number(&format!("{CPUS}/cpu{cpu}/cpu_capacity"))?;
        capacities.entry(capacity).or_default().push(cpu);
    }
    let class = |(capacity, cpus)| CpuClass { name: format!("capacity-{capacity}"), cpus };
    Some(capacities.into_iter().rev().map(class).collect())
}

/// The CPUs among `allowed` on which a run may measure, the preferred one first, and the name of their class if there are
/// several. The highest number is preferred, since interrupts and daemons prefer the first CPUs. `choice` is the number of a
/// CPU or the name of a class; the default is the fastest class.
///
/// # Errors
/// [`Error::Usage`] if there is no such CPU or class.
pub fn choose_cpus(
    files: &KernelFiles,
    allowed: &[usize],
    choice: Option<&str>,
) -> Result<(Vec<usize>, Option<String>)> {
    let mut cpus = allowed.to_vec();
    cpus.sort_unstable_by(|a, b| b.cmp(a));
    let classes = cpu_classes(files, &cpus);
    let named = |class: &CpuClass| (class.cpus.clone(), Some(class.name.clone()));
    let Some(choice) = choice else { return Ok(classes.first().map_or((cpus, None), named)) };
    if let Ok(number) = choice.parse() {
        let class = classes.iter().find(|class| class.cpus.contains(&number));
        let found = cpus.contains(&number).then(|| (vec![number], class.map(|class| class.name.clone())));
        return found.ok_or_else(|| unknown_choice(choice, allowed, &classes));
    }
    let class = classes.iter().find(|class| class.name == choice).map(named);
    class.ok_or_else(|| unknown_choice(choice, allowed, &classes))
}

/// As [`choose_cpus`], with the CPUs that this process may use and its user's choice.
///
/// # Errors
/// As of [`choose_cpus`].
pub fn choose_own_cpus() -> Result<(Vec<usize>, Option<String>)> {
    choose_cpus(&KernelFiles::live(), &allowed_cpus(), fixed_choice())
}

fn unknown_choice(choice: &str, allowed: &[usize], classes: &[CpuClass]) -> Error {
    let list = cpu_list::format(allowed);
    let names: Vec<_> = classes.iter().map(|class| class.name.as_str()).collect();
    let classes = match names.is_empty() {
        true => "; all are of one class".to_owned(),
        false => format!(", or a class: {}", names.join(", ")),
    };
    Error::Usage(format!("CPU {choice}: expected one of those that this process may use, {list}{classes}"))
}

static CHOICE: OnceLock<Option<String>> = OnceLock::new();

/// Fixes the CPU or class that this process measures on. Without a call, `SYSCOST_CPU` decides.
///
/// # Errors
/// [`Error::Usage`] if there is no such CPU or class, or another choice was fixed.
pub fn fix_choice(choice: &str) -> Result<()> {
    choose_cpus(&KernelFiles::live(), &allowed_cpus(), Some(choice))?;
    match CHOICE.get_or_init(|| Some(choice.to_owned())).as_deref() == Some(choice) {
        true => Ok(()),
        false => Err(Error::Usage(format!("CPU {choice}: another was chosen before"))),
    }
}

/// The user's choice: the number of a CPU or the name of a class.
pub fn fixed_choice() -> Option<&'static str> {
    let from_environment = || std::env::var(CPU_VARIABLE).ok().filter(|choice| !choice.is_empty());
    CHOICE.get_or_init(from_environment).as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_files::fixture::Machine;

    /// An Intel Core i7-1260P: four fast cores of two threads and eight slow ones of one.
    fn intel_hybrid() -> Machine {
        Machine::with_files(&[
            ("sys/devices/cpu_core/cpus", "0-7\n"),
            ("sys/devices/cpu_atom/cpus", "8-15\n"),
            ("sys/devices/system/cpu/online", "0-15\n"),
        ])
    }

    /// A board of four slow cores, numbered first, three of the middle, and a fast one.
    fn big_little() -> Machine {
        let machine = Machine::with_files(&[]);
        for (cpu, capacity) in [250, 250, 250, 250, 800, 800, 800, 1024].into_iter().enumerate() {
            machine.write_file(&format!("{CPUS}/cpu{cpu}/cpu_capacity"), &format!("{capacity}\n"));
        }
        machine
    }

    fn chosen(machine: &Machine, allowed: &[usize], choice: Option<&str>) -> (Vec<usize>, Option<String>) {
        choose_cpus(&machine.files, allowed, choice).expect("a choice")
    }

    #[test]
    fn a_hybrid_measures_on_its_fast_cores() {
        let all: Vec<_> = (0..16).collect();
        let (cpus, class) = chosen(&intel_hybrid(), &all, None);
        assert_eq!((cpus, class.as_deref()), ((0..8).rev().collect(), Some("core")));
        assert_eq!(chosen(&intel_hybrid(), &all, Some("atom")).0[..2], [15, 14]);
        assert_eq!(chosen(&intel_hybrid(), &all, Some("9")), (vec![9], Some("atom".into())));
        let slow: Vec<_> = (8..12).collect();
        assert_eq!(chosen(&intel_hybrid(), &slow, None), (vec![11, 10, 9, 8], Some("atom".into())));
    }

    #[test]
    fn a_big_little_measures_on_the_highest_capacity() {
        let all: Vec<_> = (0..8).collect();
        assert_eq!(chosen(&big_little(), &all, None), (vec![7], Some("capacity-1024".into())));
        assert_eq!(chosen(&big_little(), &all[..7], None), (vec![6, 5, 4], Some("capacity-800".into())));
        assert_eq!(chosen(&big_little(), &all, Some("capacity-250")).0, [3, 2, 1, 0]);
    }

    #[test]
    fn equal_cpus_have_no_class_however_many_there_are() {
        let server = Machine::with_files(&[]);
        let all: Vec<_> = (0..512).collect();
        assert_eq!(chosen(&server, &all, None), ((0..512).rev().collect(), None));
        all.iter().for_each(|cpu| server.write_file(&format!("{CPUS}/cpu{cpu}/cpu_capacity"), "1024\n"));
        assert_eq!(chosen(&server, &all, None), ((0..512).rev().collect(), None));
        assert_eq!(chosen(&server, &all, Some("300")), (vec![300], None));
    }

    #[test]
    fn a_processor_with_counters_for_some_cpus_only_is_judged_by_capacity() {
        let machine = Machine::with_files(&[("sys/devices/cpu_core/cpus", "0\n")]);
        assert_eq!(chosen(&machine, &[0, 1], None), (vec![1, 0], None));
        machine.write_file(&format!("{CPUS}/cpu0/cpu_capacity"), "1024\n");
        machine.write_file(&format!("{CPUS}/cpu1/cpu_capacity"), "400\n");
        assert_eq!(chosen(&machine, &[0, 1], None).0, [0]);
    }

    #[test]
    fn an_unknown_choice_is_refused_with_the_possible_ones() {
        let error =
            |choice| choose_cpus(&intel_hybrid().files, &[0, 1, 8], Some(choice)).unwrap_err().to_string();
        assert_eq!(
            error("9"),
            "CPU 9: expected one of those that this process may use, 0-1,8, or a class: core, atom"
        );
        assert!(error("big").contains("core, atom"));
        let alike = choose_cpus(&Machine::with_files(&[]).files, &[0], Some("core")).unwrap_err().to_string();
        assert!(alike.ends_with("0; all are of one class"), "{alike}");
    }
}
