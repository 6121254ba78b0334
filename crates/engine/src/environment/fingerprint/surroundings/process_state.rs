//! Parsers of what a process inherits: text in, text out, no I/O except for the name of a tracer.

use crate::platform::kernel_files::{KernelFiles, field};

/// Variables that change what the dynamic linker and the allocator do, and the one that `syscost burden` sets.
const VARIABLES: [&str; 6] =
    ["LD_PRELOAD", "LD_AUDIT", "LD_BIND_NOW", "GLIBC_TUNABLES", "MALLOC_", "SYSCOST_BURDEN"];
/// Scheduling classes by number (sched(7)).
const CLASSES: [&str; 7] = ["other", "fifo", "rr", "batch", "unknown", "idle", "deadline"];
/// `ADDR_NO_RANDOMIZE` of personality(2).
const NO_RANDOMIZE: u32 = 0x0004_0000;

/// A line of `/proc/PID/status`.
pub(super) fn status_value(status: &str, key: &str) -> Option<String> {
    field(status, key).filter(|value| !value.is_empty()).map(String::from)
}

/// A line that is 0 or 1, as the word for it.
pub(super) fn status_flag_word(status: &str, key: &str, words: [&str; 2]) -> Option<String> {
    let number: usize = field(status, key)?.parse().ok()?;
    words.get(number).map(|word| (*word).to_owned())
}

/// `off`, `strict`, or the number of filters, which kernels before 5.9 do not tell.
pub(super) fn seccomp_state(status: &str) -> Option<String> {
    let filters = field(status, "Seccomp_filters");
    Some(match (field(status, "Seccomp")?, filters) {
        ("0", _) => "off".into(),
        ("1", _) => "strict".into(),
        (_, Some("1")) => "1 filter".into(),
        (_, Some(filters)) => format!("{filters} filters"),
        (_, None) => "filtered".into(),
    })
}

/// Scheduling class and niceness, by `/proc/PID/stat`: fields 19, 40 and 41 (proc_pid_stat(5)).
pub(super) fn parse_scheduling(stat: &str) -> Option<(String, String)> {
    // The name in brackets may hold anything; behind it come the fields from the third on.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let [nice, priority, class] = [16, 37, 38].map(|at| fields.get(at).copied());
    let name = CLASSES.get(class?.parse::<usize>().ok()?).copied().unwrap_or("unknown");
    let class = if matches!(name, "fifo" | "rr") { format!("{name} {}", priority?) } else { name.into() };
    Some((class, nice?.to_owned()))
}

/// Whether this is the initial user namespace, which maps every id to itself, or another.
pub(super) fn user_namespace_kind(map: &str) -> &'static str {
    let is_whole = map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
    if is_whole { "initial" } else { "another" }
}

/// The name of the program that traces this process, or `none`.
pub(super) fn tracing_program(files: &KernelFiles, status: &str) -> Option<String> {
    let pid = field(status, "TracerPid")?;
    let name = || files.read_first_line(&format!("proc/{pid}/comm")).unwrap_or_else(|| "unnamed".into());
    Some(if pid == "0" { "none".into() } else { name() })
}

/// The environment variables that change numbers, sorted, as the process started with them. Paths are cut to their
/// last part.
pub(super) fn relevant_variables(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_asked = |entry: &&str| VARIABLES.iter().any(|name| entry.starts_with(name));
    let mut found: Vec<String> = text.split('\0').filter(is_asked).filter_map(strip_directories).collect();
    found.sort();
    if found.is_empty() { "none".into() } else { found.join(" | ") }
}

/// `LD_PRELOAD=/home/me/a.so:b.so` as `LD_PRELOAD=a.so:b.so`: a directory may name its owner. `None` of an empty value.
fn strip_directories(entry: &str) -> Option<String> {
    let (name, value) = entry.split_once('=').filter(|(_, value)| !value.is_empty())?;
    let parts: Vec<&str> =
        value.split([':', ' ']).map(|part| part.rsplit('/').next().unwrap_or(part)).collect();
    Some(format!("{name}={}", parts.join(":")))
}

