//! What a process inherits, what limits it, and where its files lie: everything beside the machine that affects its numbers.
//!
//! Nothing here identifies a machine or its owner: paths, addresses and names of users are left out.

use crate::platform::kernel_files::{KernelFiles, field};
use crate::platform::{control_group, mount, volume};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The surroundings of a process. A field is `None` if the kernel does not report it, and in records older than the field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Surroundings {
    /// Options of the mount that holds the scratch directory, and of its file system, sorted.
    pub scratch_options: Option<String>,
    /// Block device below the scratch directory, with the model of its disk.
    pub scratch_device: Option<String>,
    /// Seccomp filters of system calls: `off`, or their mode or number. The kernel does not show their content.
    pub seccomp: Option<String>,
    /// What the kernel does about speculative stores in this process.
    pub store_bypass: Option<String>,
    /// What the kernel does about indirect branches in this process.
    pub indirect_branches: Option<String>,
    /// Scheduling class, followed by the priority if the class has one.
    pub scheduling: Option<String>,
    /// Niceness, from -20 to 19.
    pub nice: Option<String>,
    /// Memory limits by control groups: the smallest of this group and those above it.
    pub memory_limit: Option<String>,
    /// Rates to which control groups limit devices.
    pub io_limit: Option<String>,
    /// NUMA nodes from which this process may take memory.
    pub memory_nodes: Option<String>,
    /// Whether the process is in the initial user namespace.
    pub user_namespace: Option<String>,
    /// The program that traces this process.
    pub tracer: Option<String>,
    /// Variables that change what the C library does, and the variable that `syscost burden` sets.
    pub environment: Option<String>,
    /// Whether programs that this process starts can gain privileges.
    pub new_privileges: Option<String>,
    /// Whether the address space of this process is randomized.
    pub layout: Option<String>,
    /// By how much the kernel may delay a timer of this process, ns.
    pub timer_slack_ns: Option<String>,
    /// Whether this process may get huge pages.
    pub process_huge_pages: Option<String>,
    /// The security module's label of this process.
    pub confinement: Option<String>,
}

impl Surroundings {
    /// Reads the surroundings of this process, whose files are made below `scratch`.
    pub(super) fn read(files: &KernelFiles, scratch: &Path) -> Self {
        let status = files.read_text("proc/self/status").unwrap_or_default();
        let scheduled = files.read_text("proc/self/stat").and_then(|text| parse_scheduling(&text));
        let (scheduling, nice) = scheduled.unzip();
        Self {
            scratch_options: mount_option_text(files, scratch),
            scratch_device: block_device_name(files, scratch),
            seccomp: seccomp_state(&status),
            store_bypass: status_value(&status, "Speculation_Store_Bypass"),
            indirect_branches: status_value(&status, "SpeculationIndirectBranch"),
            scheduling,
            nice,
            memory_limit: control_group::memory_limits(files),
            io_limit: control_group::io_limits(files),
            memory_nodes: status_value(&status, "Mems_allowed_list"),
            user_namespace: files.read_text("proc/self/uid_map").map(|map| user_namespace_kind(&map).into()),
            tracer: tracing_program(files, &status),
            environment: files.read_bytes("proc/self/environ").map(|bytes| relevant_variables(&bytes)),
            new_privileges: status_flag_word(&status, "NoNewPrivs", ["allowed", "forbidden"]),
            layout: files.read_first_line("proc/self/personality").and_then(|line| address_layout(&line)),
            timer_slack_ns: files.read_first_line("proc/self/timerslack_ns"),
            process_huge_pages: status_flag_word(&status, "THP_enabled", ["forbidden", "allowed"]),
            confinement: files.read_first_line("proc/self/attr/current").map(|line| security_profile(&line)),
        }
    }
}

// Parsers of what a process inherits: text in, text out, no I/O except for the name of a tracer.

/// Variables that change what the dynamic linker and the allocator do, and the one that `syscost burden` sets.
const VARIABLES: [&str; 6] =
    ["LD_PRELOAD", "LD_AUDIT", "LD_BIND_NOW", "GLIBC_TUNABLES", "MALLOC_", "SYSCOST_BURDEN"];
/// Scheduling classes by number (sched(7)).
const CLASSES: [&str; 7] = ["other", "fifo", "rr", "batch", "unknown", "idle", "deadline"];
/// `ADDR_NO_RANDOMIZE` of personality(2).
const NO_RANDOMIZE: u32 = 0x0004_0000;

/// The value of a line in `/proc/PID/status`; `None` if it is missing or empty.
fn status_value(status: &str, key: &str) -> Option<String> {
    field(status, key).filter(|value| !value.is_empty()).map(String::from)
}

/// The word for a line of `/proc/PID/status` whose value is 0 or 1.
fn status_flag_word(status: &str, key: &str, words: [&str; 2]) -> Option<String> {
    let number: usize = field(status, key)?.parse().ok()?;
    words.get(number).map(|word| (*word).to_owned())
}

