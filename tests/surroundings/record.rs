//! `syscost record`, and its end when it is interrupted or killed.

use crate::place::{Place, alone, files, until};
use crate::process;
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use syscost_analysis::record::bundle::{Bundle, read};
use syscost_statistic::Random;

const ONE_CASE: [&str; 5] = ["record", "known_work/add", "--exact", "--scale", "smoke"];

fn record(place: &Place, words: &[&str]) -> Command {
    place.syscost(&[&ONE_CASE[..], words].concat())
}

fn records(place: &Place) -> Vec<PathBuf> {
    files(&place.home().join("syscost/records"), ".syscost")
}

fn only_record(place: &Place) -> Bundle {
    let [file] = records(place).try_into().unwrap();
    read(&file).unwrap()
}

/// Waits until the first process has finished, which is when the second one measures.
fn until_one_has_finished(place: &Place) {
    let first = process::one_measuring(place, "known_work");
    until("the first process never ends", || process::one_measuring(place, "known_work") != first);
}

#[test]
fn every_process_is_another_and_all_are_of_one_session() {
    let place = Place::new();
    let Some(ended) = place.at_rest(|| {
        let _ = std::fs::remove_dir_all(place.home());
        record(&place, &["--processes", "3", "--name", "main"])
    }) else {
        return;
    };
    ended.says(0, &["main.syscost\t1\t3\t0\t0\t"]);
    let bundle = only_record(&place);
    assert_eq!((bundle.head.name.as_str(), bundle.records.len()), ("main", 3));
    assert!(bundle.head.runs.iter().all(|run| run.session == bundle.head.runs[0].session));
    assert_eq!(bundle.head.series[0].values.len(), 3);
    assert!(files(&place.home(), ".json").is_empty(), "neither Criterion's files nor runs");
    place.is_tidy();
}

#[test]
fn an_invalid_record_command_is_refused_before_measuring() {
    let place = Place::new();
    place.end(place.syscost(&["record", "getpdi"])).refuses(&["no case matches", "syscall/getpid"]);
    place.end(record(&place, &["--processes", "0"])).refuses(&["--processes", "1..=100"]);
    place.end(record(&place, &["--processes", "101"])).refuses(&["--processes"]);
    place.end(record(&place, &["--name", "../up"])).refuses(&["cannot name a record"]);
    place.end(record(&place, &["--measure", "miles"])).refuses(&["no event miles"]);
    assert!(!place.home().exists());
    std::fs::write(place.path().join("there.syscost"), "mine").unwrap();
    place.end(record(&place, &["-o", "there.syscost"])).refuses(&["there.syscost", "never replaces another"]);
    assert_eq!(std::fs::read(place.path().join("there.syscost")).unwrap(), b"mine");
}

#[test]
fn an_interrupted_record_keeps_the_processes_that_were_finished() {
    let _alone = alone();
    for of_a_terminal in [false, true] {
        let place = Place::new();
        let running = place.begin(record(&place, &["--processes", "100", "--name", "cut"]));
        until_one_has_finished(&place);
        let send = if of_a_terminal { process::send_to_group } else { process::send };
        send(running.pid(), Signal::SIGINT);
        running
            .end()
            .says(130, &["interrupted by SIGINT", "of 100 processes had finished, and are recorded"]);
        let bundle = only_record(&place);
        assert!((1..100).contains(&bundle.records.len()), "{}", bundle.records.len());
        assert!(bundle.records.iter().all(|record| record.cases().count() == 1), "none is half");
        place.is_tidy();
    }
}

#[test]
fn where_no_process_had_finished_there_is_no_record() {
    let _alone = alone();
    let place = Place::new();
    let mut command = place.syscost(&["record", "call", "--scale", "default", "--name", "cut"]);
    command.env_remove("SYSCOST_SCALE");
    let running = place.begin(command);
    process::one_measuring(&place, "call");
    process::send(running.pid(), Signal::SIGTERM);
    running.end().says(143, &["no process had finished, and nothing is recorded"]);
    assert!(records(&place).is_empty());
    place.is_tidy();
}

#[test]
fn a_record_that_is_killed_at_any_moment_leaves_nothing_half() {
    let _alone = alone();
    let place = Place::new();
    let mut random = Random::new(10);
    for moment in 0..10 {
        let running = place.begin(record(&place, &["--processes", "2", "--name", &format!("kill-{moment}")]));
        std::thread::sleep(Duration::from_millis(random.number_below(2_000) as u64));
        running.kill();
        assert!(process::all_end(&place), "its child lives on");
        records(&place).iter().for_each(|file| drop(read(file).unwrap()));
    }
    // The leftover of a kill during a write, which is too short to be hit by a test.
    let directory = place.home().join("syscost/records");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(".syscost-4194305-half"), "half").unwrap();
    let before = records(&place).len();
    place.begin(record(&place, &["--processes", "1", "--name", "last"])).end();
    assert_eq!(records(&place).len(), before + 1);
    place.is_tidy();
}

#[test]
fn a_record_that_cannot_be_written_to_its_place_is_written_elsewhere() {
    let _alone = alone();
    let place = Place::new();
    let running = place.begin(record(&place, &["--processes", "2", "-o", "out/x.syscost"]));
    process::one_measuring(&place, "known_work");
    let out = place.path().join("out");
    std::fs::remove_dir_all(&out).unwrap();
    std::fs::write(&out, "in the way").unwrap();
    let ended = running.end();
    ended.says(1, &["out: creating the directory failed", "syscost/records/"]);
    assert_eq!(only_record(&place).records.len(), 2);
    place.is_tidy();
}

#[test]
fn a_record_that_cannot_be_written_at_all_leaves_no_part() {
    let place = Place::new();
    let limited = ["sh", "-c", "ulimit -f 0 && exec \"$@\"", "sh"];
    let mut command = place.program(limited[0]);
    command.args(&limited[1..]).arg(crate::place::SYSCOST).args(ONE_CASE).args(["--processes", "1"]);
    let ended = place.end(command);
    // The limit also holds for the files to which the streams of this test lead.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(records(&place).is_empty());
    place.is_tidy();
}
