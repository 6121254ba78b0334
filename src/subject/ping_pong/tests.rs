use super::*;
use crate::machine::cpu;
use crate::subject::{Cpus, Scale};
use std::time::{Duration, Instant};

fn place(scratch: &Path) -> Place {
    Place { scratch: scratch.to_path_buf(), scale: Scale::Smoke, cpus: Cpus::expected() }
}

#[test]
fn a_partner_that_dies_or_hangs_ends_the_case_in_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let clock = Clock::start_up();
    let mut fates = Vec::new();
    for dies in [true, false] {
        let step = move || {
            if dies {
                let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_secs(60));
            0
        };
        let at = (Same.cpu(&place).unwrap(), Class::Ordinary);
        let partners = vec![Partner::start(Process, at, step, || ()).unwrap()];
        let lines = Arc::new(Bytes::pipes(directory.path()).unwrap());
        let alarm = Alarm::new().unwrap();
        let begun = Instant::now();
        let error = PingPong { name: "pipe", partners, lines, alarm }.run(10, &clock).unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(15));
        fates.push(error.to_string());
    }
    assert_eq!(fates[0], "pipe: the partner was killed by SIGKILL");
    assert!(fates[1].starts_with("pipe: the partner has not answered for 2 s"), "{fates:?}");
}

#[test]
fn every_case_goes_to_and_fro() {
    let directory = tempfile::tempdir().unwrap();
    let mut place = place(directory.path());
    let clock = Clock::start_up();
    let here = place.cpus.here.unwrap();
    for case in cases() {
        if let Some(sentence) = case.needs.iter().find_map(|need| need.ask(&place).err()) {
            println!("skipped {}: {sentence}", case.name);
            continue;
        }
        let ticks = cpu::while_on(here, || (case.set_up)(&place)?.run(20, &clock)).unwrap();
        assert!(ticks.unwrap_or_else(|e| panic!("{}: {e}", case.name)).0 > 0, "{}", case.name);
    }
    place.cpus.others.clear();
    let skipped = |case: &&Case| case.needs.iter().any(|need| need.ask(&place).is_err());
    let cross = cases().iter().filter(|case| case.name.contains("cross-cpu")).count();
    assert_eq!(cases().iter().filter(skipped).count(), cross, "on one CPU");
}

#[test]
fn an_end_that_did_not_leave_the_cpu_is_caught() {
    let mut delta = Delta::default();
    delta.counted.voluntary_switches = 100;
    let company =
        crate::instrument::Attendance { fewest_switches: 3, fewest_voluntary: 3, ..Default::default() };
    delta.company = Some(company);
    for claim in [both_left, both_slept] {
        assert!(claim(&delta, 100).unwrap_err().contains("partner 0.03 times"));
    }
    delta.company =
        Some(crate::instrument::Attendance { fewest_switches: 100, fewest_voluntary: 100, ..company });
    assert!(both_left(&delta, 100).is_ok() && both_slept(&delta, 100).is_ok());
    assert!(both_left(&delta, 101).is_err());
}