/// `off`, `strict`, or the number of filters; `filtered` on kernels before 5.9, which do not show the number.
fn seccomp_state(status: &str) -> Option<String> {
    let filters = field(status, "Seccomp_filters");
    Some(match (field(status, "Seccomp")?, filters) {
        ("0", _) => "off".into(),
        ("1", _) => "strict".into(),
        (_, Some("1")) => "1 filter".into(),
        (_, Some(filters)) => format!("{filters} filters"),
        (_, None) => "filtered".into(),
    })
}

/// Scheduling class and niceness from `/proc/PID/stat`: fields 19, 40 and 41 (proc_pid_stat(5)).
fn parse_scheduling(stat: &str) -> Option<(String, String)> {
    // The process name in parentheses may contain any character, even `)`. The third field follows the last `)`.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let [nice, priority, class] = [16, 37, 38].map(|at| fields.get(at).copied());
    let name = CLASSES.get(class?.parse::<usize>().ok()?).copied().unwrap_or("unknown");
    let class = if matches!(name, "fifo" | "rr") { format!("{name} {}", priority?) } else { name.into() };
    Some((class, nice?.to_owned()))
}

/// `initial` for the initial user namespace, which maps every id to itself, else `another`.
fn user_namespace_kind(map: &str) -> &'static str {
    let is_whole = map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
    if is_whole { "initial" } else { "another" }
}

/// The name of the program that traces this process, or `none`.
fn tracing_program(files: &KernelFiles, status: &str) -> Option<String> {
    let pid = field(status, "TracerPid")?;
    let name = || files.read_first_line(&format!("proc/{pid}/comm")).unwrap_or_else(|| "unnamed".into());
    Some(if pid == "0" { "none".into() } else { name() })
}

