//! A measuring process that gets less than a CPU, is frozen with its control group, or is moved to another CPU. The number that is
//! kept does not change, or none is kept and a sentence says why.

use crate::group::Group;
use crate::place::{Ended, Place, Running, alone};
use crate::process;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::time::Duration;
use syscost_platform::testing::print_skipped;

const WORDS: [&str; 6] = ["known_work/multiply", "--exact", "--scale", "full", "--time", "1"];
/// The largest ratio of two figures of a chain of multiplications on a machine whose core has several frequencies.
const APART: f64 = 1.3;

/// Begins a run of the case, started by `starter`.
fn begin_case<'a>(place: &'a Place, starter: &[&str]) -> Running<'a> {
    let mut command = if starter.is_empty() { place.run(&WORDS) } else { place.run_by(starter, &WORDS) };
    command.env_remove("SYSCOST_SCALE");
    place.begin(command)
}

/// The figure that was kept, ns; `None` if the case was disturbed.
fn figure(place: &Place) -> Option<f64> {
    let outcome = &place.record()["groups"][0]["cases"][0]["outcome"]["measured"];
    outcome["quiet"]["figure"]["estimate"].as_f64().or_else(|| outcome["median"]["estimate"].as_f64())
}

/// The figure of an undisturbed process.
fn undisturbed() -> Option<f64> {
    let place = Place::new();
    begin_case(&place, &[]).end();
    figure(&place)
}

/// Asserts that no honest case failed, and that a kept figure is the right one.
fn assert_figure_held(ended: &Ended, place: &Place) {
    assert!(!ended.output.contains("FAILED"), "an honest case was condemned: {ended:?}");
    place.is_tidy();
    let Some(squeezed) = figure(place) else {
        assert!(ended.code == Some(1) && ended.output.contains(", 1 disturbed, 0 failed"), "{ended:?}");
        return;
    };
    let Some(alone) = undisturbed() else {
        return print_skipped("this machine disturbs what nobody squeezes");
    };
    assert!((1.0 / APART..APART).contains(&(squeezed / alone)), "{squeezed} ns, and {alone} ns undisturbed");
}

#[test]
fn a_quota_of_a_fifth_moves_no_number() {
    let _alone = alone();
    let Some(group) = Group::of_cpu(20_000) else { return };
    let place = Place::new();
    let enter = group.enter();
    let ended = begin_case(&place, &enter.each_ref().map(String::as_str)).end();
    assert_figure_held(&ended, &place);
}

#[test]
fn a_group_that_is_frozen_again_and_again_moves_no_number() {
    let _alone = alone();
    let Some(group) = Group::to_freeze() else { return };
    let place = Place::new();
    let enter = group.enter();
    let mut running = begin_case(&place, &enter.each_ref().map(String::as_str));
    while running.child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(170));
        assert!(group.freeze(true), "it could be frozen before");
        std::thread::sleep(Duration::from_millis(110));
        assert!(group.freeze(false));
    }
    let ended = running.end();
    assert_figure_held(&ended, &place);
}

#[test]
fn an_affinity_that_is_changed_from_outside_moves_no_number() {
    let _alone = alone();
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect();
    if cpus.len() < 2 {
        return print_skipped("there is one CPU only");
    }
    let place = Place::new();
    let mut running = begin_case(&place, &[]);
    for turn in 0.. {
        if running.child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(130));
        let mut one = CpuSet::new();
        one.set(cpus[turn % 2]).unwrap();
        for pid in process::measuring(&place, "known_work") {
            // The process may have ended in between.
            let _ = sched_setaffinity(Pid::from_raw(pid), &one);
        }
    }
    let ended = running.end();
    assert_figure_held(&ended, &place);
}
