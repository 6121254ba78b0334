//! Processes that are stopped or frozen during a measurement: the number does not change, and the affected samples are
//! marked.

use crate::place::{Place, Running, alone};
use crate::process;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::time::Duration;
use syscost_platform::testing::print_skipped;

/// Starts a run of one computing case that lasts long enough to be stopped.
fn begun(place: &Place) -> Running<'_> {
    let words = ["known_work/multiply", "--exact", "--scale", "full", "--time", "1"];
    let mut command = place.run(&words);
    command.env_remove("SYSCOST_SCALE");
    place.begin(command)
}

/// The duration of a stop: many times that of a batch.
const STOP: Duration = Duration::from_millis(150);

/// Stops the process that `which` returns, again and again, until the run has ended.
fn stop_repeatedly(running: &mut Running<'_>, which: impl Fn() -> Option<i32>) {
    let mut random = syscost_statistic::Random::new(3);
    while running.child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(100 + random.number_below(300) as u64));
        let Some(pid) = which().map(Pid::from_raw) else { continue };
        // The process may have ended in between.
        if kill(pid, Signal::SIGSTOP).is_ok() {
            std::thread::sleep(STOP);
            let _ = kill(pid, Signal::SIGCONT);
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Nanoseconds of each sample's iterations, and whether it is marked as held up.
fn samples(record: &Value) -> Vec<(f64, bool)> {
    let group = &record["groups"][0];
    let (hz, measured) = (group["clock"]["hz"].as_f64().unwrap(), &group["cases"][0]["outcome"]["measured"]);
    let (counted, marks) = (list(&measured["counted"]), list(&measured["contamination"]["held_up"]));
    let waited = list(&measured["contamination"]["waited_ns"]);
    let each = counted.iter().zip(waited).zip(marks);
    each.map(|((ticks, waited), mark)| {
        let ns = ticks.as_f64().unwrap() / hz * 1e9 - waited.as_f64().unwrap();
        (ns, mark.as_bool().unwrap())
    })
    .collect()
}

#[test]
fn a_batch_in_which_the_process_was_stopped_is_marked() {
    let _alone = alone();
    let place = Place::new();
    let mut running = begun(&place);
    stop_repeatedly(&mut running, || process::measuring(&place, "known_work").into_iter().min());
    let ended = running.end();
    assert!(!ended.output.contains("FAILED"), "an honest case was condemned: {ended:?}");
    place.is_tidy();
    let samples = samples(&place.record());
    // Less the time of waiting for the CPU, only a stop makes a sample this long, and hardly ever a hypervisor.
    let long = STOP.as_nanos() as f64 * 0.9;
    let held_up: Vec<_> = samples.iter().filter(|(ns, _)| *ns > long).collect();
    if held_up.is_empty() {
        print_skipped("no batch that counts was stopped");
        return;
    }
    assert!(held_up.iter().any(|(_, marked)| *marked), "{samples:?}");
}

#[test]
fn a_driver_that_is_stopped_loses_nothing() {
    let _alone = alone();
    let place = Place::new();
    let mut running = begun(&place);
    let driver = running.pid();
    stop_repeatedly(&mut running, || Some(driver));
    let ended = running.end();
    ended.says(0, &["1 measured, 0 skipped, 0 failed"]);
    place.is_tidy();
}
