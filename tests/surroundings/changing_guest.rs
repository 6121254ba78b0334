//! A whole machine that changes in the middle of a run, in a guest: its clock is stepped, its CPUs go offline and come back.
//! And one whose processor lacks an instruction.
//!
//! The times of an emulator mean nothing. The tests ask that a changed machine yields a number or a sentence, never a wrong
//! number, a panic or a failed case. `scripts/changing-machine` builds the files of the guest and runs this test.

use crate::place::{Place, all_parse, files};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use syscost_platform::testing::print_skipped;

/// Cases that an emulated machine at rest measures.
const CASES: &str = "^(ping_pong/pipe-processes/(same|cross)-cpu|cached_read/pread(-by-file/128|/4)KiB)$";

/// What the guest does, with the cases in `$CASES`: each trial keeps what was printed, the exit code and the home in a
/// directory of its own. It is called with three CPUs: 2 is measured on, the partner and the driver have the others.
const TRIALS: &str = r#"
trial() { # NAME: whatever else runs meanwhile ends when there is a file /stop
    mkdir -p /out/$1; rm -f /stop; name=$1; shift
    "$@" --home /out/$name/home "$CASES" >/out/$name/said 2>&1; echo $? >/out/$name/code
    : >/stop; wait
}
stepped() { until [ -e /stop ]; do date -s @$(($(date +%s) + 3600)); sleep 0.7; date -s @$(($(date +%s) - 3600)); sleep 0.7; done; }
toggled() { until [ -e /stop ]; do echo 0 >$1; sleep 0.9; echo 1 >$1; sleep 1.3; done; }
cpu() { echo /sys/devices/system/cpu/cpu$1/online; }


trial calm syscost run --scale smoke
rm /stop; stepped >/dev/null 2>&1 &
trial clock syscost run --time 10
rm /stop; toggled $(cpu 2) &
trial measuring syscost run --time 15
rm /stop; toggled $(cpu 1) &
trial driving syscost run --time 15
(sleep 1; echo 0 >$(cpu 2); echo 0 >$(cpu 1)) &
trial alone syscost run --scale smoke
echo 1 >$(cpu 1); echo 1 >$(cpu 2)

