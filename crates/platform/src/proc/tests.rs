use super::*;
use crate::testing::print_skipped;

const CAPTURED_STAT: &str = include_str!("../../../../fixtures/captured/stat.txt");
const STATUS: &str = include_str!("../../../../fixtures/captured/status.txt");
const LIMITS: &str = include_str!("../../../../fixtures/captured/limits.txt");
const STAT: &str = "cpu  1440 0 2793 93219 584 0 73 2255 0 0\n\
    cpu0 522 0 1274 47261 40 0 20 1088 0 0\ncpu1 917 0 1518 45957 544 0 52 1167 0 0\n\
    cpu10 1 2 3 4 5 6 7 8 9 10\nintr 12345 0 0\nctxt 7\nprocesses 4242\nprocs_running 1\n";

#[test]
fn schedstat_is_three_numbers() {
    let read = parse_schedstat("40210 87390 17\n").expect("three numbers");
    assert_eq!(read, Schedstat { ran_ns: 40210, waited_ns: 87390, turns: 17 });
    assert_eq!(parse_schedstat("1 2"), None);
    assert_eq!(parse_schedstat("a b c"), None);
}

#[test]
fn busy_time_excludes_idle_and_stolen_time() {
    assert_eq!(busy_ticks(STAT, &[0, 10]), Some(917 + 1518 + 52));
    assert_eq!(busy_ticks(STAT, &[0, 1]), Some(1 + 2 + 3 + 6 + 7));
    assert_eq!(busy_ticks(STAT, &[0, 1, 10]), Some(0));
    assert_eq!(busy_ticks("intr 5\n", &[]), None);
}

#[test]
fn stolen_time_is_that_of_the_given_cpu() {
    assert_eq!(stolen_ticks(STAT, 1), Some(1167));
    assert_eq!(stolen_ticks(STAT, 10), Some(8));
    assert_eq!(stolen_ticks(STAT, 2), None);
}

#[test]
fn interrupts_are_summed_for_one_cpu() {
    let text =
        "           CPU0       CPU10\n 24:  1  7  IO-APIC 5-edge ACPI\nLOC:  20  30  Local timer\nERR:  9\n";
    assert_eq!(sum_of_cpu_column(text, 0), Some(21));
    assert_eq!(sum_of_cpu_column(text, 10), Some(37));
    assert_eq!(sum_of_cpu_column(text, 1), None);
    assert_eq!(sum_of_cpu_column("", 0), None);
    assert_eq!(sum_of_cpu_column("  CPU0\nHI:  4\nTIMER:  5\n", 0), Some(9));
}

#[test]
fn old_kernels_without_a_steal_column_have_no_stolen_time() {
    assert_eq!(stolen_ticks("cpu0 1 2 3 4\n", 0), None);
    for text in ["cpu  1 2 3 4\n", "cpu  0 0 0 0 0 0 0 0\n", ""] {
        assert_eq!(stolen_share(text), None);
    }
}

#[test]
fn stolen_time_is_a_share_of_all_time() {
    let share = stolen_share(CAPTURED_STAT).expect("eight numbers");
    assert!((share - 2384.0 / 178_709.0).abs() < 1e-12, "{share}");
}

#[test]
fn bogomips_is_that_of_the_first_cpu() {
    assert_eq!(bogomips("model name\t: x\nbogomips\t: 5192.25\n\nbogomips\t: 1.0\n"), Some(5192.25));
    assert_eq!(bogomips("BogoMIPS\t: 50.00\n"), None, "AArch64 counts another thing by that name");
}

#[test]
fn a_task_has_a_start_a_cpu_and_switches() {
    let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
    assert_eq!(context_switches(status), Some((150, 545)));
    assert_eq!(context_switches("Name:\tx\n"), None);
    let numbers: Vec<_> = (4..53).map(|n| n.to_string()).collect();
    assert_eq!(last_cpu(&format!("17 (a) b) S {}", numbers.join(" "))), Some(39));
    assert_eq!(last_cpu("17 (x) S 1"), None);
    assert_eq!(start_ticks(&format!("17 (a) b) S {}", numbers.join(" "))), Some(22));
    assert_eq!(start_ticks(&format!("17 (a) b) Z {}", numbers.join(" "))), None);
}

