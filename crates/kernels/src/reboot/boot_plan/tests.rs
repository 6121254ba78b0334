use super::*;
use crate::reboot::boot_loader::BootLoader;
use crate::reboot::boot_plan::LAYOUT;
use std::path::PathBuf;
use syscost_platform::error::Error;

/// A machine that boots its own kernel unless another is requested, and loses its power after a given number of steps.
struct Simulated {
    release: String,
    boots: u32,
    records: u32,
    /// Releases that fail to boot: the machine's own kernel boots in their place.
    broken: Vec<&'static str>,
    /// Steps until the power is lost.
    power: u32,
    kept: BootPlan,
}

const OWN: &str = "6.1-own";

impl Simulated {
    fn new(plan: &BootPlan) -> Self {
        let (release, kept) = (OWN.to_owned(), plan.clone());
        Self { release, boots: 0, records: 0, broken: Vec::new(), power: u32::MAX, kept }
    }

    fn boot(&mut self, release: &str) {
        let comes_up = !self.broken.contains(&release);
        self.release = if comes_up { release } else { OWN }.to_owned();
        self.boots += 1;
    }

    /// A step in which the power may be lost.
    fn step(&mut self) -> Result<()> {
        match self.power.checked_sub(1) {
            Some(left) => {
                self.power = left;
                Ok(())
            }
            None => Err(Error::Died("no power".into())),
        }
    }
}

impl Machine for Simulated {
    fn running_kernel(&self) -> Result<Running> {
        Ok(Running {
            release: self.release.clone(),
            command_line: "quiet".into(),
            boot: self.boots.to_string(),
        })
    }

    fn wait_until_settled(&mut self, _: &BootPlan) {}

    fn measure_process(&mut self, _: &BootPlan) -> Result<Option<String>> {
        self.step()?;
        self.records += 1;
        Ok(Some(format!("{} {}", self.release, self.records)))
    }

    fn save_plan(&mut self, plan: &BootPlan) -> Result<()> {
        self.step()?;
        self.kept = plan.clone();
        Ok(())
    }

    fn restart_into(&mut self, _: &BootPlan, kernel: &BootKernel) -> Result<()> {
        if kernel.release == "gone" {
            return Err(Error::Missing("no such image".into()));
        }
        self.boot(&kernel.release);
        Ok(())
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

fn plan(releases: &[&str], wanted: u32) -> BootPlan {
    let kernel = |release: &&str| BootKernel {
        name: (*release).into(),
        release: (*release).into(),
        image: PathBuf::new(),
        initramfs: None,
        words: String::new(),
        given_up: None,
    };
    BootPlan {
        plan: LAYOUT,
        name: "night".into(),
        loader: BootLoader::Kexec,
        kernels: releases.iter().map(kernel).collect(),
        wanted,
        processes: 2,
        record: Vec::new(),
        settle: 0,
        planned_in: Running { release: OWN.into(), command_line: "quiet".into(), boot: "0".into() },
        boots: Vec::new(),
        tries: 0,
    }
}

/// Continues the session from its saved plan until it is done, and returns the plan. After a power cut the machine boots its own
/// kernel.
fn run_until_done(machine: &mut Simulated) -> BootPlan {
    for _ in 0..200 {
        let mut plan = machine.kept.clone();
        match advance_session(&mut plan, machine) {
            Ok(Standing::Done) => return plan,
            Ok(_) => (),
            Err(_) => {
                machine.power = u32::MAX;
                machine.boot(OWN);
            }
        }
    }
    panic!("the session does not end: {:?}", machine.kept);
}

fn kernels(plan: &BootPlan) -> Vec<usize> {
    plan.boots.iter().filter(|boot| plan.is_whole(boot)).map(|boot| boot.kernel).collect()
}

#[test]
fn kernels_are_booted_in_turn_and_the_planning_boot_is_never_measured() {
    let plan = run_until_done(&mut Simulated::new(&plan(&[OWN, "6.12"], 3)));
    assert_eq!(kernels(&plan), [0, 1, 1, 0, 0, 1]);
    assert!(plan.boots.iter().all(|boot| boot.boot != "0" && boot.records.len() == 2));
}

#[test]
fn every_record_belongs_to_the_kernel_of_its_boot() {
    let plan = run_until_done(&mut Simulated::new(&plan(&["6.1", "6.12", "6.13"], 2)));
    assert_eq!(kernels(&plan), [0, 1, 2, 2, 1, 0]);
    for boot in &plan.boots {
        let release = &plan.kernels[boot.kernel].release;
        assert!(boot.records.iter().all(|record| record.starts_with(&format!("{release} "))), "{boot:?}");
    }
}

#[test]
fn a_power_cut_at_any_step_costs_one_process_at_most() {
    let whole = 3 * 2 * 2;
    for power in 0..60 {
        let mut machine = Simulated::new(&plan(&[OWN, "6.12"], 3));
        machine.power = power;
        let plan = run_until_done(&mut machine);
        let of_each = [0, 1].map(|kernel| plan.count_whole_boots(kernel));
        assert_eq!(of_each, [3, 3], "power lost at step {power}");
        let kept: usize = plan.boots.iter().map(|boot| boot.records.len()).sum();
        assert!(machine.records as usize - kept <= 1 && kept >= whole, "step {power}: {kept}");
    }
}

#[test]
fn a_kernel_that_never_boots_is_given_up_and_the_others_continue() {
    let mut machine = Simulated::new(&plan(&["6.12", "broken"], 2));
    machine.broken = vec!["broken"];
    let plan = run_until_done(&mut machine);
    assert_eq!([plan.count_whole_boots(0), plan.count_whole_boots(1)], [2, 0]);
    let why = plan.kernels[1].given_up.as_deref().unwrap();
    assert!(why.contains("3 times") && why.contains(OWN), "{why}");
}

#[test]
fn a_kernel_that_cannot_be_loaded_is_given_up_at_once() {
    let plan = run_until_done(&mut Simulated::new(&plan(&["gone", "6.12"], 2)));
    assert_eq!([plan.count_whole_boots(0), plan.count_whole_boots(1)], [0, 2]);
    assert_eq!(plan.kernels[0].given_up.as_deref(), Some("no such image"));
}

#[test]
fn a_boot_is_continued_after_the_program_was_killed() {
    let mut machine = Simulated::new(&plan(&["6.12"], 1));
    let mut first = machine.kept.clone();
    advance_session(&mut first, &mut machine).unwrap();
    // Two steps: one process, and saving the plan. The second process is killed, and the machine keeps running.
    machine.power = 2;
    let mut second = machine.kept.clone();
    advance_session(&mut second, &mut machine).unwrap_err();
    machine.power = u32::MAX;
    let plan = run_until_done(&mut machine);
    assert_eq!((plan.boots.len(), plan.boots[0].records.len()), (1, 2));
}