/// Whether addresses are drawn by chance, by `/proc/PID/personality`.
pub(super) fn address_layout(personality: &str) -> Option<String> {
    let bits = u32::from_str_radix(personality, 16).ok()?;
    Some(if bits & NO_RANDOMIZE == 0 { "random" } else { "fixed" }.into())
}

/// The type in a label of SELinux, whose categories each container draws anew; the profile of AppArmor without directories.
pub(super) fn security_profile(line: &str) -> String {
    let line = line.trim_end_matches('\0');
    let kind = line.split(':').nth(2).unwrap_or(line);
    kind.rsplit('/').next().unwrap_or(kind).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;

    #[test]
    fn filters_are_counted_where_the_kernel_tells() {
        let filters = |text: &str| seccomp_state(text).unwrap_or_default();
        assert_eq!(filters("Seccomp:\t0\nSeccomp_filters:\t0\n"), "off");
        assert_eq!(filters("Seccomp:\t2\nSeccomp_filters:\t1\n"), "1 filter");
        assert_eq!(filters("Seccomp:\t2\nSeccomp_filters:\t3\n"), "3 filters");
        assert_eq!((filters("Seccomp:\t2\n"), seccomp_state("")), ("filtered".into(), None));
    }

    #[test]
    fn the_class_and_the_niceness_are_read_whatever_the_name_of_the_process_is() {
        let stat = |nice: i32, priority: u32, class: u32| {
            let middle = "0 ".repeat(20);
            format!("7 (a) b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 20 {nice} {middle}{priority} {class} 0 0\n")
        };
        let told = |text: String| parse_scheduling(&text).expect("a line of the kernel's");
        assert_eq!(told(stat(5, 0, 0)), ("other".into(), "5".into()));
        assert_eq!(told(stat(0, 50, 1)), ("fifo 50".into(), "0".into()));
        assert_eq!(told(stat(-3, 0, 3)), ("batch".into(), "-3".into()));
        assert_eq!(parse_scheduling("7 (a) R 1\n"), None);
        let live = std::fs::read_to_string("/proc/self/stat").expect("a line");
        assert!(parse_scheduling(&live).is_some_and(|(class, _)| class != "unknown"));
    }

    #[test]
    fn a_preloaded_library_is_named_without_its_directory() {
        let preloaded = |text: &str| relevant_variables(text.as_bytes());
        assert_eq!(preloaded("HOME=/home/me\0LD_PRELOAD=\0"), "none");
        let text = "MALLOC_ARENA_MAX=1\0PATH=/bin\0LD_PRELOAD=/home/me/libx.so:/y/z.so\0";
        assert_eq!(preloaded(text), "LD_PRELOAD=libx.so:z.so | MALLOC_ARENA_MAX=1");
        assert_eq!(
            preloaded("GLIBC_TUNABLES=glibc.malloc.hugetlb=1\0"),
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
        );
    }

    #[test]
    fn a_tracer_is_named() {
        let machine = Machine::with_files(&[("proc/77/comm", "strace\n")]);
        let tracer_name = |status| tracing_program(&machine.files, status);
        assert_eq!(tracer_name("TracerPid:\t77\n").as_deref(), Some("strace"));
        assert_eq!((tracer_name("TracerPid:\t0\n").as_deref(), tracer_name("")), (Some("none"), None));
    }

    #[test]
    fn a_namespace_that_maps_a_part_is_another() {
        assert_eq!(user_namespace_kind("         0          0 4294967295\n"), "initial");
        assert_eq!(user_namespace_kind("0 100000 65536\n"), "another");
        assert_eq!(user_namespace_kind(""), "another", "nothing is mapped yet");
    }

    #[test]
    fn fixed_addresses_are_told_by_a_bit() {
        assert_eq!(address_layout("00000000").as_deref(), Some("random"));
        assert_eq!((address_layout("00040000").as_deref(), address_layout("x")), (Some("fixed"), None));
    }

    #[test]
    fn a_label_is_told_without_what_each_container_draws() {
        assert_eq!(security_profile("/usr/bin/man (enforce)"), "man (enforce)");
        assert_eq!(security_profile("system_u:system_r:container_t:s0:c123,c456\0"), "container_t");
        assert_eq!(security_profile("unconfined"), "unconfined");
    }
}