#[test]
fn created_tasks_are_those_of_all_time() {
    assert_eq!(created_tasks(STAT), Some(4242));
    assert_eq!(created_tasks("procs_running 1\n"), None);
    assert_eq!(created_tasks("processes 0\n"), None);
}

#[test]
fn throttling_reads_both_versions() {
    assert_eq!(throttled_periods("nr_periods 10\nnr_throttled 3\nthrottled_time 99\n"), Some(3));
    assert_eq!(throttled_periods("usage_usec 5\nuser_usec 3\n"), None);
}

#[test]
fn an_ordinary_user_is_capable_of_nothing() {
    assert!(!has_capability(STATUS, CAP_IPC_LOCK));
    assert!(!has_capability("", CAP_SYS_ADMIN));
}

#[test]
fn a_capability_is_one_bit() {
    let status = "CapEff:\t0000004000004000\n";
    assert!(has_capability(status, CAP_IPC_LOCK) && has_capability(status, CAP_PERFMON));
    assert!(!has_capability(status, CAP_SYS_ADMIN));
}

#[test]
fn the_soft_limit_on_locked_memory_is_read() {
    assert_eq!(locked_memory_limit(LIMITS), Some(8_388_608));
    assert_eq!(locked_memory_limit("Max locked memory  unlimited unlimited bytes"), Some(u64::MAX));
    assert_eq!(locked_memory_limit(""), None);
}

#[test]
fn the_page_size_follows_its_tag() {
    let words = [33_usize, 6, 6, 4096, 0, 0];
    let auxv: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
    assert_eq!(page_size(&auxv), Some(4096));
    assert_eq!(page_size(&[]), None);
}

#[test]
fn bytes_of_devices_and_networks_are_parsed() {
    let io = "rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\n\
              cancelled_write_bytes: 0\n";
    assert_eq!(parse_device_bytes(io), Some(Moved { read: 4096, written: 8192 }));
    assert_eq!(parse_device_bytes("rchar: 1\n"), None);
    let dev = "Inter-|   Receive\n face |bytes\n    lo: 100 2 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n  eth0:7 1 0 0 0 0 0 0 9 1 0 0 0 \
               0 0 0\n";
    assert_eq!(parse_network_bytes(dev), Some(Moved { read: 107, written: 209 }));
    assert_eq!(parse_network_bytes("a\nb\n"), Some(Moved::default()), "a network without interfaces");
    assert_eq!(parse_network_bytes("a\nb\nlo: x\n"), None);
}

#[test]
fn a_text_of_several_pages_is_read_whole() {
    let long = ["/proc/kallsyms", "/proc/crypto", "/proc/self/net/protocols"];
    let texts = long.into_iter().filter_map(|path| Some((path, std::fs::read(path).ok()?)));
    let Some((path, text)) = texts.into_iter().find(|(_, text)| text.len() > 16 << 10) else {
        print_skipped("the kernel shows no long text that stays as it is");
        return;
    };
    let file = File::open(path).expect("a file");
    let mut account = Account { file, source: Source::Network, buffer: vec![0; 16 << 10] };
    let length = account.fill_buffer().expect("read");
    assert!(account.buffer[..length] == text, "{length} of {} bytes", text.len());
}

#[test]
fn a_read_from_memory_is_charged_to_no_device() {
    let mut account = Account::open(Source::Device).expect("an account");
    let before = account.read().expect("counted");
    std::fs::read("/proc/self/status").expect("read");
    assert_eq!(account.read().expect("counted").read, before.read);
}

#[test]
fn the_advice_depends_on_why_a_count_cannot_be_opened() {
    assert!(absence_advice(std::io::ErrorKind::PermissionDenied).contains("chmod +r"));
    assert!(absence_advice(std::io::ErrorKind::NotFound).contains("mount /proc"));
}

#[test]
fn a_process_without_a_tracer_has_none() {
    assert_eq!(
        (tracer("TracerPid:\t0\n"), tracer("TracerPid:\t4711\n"), tracer("")),
        (None, Some(4711), None)
    );
}
