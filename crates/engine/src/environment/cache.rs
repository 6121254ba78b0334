//! The caches that the kernel reports in `/sys/devices/system/cpu/cpu*/cache`. A guest sees what its
//! hypervisor reports, which may be the host's caches or invented ones.

use super::cpu_list;
use crate::platform::kernel_files::KernelFiles;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};

const CPUS: &str = "sys/devices/system/cpu";

/// Caches of one kind, and the CPUs that have one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// Level; 1 is the nearest to the core.
    pub level: u8,
    /// `Data`, `Instruction` or `Unified`, as the kernel writes it.
    pub kind: String,
    /// Size of each, in bytes.
    pub bytes: u64,
    /// How many CPUs share one.
    pub shared_by: usize,
    /// The CPUs that have one, such as `0-7`.
    pub cpus: String,
}

/// All caches of all CPUs, equal ones in one entry, the nearest first. Empty where the kernel does not tell.
pub fn read_caches(files: &KernelFiles) -> Vec<Cache> {
    let mut found: Vec<(Cache, Vec<usize>)> = Vec::new();
    for cpu in read_online_cpus(files) {
        for cache in read_cpu_caches(files, cpu) {
            match found.iter_mut().find(|(known, _)| *known == cache) {
                Some((_, cpus)) => cpus.push(cpu),
                None => found.push((cache, vec![cpu])),
            }
        }
    }
    let mut caches: Vec<Cache> =
        found.into_iter().map(|(cache, cpus)| Cache { cpus: cpu_list::format(&cpus), ..cache }).collect();
    caches.sort();
    caches
}

pub(super) fn read_online_cpus(files: &KernelFiles) -> Vec<usize> {
    files.read_first_line(&format!("{CPUS}/online")).map(|list| cpu_list::parse(&list)).unwrap_or_default()
}

fn read_cpu_caches(files: &KernelFiles, cpu: usize) -> Vec<Cache> {
    let read = |(level, kind, directory): (u8, String, String)| {
        let line = |file: &str| files.read_first_line(&format!("{directory}/{file}"));
        let bytes = parse_size(&line("size")?)?;
        let shared_by = line("shared_cpu_list").map_or(1, |list| cpu_list::parse(&list).len());
        Some(Cache { level, kind, bytes, shared_by, cpus: String::new() })
    };
    find_cpu_caches(files, cpu).filter_map(read).collect()
}

/// Level, kind and directory of each cache of this CPU.
pub(super) fn find_cpu_caches(files: &KernelFiles, cpu: usize) -> impl Iterator<Item = (u8, String, String)> {
    let directory = format!("{CPUS}/cpu{cpu}/cache");
    files.entry_names(&directory).into_iter().filter(|name| name.starts_with("index")).filter_map(
        move |index| {
            let directory = format!("{directory}/{index}");
            let line = |file: &str| files.read_first_line(&format!("{directory}/{file}"));
            let (level, kind) = (line("level")?.parse().ok()?, line("type")?);
            Some((level, kind, directory))
        },
    )
}

/// `32K` or `260M`: kibibytes and mebibytes.
fn parse_size(text: &str) -> Option<u64> {
    let shift = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => 0,
    };
    let number: u64 = text.trim_end_matches(['K', 'M', 'G']).parse().ok()?;
    number.checked_mul(1 << shift)
}

impl Cache {
    /// Whether data accesses of this CPU, or with `None` of any CPU, go through it.
    pub fn serves_data_of(&self, cpu: Option<usize>) -> bool {
        let here = cpu.is_none_or(|cpu| cpu_list::parse(&self.cpus).contains(&cpu));
        self.kind != "Instruction" && here
    }
}

impl Display for Cache {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { level, kind, bytes, shared_by, cpus } = self;
        write!(f, "L{level} {kind} {} KiB shared by {shared_by} on CPUs {cpus}", bytes >> 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;

    /// Level, kind, size, and the CPUs that share it.
    type Described<'a> = (&'a str, &'a str, &'a str, &'a str);

    fn machine(cpus: &[(usize, &[Described<'_>])]) -> Machine {
        let machine = Machine::with_files(&[(
            "sys/devices/system/cpu/online",
            cpus.iter().map(|(cpu, _)| cpu.to_string()).collect::<Vec<_>>().join(",").as_str(),
        )]);
        for (cpu, caches) in cpus {
            for (index, (level, kind, size, shared)) in caches.iter().enumerate() {
                let file = |name: &str| format!("{CPUS}/cpu{cpu}/cache/index{index}/{name}");
                machine.write_file(&file("level"), level);
                machine.write_file(&file("type"), kind);
                machine.write_file(&file("size"), size);
                machine.write_file(&file("shared_cpu_list"), shared);
            }
        }
        machine
    }

    #[test]
    fn equal_caches_are_one_entry() {
        let machine = machine(&[
            (0, &[("1", "Data", "32K", "0"), ("3", "Unified", "260M", "0-1")]),
            (1, &[("1", "Data", "32K", "1"), ("3", "Unified", "260M", "0-1")]),
        ]);
        let found = read_caches(&machine.files);
        let told: Vec<_> = found.iter().map(|c| (c.level, c.bytes, c.shared_by, c.cpus.as_str())).collect();
        assert_eq!(told, [(1, 32 << 10, 1, "0-1"), (3, 260 << 20, 2, "0-1")]);
        assert_eq!(found[0].to_string(), "L1 Data 32 KiB shared by 1 on CPUs 0-1");
    }

    #[test]
    fn cores_of_two_kinds_are_told_apart() {
        let machine = machine(&[(0, &[("1", "Data", "32K", "0")]), (4, &[("1", "Data", "64K", "4")])]);
        let found = read_caches(&machine.files);
        assert_eq!(found.len(), 2);
        let bytes_of_cpu =
            |cpu| found.iter().find(|cache| cache.serves_data_of(Some(cpu))).map(|cache| cache.bytes);
        assert_eq!(
            (bytes_of_cpu(0), bytes_of_cpu(4), bytes_of_cpu(9)),
            (Some(32 << 10), Some(64 << 10), None)
        );
    }

    #[test]
    fn instructions_serve_no_data_and_a_file_that_is_missing_is_no_cache() {
        let machine = machine(&[(0, &[("1", "Instruction", "32K", "0"), ("2", "Unified", "?", "0")])]);
        let found = read_caches(&machine.files);
        assert_eq!(found.len(), 1);
        assert!(!found[0].serves_data_of(Some(0)));
        assert!(read_caches(&Machine::with_files(&[]).files).is_empty());
    }
}
