//! Kernels as guests, with an emulator that prints a console from a file: everything but the guest itself is tested.

use crate::is_running;
use crate::place::{Ended, Place, until, waited};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// Prints the file `IMAGE.console`. If there is a file `IMAGE.hangs`, it writes its process number to that file and keeps running.
const EMULATOR: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "QEMU emulator version 0 (a test's)"; exit; }
while [ $# -gt 0 ]; do
    case "$1" in -kernel) kernel=$2 ;; esac
    shift
done
cat "$kernel.console"
[ -e "$kernel.hangs" ] && { echo $$ >"$kernel.hangs"; exec sleep 1000; }
exit 0
"#;

/// The header of a program with one segment, which is not that of a dynamic linker.
fn static_program() -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01".to_vec();
    bytes.resize(120, 0);
    (bytes[18], bytes[32], bytes[54], bytes[56], bytes[64]) = (62, 64, 56, 1, 1);
    bytes
}

/// A test directory with a script as emulator.
pub struct Bench(pub Place);

impl Bench {
    pub fn new(emulator: &str) -> Self {
        let bench = Self(Place::new());
        bench.0.script("qemu-system-x86_64", emulator);
        std::fs::write(bench.path("program"), static_program()).unwrap();
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a kernel with this console, and returns the path of its image.
    fn kernel(&self, name: &str, console: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), "image").unwrap();
        std::fs::write(self.path(&format!("{name}.console")), console).unwrap();
        self.path(name).display().to_string()
    }

    pub fn syscost(&self, words: &[&str]) -> Command {
        let mut command = self.0.syscost(words);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.0.path().display()));
        command.env("SYSCOST_GUEST_BINARY", self.path("program"));
        command
    }

    fn ab(&self, a: &str, b: &str, words: &[&str]) -> Ended {
        self.0.end(self.syscost(&[&["kernels", "ab", a, b], words].concat()))
    }
}

/// The console of a guest that counts this number of instructions for `getppid`.
fn console(getppid: u64) -> String {
    let identity = r#"{"version":2,"release":"6.12.1","build":"\#1 SMP","command_line":"quiet","clocksource":"tsc",
        "page_size":4096,"mitigations":[["meltdown","Not affected"]],"tool":"0.1.0"}"#;
    let identity = identity.replace('\n', "").replace("\\#", "#");
    let answer = |id: &str, cost: u64| {
        let batches = [500 * cost + 40, 1000 * cost + 40];
        format!(
            "\r\n@syscost {{\"Answer\":{{\"id\":\"{id}\",\"outcome\":{{\"counted\":{{\"iterations\":500,\
             \"batches\":[{},{}]}}}}}}}}\r\n",
            batches[0], batches[1]
        )
    };
    format!(
        "[    0.000000] Linux version 6.12.1\r\n@syscost {{\"Hello\":{identity}}}\r\n{}[    6.1] a line of the kernel's\r\n{}\
         \r\n@syscost \"End\"\r\n",
        answer("call/u64/3", 9),
        answer("syscall/getppid", getppid)
    )
}

const TWO_CASES: &str = "^(call/u64/3|syscall/getppid)$";

#[test]
fn two_kernels_are_compared_by_instructions_and_judged_again_from_the_file() {
    let bench = Bench::new(EMULATOR);
    let [a, b] = [bench.kernel("a", console(329)), bench.kernel("b", console(328))];
    let ended = bench.ab(&a, &b, &[TWO_CASES]);
    ended.says(0, &["syscall/getppid\t329.000\t328.000\t-0.30 %\tfaster\t2", "kept in", "(canary)"]);
    let [file] = bench.0.files(".json").try_into().unwrap();
    let judged = bench.0.end(bench.syscost(&["kernels", "ab", "--judge", file.to_str().unwrap(), "--json"]));
    judged.says(0, &["\"clock\": \"icount\"", "\"unit\": \"instructions\"", "\"verdict\": \"faster\""]);
    bench.0.is_tidy();
}

#[test]
fn counts_are_never_compared_with_times() {
    let bench = Bench::new(EMULATOR);
    let a = bench.kernel("a", console(329));
    bench.ab(&a, &a, &[TWO_CASES]).says(0, &["same"]);
    let file = bench.0.files(".json").pop().unwrap().display().to_string();
    for words in [&["compare", &file, &file][..], &["report", &file], &["ab", "--judge", &file]] {
        let ended = bench.0.end(bench.syscost(words));
        assert!(ended.code != Some(0) && !ended.output.contains("329"), "{words:?}: {ended:?}");
    }
}

#[test]
fn a_gate_fails_for_a_slower_kernel_and_passes_for_a_faster_one() {
    let bench = Bench::new(EMULATOR);
    let [a, b] = [bench.kernel("a", console(329)), bench.kernel("b", console(400))];
    let gate = |words: &[&str]| bench.0.end(bench.syscost(&[&["kernels", "gate"], words].concat()));
    gate(&[&a, &b, TWO_CASES]).says(1, &["slower", "instructions"]);
    gate(&[&b, &a, TWO_CASES]).says(0, &["passed"]);
    assert_eq!(gate(&[&a]).code, Some(2));
}

#[test]
fn a_step_of_a_bisection_is_good_bad_or_skipped() {
    let bench = Bench::new(EMULATOR);
    let [a, b] = [bench.kernel("a", console(329)), bench.kernel("b", console(331))];
    let dead = bench.kernel("dead", "Kernel panic - not syncing: Fatal exception\r\n");
    let step = |kernel: &str| {
        let words = ["kernels", "bisect", "--good", &a, "--step", kernel, "syscall/getppid", "--exact"];
        bench.0.end(bench.syscost(&words))
    };
    step(&a).says(0, &["329.000 instructions", "same"]);
    step(&b).says(1, &["+2.000 (+0.61 %)", "slower"]);
    step(&dead).says(125, &["Fatal exception"]);
    step("/no/such/kernel").says(125, &["looking for"]);
}