# A day back, between two runs in one home.
date -s @$(($(date +%s) - 86400))
mkdir -p /out/back; cp -r /out/calm/home /out/back/home
CRITERION_HOME=/out/back/home syscost run --scale smoke cached_read/pread/4KiB --exact >/out/back/said 2>&1; echo $? >/out/back/code
syscost runs --home /out/back/home >/out/back/runs 2>&1
syscost report --home /out/back/home >/out/back/report 2>&1
{ ls -d /tmp/* /tmp/.s*; ps | grep syscost | grep -v grep; dmesg | grep segfault; } >/out/left 2>/dev/null
"#;

/// What the guest does on a processor without RDTSCP.
const OLD_PROCESSOR: &str = r#"
mkdir -p /out/old; grep -c rdtscp /proc/cpuinfo >/out/old/has
syscost run --scale smoke --home /out/old/home '^(known_work/add|syscall/getppid|clock_read/)' >/out/old/said 2>&1; echo $? >/out/old/code
"#;

/// The first process of the guest. It returns its results as an archive on the second serial line.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin; export PATH=/bin HOME=/home
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
ip link set lo up
sh /trials </dev/null; stty -F /dev/ttyS1 raw; tar c -C /out . >/dev/ttyS1; poweroff -f
";

/// Makes the initial file system from files of this directory: the programs, `init` and `trials`.
const PACK: &str = "set -e; mkdir -p root/bin root/proc root/sys root/dev root/tmp root/home root/out
    cp \"$1\" root/bin/busybox; cp \"$2\" root/bin/syscost; mv init trials root; chmod +x root/init root/bin/*
    (cd root; find . | cpio -o -H newc --quiet) | gzip -1 >initramfs; rm -r root";

/// The command that boots a guest, with a time limit for one that hangs. A guest takes some five minutes.
const BOOT: &str = "timeout -k 5 1500 qemu-system-x86_64 -accel tcg,thread=multi -cpu \"$2\" -smp 3 -m 1024 -nodefaults \
    -no-user-config -display none -no-reboot -serial file:console -serial file:answer -kernel \"$1\" -initrd initramfs \
    -append 'console=ttyS0 panic=-1 quiet rdinit=/init'";

/// A guest; dropping it ends it.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        crate::process::kill_group(i32::try_from(self.0.id()).unwrap());
        let _ = self.0.wait();
    }
}

/// The kernel's image, the static program and busybox; `None` with a sentence where something is missing.
fn needed() -> Option<[PathBuf; 3]> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_file());
    let (Some(kernel), Some(program)) = (named("SYSCOST_GUEST_KERNEL"), named("SYSCOST_GUEST_BINARY")) else {
        print_skipped("SYSCOST_GUEST_KERNEL and SYSCOST_GUEST_BINARY name no kernel and no static program");
        return None;
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |name: &str| std::env::split_paths(&path).map(|at| at.join(name)).find(|at| at.is_file());
    for name in ["qemu-system-x86_64", "busybox", "cpio", "gzip", "tar", "timeout"] {
        if found(name).is_none() {
            print_skipped(&format!(
                "{name} is not on PATH: a guest needs qemu-system-x86, busybox-static and cpio"
            ));
            return None;
        }
    }
    Some([kernel, program, found("busybox")?])
}

fn assert_succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Boots a guest with this processor. Returns the directory with the results of its trials.
fn boot_guest(
    place: &Place,
    [kernel, program, busybox]: &[PathBuf; 3],
    processor: &str,
    trials: &str,
) -> PathBuf {
    use std::os::unix::process::CommandExt;
    let here = place.path();
    std::fs::write(here.join("init"), INIT).unwrap();
    std::fs::write(here.join("trials"), trials).unwrap();
    assert_succeeds(place.program("sh").args(["-c", PACK, "sh"]).arg(busybox).arg(program));
    let mut boot = place.program("sh");
    boot.args(["-c", BOOT, "sh"]).arg(kernel).arg(processor).process_group(0);
    let mut guest = Guest(boot.spawn().unwrap());
    guest.0.wait().unwrap();
    std::fs::create_dir(here.join("answers")).unwrap();
    let console = std::fs::read(here.join("console")).unwrap_or_default();
    let unpacked = place.program("tar").args(["x", "-C", "answers", "-f", "answer"]).output().unwrap();
    assert!(unpacked.status.success(), "{}", String::from_utf8_lossy(&console));
    here.join("answers")
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

/// The newest run of a trial.
fn record(trial: &Path) -> Value {
    let file = files(&trial.join("home/syscost/runs"), ".json").pop().expect("a run was stored");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// The cases of a run and how each ended.
fn outcomes(record: &Value) -> Vec<(String, Value)> {
    let groups = record["groups"].as_array().unwrap().iter();
    let cases = groups.flat_map(|group| group["cases"].as_array().unwrap());
    cases.map(|case| (case["id"].as_str().unwrap().to_owned(), case["outcome"].clone())).collect()
}

/// Whether the emulator's own unsteadiness failed a case, as it also does on a calm machine: by times that contradict in
/// every process, or by a witness that counts too many calls (`pread64 14 times in 10 iterations`), which is not
/// understood yet.
fn is_emulators(sentence: &str) -> bool {
    ["so it was in each of", "the kernel was not entered as claimed"].iter().any(|w| sentence.contains(w))
}

/// Asserts that no process panicked, that no case failed, and that every number has the magnitude of the calm machine's.
fn assert_honest(trial: &Path, calm: &Value) {
    let said = text(&trial.join("said"));
    assert!(!said.contains("panicked at") && !said.contains("unintelligibly"), "{said}");
    let code = text(&trial.join("code"));
    assert!(["0", "1"].contains(&code.trim()), "{code}: {said}");
    let size = |outcome: &Value| outcome["measured"]["median"]["estimate"].as_f64();
    let known = outcomes(calm);
    for (id, outcome) in outcomes(&record(trial)) {
        if let Some(sentence) = outcome["failed"].as_str() {
            assert!(is_emulators(sentence), "{id}: {sentence}\n{said}");
        }
        let usual = known.iter().find(|(other, _)| *other == id).and_then(|(_, outcome)| size(outcome));
        if let (Some(usual), Some(now)) = (usual, size(&outcome)) {
            assert!(
                (usual / 200.0..usual * 200.0).contains(&now),
                "{id}: {now} ns, and calm {usual}\n{said}"
            );
        }
    }
    all_parse(&trial.join("home"));
}

/// The clock went a day back. Asserts that no run is replaced, and that a command that takes the newest run warns of this.
fn assert_clock_change_reported(back: &Path) {
    let said = text(&back.join("said"));
    assert_eq!(text(&back.join("code")).trim(), "0", "{said}");
    assert_eq!(text(&back.join("runs")).lines().count(), 2, "{}", text(&back.join("runs")));
    for said in [said, text(&back.join("report"))] {
        assert!(said.contains("the clock was set back"), "{said}");
    }
}

#[test]
fn a_machine_that_changes_in_the_middle_yields_a_number_or_a_sentence() {
    let Some(needed) = needed() else { return };
    let place = Place::new();
    let answers = boot_guest(&place, &needed, "max", &format!("CASES='{CASES}'\n{TRIALS}"));
    let calm = record(&answers.join("calm"));
    for trial in ["calm", "clock", "measuring", "driving", "alone"] {
        assert_honest(&answers.join(trial), &calm);
    }
    let measuring = text(&answers.join("measuring/said")) + &record(&answers.join("measuring")).to_string();
    assert!(measuring.contains("offline"), "{measuring}");
    assert_clock_change_reported(&answers.join("back"));
    assert_eq!(text(&answers.join("left")), "", "left in the guest");
    assert!(!text(&place.path().join("console")).contains("Kernel panic"));
}

#[test]
fn a_processor_without_rdtscp_is_measured_by_the_kernels_clock() {
    let Some(needed) = needed() else { return };
    let place = Place::new();
    let old = boot_guest(&place, &needed, "qemu64", OLD_PROCESSOR).join("old");
    let said = text(&old.join("said"));
    assert_eq!([text(&old.join("has")).trim(), text(&old.join("code")).trim()], ["0", "0"], "{said}");
    let outcomes = outcomes(&record(&old));
    let is = |id: &str, kind: &str| outcomes.iter().any(|(known, how)| known == id && !how[kind].is_null());
    // The emulator translates code at its first call. A batch whose length was chosen by that slow call is disturbed.
    let is_short = is("known_work/add", "measured") || is("known_work/add", "disturbed");
    assert!(is_short && is("syscall/getppid", "measured"), "{outcomes:?}\n{said}");
    assert!(
        is("clock_read/rdtscp-lfence", "skipped") && is("clock_read/instant", "measured"),
        "{outcomes:?}\n{said}"
    );
    assert!(!outcomes.iter().any(|(_, how)| !how["failed"].is_null()), "{outcomes:?}\n{said}");
}
