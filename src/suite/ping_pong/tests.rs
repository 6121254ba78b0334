use super::*;
use crate::case::{Cpus, Scale};
use crate::platform::cpu;
use std::path::Path;

fn place(scratch: &Path) -> Place {
    Place { scratch: scratch.to_path_buf(), scale: Scale::Smoke, cpus: Cpus::expected() }
}

#[test]
fn every_case_makes_round_trips() {
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
