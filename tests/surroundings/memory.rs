//! Too little memory, or too few addresses. Cases that do not fit are skipped with a sentence, smaller ones are measured, no case
//! fails and no process is killed.

use crate::group::Group;
use crate::place::{Ended, Place, alone};
use crate::process;
use std::process::{Command, Stdio};
use syscost_platform::testing::print_skipped;

/// A case of each group that fits into every limit of these tests.
const SMALL: &str = "chase/random/16KiB|bandwidth/read/16KiB|mapping/brk/4KiB|page_fault/anonymous/4KiB";
/// Cases that want more memory than most of these limits give.
const HUNGRY: &str = "chase/random/256MiB|bandwidth/(read|triad|copy-all)/256MiB";
/// Options for few samples: the tests ask whether there is a number, not how large it is.
const BRIEFLY: [&str; 2] = ["--sample-size", "10"];

/// Runs the small cases and these at default scale. Smoke scale would take less memory whatever the limit.
fn measured(place: &Place, starter: &[&str], cases: &str) -> Option<Ended> {
    let asked = format!("^({SMALL}|{cases})$");
    let run = || -> Command {
        let mut command = place.run_by(starter, &[&[asked.as_str()], &BRIEFLY[..]].concat());
        command.env("SYSCOST_SCALE", "default");
        command
    };
    let ended = place.succeeds(run)?;
    ended.says(0, &[" 0 failed"]);
    for case in
        ["chase/random_16KiB", "bandwidth/read_16KiB", "mapping/brk_4KiB", "page_fault/anonymous_4KiB"]
    {
        let saved = place.home().join(case).join("base/estimates.json");
        assert!(saved.exists(), "{case} was not measured: {ended:?}");
    }
    Some(ended)
}

#[test]
fn a_limit_of_addresses_skips_what_does_not_fit() {
    for (kib, cases, skipped) in [
        // Half of these addresses hold the 256 MiB that one case reads.
        (
            1_000_000,
            "mapping/map/1GiB|bandwidth/read/256MiB|page_fault/major-random/first-touch",
            &["skipped mapping/map/1GiB: mmap of 1024 MiB", "6 measured, 1 skipped"][..],
        ),
        (
            450_000,
            &format!("{HUNGRY}|mapping/map/1GiB"),
            &[
                "chase/random/256MiB: ",
                "of bandwidth: ",
                "RLIMIT_AS has 439 in all",
                "half of them for everybody else",
            ],
        ),
    ] {
        let place = Place::new();
        let limited = format!("ulimit -v {kib} && exec \"$@\"");
        let Some(ended) = measured(&place, &["sh", "-c", &limited, "sh"], cases) else { return };
        ended.says(0, skipped);
        ended.says(0, &["RLIMIT_AS, `ulimit -v`"]);
        place.is_tidy();
    }
}

#[test]
fn a_small_control_group_skips_what_does_not_fit_and_kills_nobody() {
    for (mib, cases, skipped) in [
        (
            256,
            HUNGRY,
            &["chase/random/256MiB: ", "of bandwidth: ", "the control group", "has 256 in all"][..],
        ),
        (
            96,
            "mapping/first-touch/64MiB|page_fault/major-random/first-touch",
            &["skipped mapping/first-touch/64MiB", "raise its limit"],
        ),
    ] {
        let Some(group) = Group::of_memory(mib << 20) else { return };
        let place = Place::new();
        let enter = group.enter();
        let Some(ended) = measured(&place, &enter.each_ref().map(String::as_str), cases) else { return };
        ended.says(0, skipped);
        assert_eq!(group.killed(), 0, "{ended:?}");
        place.is_tidy();
    }
}

/// Pages of files that were read before are charged to the group, and freed when it needs more memory.
#[test]
fn a_file_that_was_just_read_takes_nothing_from_a_control_group() {
    let Some(group) = Group::of_memory(256 << 20) else { return };
    let place = Place::new();
    let on = nix::sys::statfs::statfs(place.path()).unwrap().filesystem_type();
    if on == nix::sys::statfs::TMPFS_MAGIC {
        print_skipped("the temporary directory is memory");
        return;
    }
    let read = "head -c 250000000 /dev/zero >file && sync file && cat file >/dev/null && exec \"$@\"";
    let enter = group.enter();
    let starter: Vec<&str> = enter.iter().map(String::as_str).chain(["sh", "-c", read, "sh"]).collect();
    let run = || {
        let mut command = place.run_by(&starter, &["^(mapping/first-touch/64MiB|bandwidth/read/16KiB)$"]);
        command.env("SYSCOST_SCALE", "default").args(BRIEFLY);
        command
    };
    let Some(ended) = place.succeeds(run) else { return };
    ended.says(0, &["2 measured, 0 skipped, 0 failed"]);
    assert_eq!(group.killed(), 0, "{ended:?}");
    std::fs::remove_file(place.path().join("file")).unwrap();
    place.is_tidy();
}

#[test]
fn huge_pages_that_do_not_come_are_skipped_and_the_rest_is_measured() {
    let place = Place::new();
    // Child processes inherit this setting.
    nix::sys::prctl::set_thp_disable(true).unwrap();
    let ended = place.succeeds(|| place.run(&["^page_fault/anonymous"]));
    nix::sys::prctl::set_thp_disable(false).unwrap();
    let Some(ended) = ended else { return };
    ended.says(0, &["skipped page_fault/anonymous/2MiB: ", "huge pages came as such", "2 measured"]);
    place.is_tidy();
}

#[test]
fn huge_pages_that_do_not_fit_are_skipped_and_the_rest_is_measured() {
    let Some(group) = Group::of_memory(12 << 20) else { return };
    let place = Place::new();
    let enter = group.enter();
    let run = || place.run_by(&enter.each_ref().map(String::as_str), &["^page_fault/anonymous"]);
    let Some(ended) = place.succeeds(run) else { return };
    ended.says(0, &["skipped page_fault/anonymous/2MiB: 18 MiB of memory are needed", "2 measured"]);
    assert_eq!(group.killed(), 0, "{ended:?}");
    place.is_tidy();
}

#[test]
fn a_process_that_is_killed_for_want_of_memory_is_told_apart_from_others() {
    let _alone = alone();
    let Some(group) = Group::of_memory(64 << 20) else { return };
    let place = Place::new();
    let enter = group.enter();
    let enter = enter.each_ref().map(String::as_str);
    let long = ["known_work/multiply", "--exact", "--scale", "full", "--time", "10"];
    let running = place.begin(place.run_by(&enter, &long));
    let measuring = process::one_measuring(&place, "known_work");
    // The kernel shall choose this one; who takes the memory comes next.
    std::fs::write(format!("/proc/{measuring}/oom_score_adj"), "1000").unwrap();
    let mut hog = Command::new(enter[0]);
    hog.args(&enter[1..]).args(["sh", "-c", "head -c 200000000 /dev/zero | tail"]);
    hog.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    if group.killed() == 0 {
        print_skipped("the kernel kills nobody in a group without memory, as where there is swap");
        return running.kill();
    }
    running.end().says(1, &["FAILED known_work/multiply: ", "when memory was short", "memory.max"]);
    place.is_tidy();
}
