//! The fluid and what it covers: nothing of them is left behind, however the program ends.

use crate::place::{PATIENCE, Place, alone};
use crate::process;
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Waits until so many processes of the place are there: the program, the fluid, what is covered.
fn until_there_are(place: &Place, count: usize) -> Vec<i32> {
    let begun = Instant::now();
    loop {
        let all = process::of(place);
        if all.len() >= count {
            return all;
        }
        assert!(begun.elapsed() < PATIENCE, "there are only {all:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where a process may run and how willingly it gives way.
fn standing(pid: u32) -> (String, String) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let allowed = status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap().to_owned();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let nice = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().to_owned();
    (allowed, nice)
}

#[test]
fn a_killed_program_takes_the_fluid_and_the_command_with_it() {
    let _alone = alone();
    let place = Place::new();
    let mut running = place.begin(place.syscost(&["displace", "--", "sleep", "60"]));
    until_there_are(&place, 3);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert!(process::all_end(&place, Duration::from_secs(5)), "{:?} live on", process::of(&place));
}

#[test]
fn an_interrupted_program_ends_the_command_and_answers_as_one_that_was() {
    let _alone = alone();
    let place = Place::new();
    let running = place.begin(place.syscost(&["displace", "--", "sleep", "60"]));
    until_there_are(&place, 3);
    process::send(running.pid(), Signal::SIGINT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(process::all_end(&place, Duration::from_secs(5)), "{:?} live on", process::of(&place));
}

#[test]
fn a_service_that_was_watched_is_as_before() {
    let _alone = alone();
    let place = Place::new();
    let mut service = Command::new("sleep").arg("60").spawn().unwrap();
    let before = standing(service.id());
    let pid = service.id().to_string();
    let running = place.begin(place.syscost(&["displace", "--seconds", "60", "--pid", &pid]));
    until_there_are(&place, 2);
    std::thread::sleep(Duration::from_millis(200));
    process::send(running.pid(), Signal::SIGINT);
    running.end();
    let after = standing(service.id());
    service.kill().unwrap();
    service.wait().unwrap();
    assert_eq!(before, after);
    assert!(process::all_end(&place, Duration::from_secs(5)), "{:?} live on", process::of(&place));
}

#[test]
fn a_killed_run_takes_its_fluid_with_it() {
    let _alone = alone();
    let place = Place::new();
    let mut running = place.begin(place.run(&["displacement/compute", "--scale", "full"]));
    process::one_measuring(&place, "displacement");
    until_there_are(&place, 3);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert!(process::all_end(&place, Duration::from_secs(5)), "{:?} live on", process::of(&place));
}

#[test]
fn what_a_command_answers_is_handed_on() {
    let place = Place::new();
    let ended = place.end(place.syscost(&["displace", "--", "sh", "-c", "exit 7"]));
    assert_eq!(ended.code, Some(7), "{ended:?}");
    place.end(place.syscost(&["displace", "--", "/there/is/no/program"])).refuses(&["/there/is/no/program"]);
}

#[test]
fn any_case_can_be_measured_so_and_lies_apart_from_those_that_were_timed() {
    let place = Place::new();
    let words = ["syscall/getppid", "--exact", "--method", "displacement"];
    let Some(_) = place.succeeds(|| place.run(&words)) else { return };
    let apart = place.path().join("criterion-displaced-ns/syscost/runs");
    assert_eq!(std::fs::read_dir(&apart).unwrap().count(), 1, "{}", apart.display());
    assert!(place.path().join("criterion-displaced-ns/syscall/getppid/new/estimates.json").is_file());
}

/// The masks of receive steering of this namespace, and its devices.
fn steering() -> Vec<(String, String)> {
    let devices = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    let mask = |name: String| {
        let path = format!("/sys/class/net/{name}/queues/rx-0/rps_cpus");
        (name, std::fs::read_to_string(path).unwrap_or_default())
    };
    let mut all: Vec<_> = devices.map(|d| mask(d.file_name().to_string_lossy().into_owned())).collect();
    all.sort();
    all
}

#[test]
fn two_nodes_leave_neither_a_device_nor_steering_nor_a_process() {
    let _alone = alone();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/two-nodes");
    let before = steering();
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let place = Place::new();
        let mut command = place.program(script);
        command.args(["sh", "-c", "echo \"nodes $SYSCOST_NODES\"; exec sleep 60"]).stderr(Stdio::null());
        let mut running = place.begin(command);
        running.until_it_says("nodes ");
        process::send_to_group(running.pid(), signal);
        running.child.wait().unwrap();
        assert!(
            process::all_end(&place, Duration::from_secs(5)),
            "{signal}: {:?} live on",
            process::of(&place)
        );
        assert_eq!(steering(), before, "{signal}");
    }
}