/// The environment variables that change numbers, sorted, with their values at the start of the process. Paths are cut to
/// their last part. `none` if there are none.
fn relevant_variables(bytes: &[u8]) -> String {
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

/// `random` or `fixed`: whether `/proc/PID/personality` allows randomized addresses.
fn address_layout(personality: &str) -> Option<String> {
    let bits = u32::from_str_radix(personality, 16).ok()?;
    Some(if bits & NO_RANDOMIZE == 0 { "random" } else { "fixed" }.into())
}

/// The type in an SELinux label, without categories, which differ in every container; the AppArmor profile without directories.
fn security_profile(line: &str) -> String {
    let line = line.trim_end_matches('\0');
    let kind = line.split(':').nth(2).unwrap_or(line);
    kind.rsplit('/').next().unwrap_or(kind).to_owned()
}

// The file system and the device below the scratch directory, without names of servers, users and directories.

/// Options whose values name a directory, a server or a user, or change with every mount.
#[rustfmt::skip]
const NAMING: [&str; 19] = [
    "addr", "clientaddr", "mountaddr", "mountport", "port", "ip", "username", "user", "domain", "uid", "gid", "cruid",
    "lowerdir", "upperdir", "workdir", "subvol", "subvolid", "fd", "uuid",
];

/// Options of the mount and of its file system, each once, sorted.
fn mount_option_text(files: &KernelFiles, scratch: &Path) -> Option<String> {
    let text = files.read_text("proc/self/mountinfo")?;
    let mount = mount::find_mount(&text, &mount::resolve_path(scratch))?;
    let mut known: Vec<String> =
        mount.point_options().chain(mount.options()).filter(|option| is_anonymous_option(option)).collect();
    known.sort();
    known.dedup();
    Some(known.join(","))
}

fn is_anonymous_option(option: &str) -> bool {
    let Some((name, value)) = option.split_once('=') else { return !option.is_empty() };
    !NAMING.contains(&name) && !value.contains(['/', '\\', '@', ':'])
}

/// The block device, with the model of its disk; the type of the file system where there is none.
fn block_device_name(files: &KernelFiles, scratch: &Path) -> Option<String> {
    let text = files.read_text("proc/self/mountinfo")?;
    let mount = mount::find_mount(&text, &mount::resolve_path(scratch))?;
    match volume::block_device_number(&text, &mount) {
        Some(number) => device_with_model(files, &number),
        None => Some(format!("none ({})", mount.kind)),
    }
}

/// `vda`, `nvme0n1p2 (Samsung SSD 990)`. Loop devices are numbered by chance.
fn device_with_model(files: &KernelFiles, number: &str) -> Option<String> {
    let entry = format!("sys/dev/block/{number}");
    let name = files.path(&entry).canonicalize().ok()?.file_name()?.to_string_lossy().into_owned();
    let name = if name.starts_with("loop") { "loop".to_owned() } else { name };
    // The directory of a partition lies in that of its disk.
    let above = if files.has(&format!("{entry}/partition")) { "/.." } else { "" };
    let model = files.read_first_line(&format!("{entry}{above}/device/model"));
    Some(model.map_or(name.clone(), |model| format!("{name} ({model})")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;
    use std::os::unix::fs::symlink;

    #[test]
    fn seccomp_filters_are_counted_if_the_kernel_shows_their_number() {
        let filters = |text: &str| seccomp_state(text).unwrap_or_default();
        assert_eq!(filters("Seccomp:\t0\nSeccomp_filters:\t0\n"), "off");
        assert_eq!(filters("Seccomp:\t2\nSeccomp_filters:\t1\n"), "1 filter");
        assert_eq!(filters("Seccomp:\t2\nSeccomp_filters:\t3\n"), "3 filters");
        assert_eq!((filters("Seccomp:\t2\n"), seccomp_state("")), ("filtered".into(), None));
    }

    #[test]
    fn class_and_niceness_are_read_even_if_the_process_name_has_parentheses() {
        let stat = |nice: i32, priority: u32, class: u32| {
            let middle = "0 ".repeat(20);
            format!("7 (a) b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 20 {nice} {middle}{priority} {class} 0 0\n")
        };
        let parsed = |text: String| parse_scheduling(&text).expect("a line of the kernel's");
        assert_eq!(parsed(stat(5, 0, 0)), ("other".into(), "5".into()));
        assert_eq!(parsed(stat(0, 50, 1)), ("fifo 50".into(), "0".into()));
        assert_eq!(parsed(stat(-3, 0, 3)), ("batch".into(), "-3".into()));
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
    fn a_user_namespace_that_maps_only_some_ids_is_another() {
        assert_eq!(user_namespace_kind("         0          0 4294967295\n"), "initial");
        assert_eq!(user_namespace_kind("0 100000 65536\n"), "another");
        assert_eq!(user_namespace_kind(""), "another", "nothing is mapped yet");
    }

    #[test]
    fn fixed_addresses_follow_from_a_bit_of_the_personality() {
        assert_eq!(address_layout("00000000").as_deref(), Some("random"));
        assert_eq!((address_layout("00040000").as_deref(), address_layout("x")), (Some("fixed"), None));
    }

    #[test]
    fn a_security_label_is_reported_without_its_categories() {
        assert_eq!(security_profile("/usr/bin/man (enforce)"), "man (enforce)");
        assert_eq!(security_profile("system_u:system_r:container_t:s0:c123,c456\0"), "container_t");
        assert_eq!(security_profile("unconfined"), "unconfined");
    }

    /// A machine whose root has this line in `mountinfo`.
    fn machine(mount: &str) -> Machine {
        Machine::with_files(&[("proc/self/mountinfo", &format!("{mount}\n"))])
    }

    fn mount_options(mount: &str) -> String {
        mount_option_text(&machine(mount).files, Path::new("/")).expect("mounted")
    }

    #[test]
    fn options_of_the_mount_and_of_the_file_system_are_listed_together() {
        let line = "27 1 254:0 / / rw,noatime shared:1 - ext4 /dev/vda rw,discard,data=journal";
        assert_eq!(mount_options(line), "data=journal,discard,noatime,rw");
    }

    #[test]
    fn servers_users_and_directories_are_left_out() {
        let nfs =
            "40 25 0:50 / / rw - nfs4 198.18.47.2:/ rw,vers=4.2,addr=198.18.47.2,clientaddr=198.18.47.3";
        assert_eq!(mount_options(nfs), "rw,vers=4.2");
        let overlay = "36 28 0:50 / / rw - overlay none rw,lowerdir=/home/me/l,upperdir=/u,index=off";
        assert_eq!(mount_options(overlay), "index=off,rw");
    }

    #[test]
    fn a_disk_is_described_by_name_and_model_and_a_loop_device_without_its_number() {
        let machine = machine("27 1 254:1 / / rw - ext4 /dev/vda1 rw");
        for (number, place) in [("254:1", "vda/vda1"), ("7:3", "loop3")] {
            machine.write_file(&format!("sys/devices/{place}/dev"), number);
            std::fs::create_dir_all(machine.files.path("sys/dev/block")).expect("made");
            let (target, link) = (format!("sys/devices/{place}"), format!("sys/dev/block/{number}"));
            symlink(machine.files.path(&target), machine.files.path(&link)).expect("linked");
        }
        machine.write_file("sys/devices/vda/vda1/partition", "1");
        assert_eq!(block_device_name(&machine.files, Path::new("/")).as_deref(), Some("vda1"));
        machine.write_file("sys/devices/vda/device/model", "Fast Disk  \n");
        assert_eq!(block_device_name(&machine.files, Path::new("/")).as_deref(), Some("vda1 (Fast Disk)"));
        assert_eq!(device_with_model(&machine.files, "7:3").as_deref(), Some("loop"));
    }

    #[test]
    fn a_file_system_without_a_device_is_reported_as_none() {
        let memory = machine("25 24 0:23 / / rw - tmpfs tmpfs rw,size=100k");
        assert_eq!(block_device_name(&memory.files, Path::new("/")).as_deref(), Some("none (tmpfs)"));
        assert_eq!(block_device_name(&Machine::with_files(&[]).files, Path::new("/")), None);
    }
}