#[test]
fn a_kernel_that_panics_is_reported_and_the_other_is_counted() {
    let bench = Bench::new(EMULATOR);
    let a = bench.kernel("a", console(329));
    let dead =
        bench.kernel("dead", "[ 1.0] Initramfs unpacking failed\u{1b}[2J\r\nKernel panic - not syncing\r\n");
    let ended = bench.ab(&a, &dead, &[TWO_CASES]);
    ended.says(1, &["syscall/getppid\t329.000\t–", "did not reach its end", "more memory", "Kernel panic"]);
    assert!(!ended.output.contains('\u{1b}') && !ended.error.contains('\u{1b}'), "{ended:?}");
    bench.0.is_tidy();
}

#[test]
fn a_kernel_that_hangs_or_prints_noise_is_reported() {
    let bench = Bench::new(EMULATOR);
    let a = bench.kernel("a", console(329));
    let silent = bench.kernel("silent", "");
    std::fs::write(bench.path("silent.hangs"), "").unwrap();
    let ended = bench.ab(&a, &silent, &[TWO_CASES, "--patience", "1"]);
    ended.says(1, &["killed after 1 s"]);
    let babble: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let babbler = bench
        .kernel("babbler", [babble.as_slice(), b"\n@syscost {\"Answer\":7}\n@syscost \"End\"\n"].concat());
    bench.ab(&a, &babbler, &[TWO_CASES]).says(1, &["kept in"]);
    bench.0.is_tidy();
}

#[test]
fn missing_programs_and_cases_are_reported() {
    let bench = Bench::new(EMULATOR);
    let a = bench.kernel("a", console(329));
    let mut without = bench.syscost(&["kernels", "ab", &a, &a]);
    without.env("PATH", bench.0.temporary());
    bench.0.end(without).says(1, &["not on PATH: install it"]);
    std::fs::write(bench.path("program"), "#!/bin/sh\n").unwrap();
    bench.ab(&a, &a, &[]).refuses(&["scripts/guest"]);
    bench.ab("/no/such/kernel", &a, &["no-such-case"]).refuses(&["--all"]);
}

#[test]
fn a_guest_does_not_outlive_a_comparison_that_was_killed() {
    let bench = Bench::new(EMULATOR);
    let a = bench.kernel("a", "");
    let hangs = bench.path("a.hangs");
    std::fs::write(&hangs, "").unwrap();
    let running = bench.0.begin(bench.syscost(&["kernels", "ab", &a, &a, TWO_CASES]));
    let guest = waited("no guest", || std::fs::read_to_string(&hangs).ok()?.trim().parse::<i32>().ok());
    running.kill();
    until("the guest lives on", || !is_running(guest));
}

/// The kernel and the static program that the environment names, or a sentence that it names none.
fn real_kernel() -> Option<(String, OsString)> {
    let named = ["SYSCOST_GUEST_KERNEL", "SYSCOST_GUEST_BINARY"].map(std::env::var_os);
    let [Some(kernel), Some(program)] = named else {
        print_skipped("SYSCOST_GUEST_KERNEL and SYSCOST_GUEST_BINARY name no kernel and no static program");
        return None;
    };
    Some((Path::new(&kernel).display().to_string(), program))
}

#[test]
fn a_real_kernel_counts_alike_in_every_boot() {
    let Some((kernel, program)) = real_kernel() else { return };
    let place = Place::new();
    let mut command = place.syscost(&["kernels", "ab", &kernel, &kernel, "^syscall/getppid$"]);
    command.env("SYSCOST_GUEST_BINARY", program);
    place.end(command).says(0, &["syscall/getppid\t", "\tsame\t2"]);
    place.is_tidy();
}

#[test]
fn functions_of_a_real_kernel_sum_up_to_the_change_and_repeat_exactly() {
    let Some((kernel, program)) = real_kernel() else { return };
    let place = Place::new();
    let changed = format!("{kernel}@audit=1");
    let explain = || {
        let words = ["kernels", "why", &kernel, &changed, "syscall/getppid", "--exact", "--format", "csv"];
        let mut command = place.syscost(&words);
        command.env("SYSCOST_GUEST_BINARY", &program);
        place.end(command)
    };
    let ended = explain();
    ended.says(0, &["syscall/getppid,__audit_syscall_entry,0,", "only in B"]);
    assert_eq!(ended.output, explain().output);
    let sum = |column: usize| {
        let rows = ended.output.lines().filter(|line| line.starts_with("syscall/getppid,"));
        rows.map(|line| line.split(',').nth(column).unwrap().parse::<f64>().unwrap()).sum::<f64>()
    };
    assert_eq!(sum(3) - sum(2), sum(4));
    place.is_tidy();
}

#[test]
fn foreign_kernels_are_refused_by_turns_and_against_other_architectures() {
    let bench = Bench::new(EMULATOR);
    let [x86, arm] = [bench.kernel("a", console(329)), bench.kernel("b", console(329))];
    let mut image = vec![0; 64];
    image[56..60].copy_from_slice(b"ARMd");
    std::fs::write(&arm, image).unwrap();
    bench.ab(&x86, &arm, &[]).refuses(&["x86_64", "aarch64", "name two of one"]);
    bench.ab(&arm, &arm, &["--clock", "tcg"]).refuses(&["aarch64", "icount only"]);
}
