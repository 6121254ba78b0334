//! The measuring thread moves to another CPU and back, by `sched_setaffinity`.

use crate::case::need::FULL_SCALE;
use crate::case::{Case, Claim, OwnTasks, Place, Report, Rule, Subject, set_up};
use crate::clock::{Clock, Delta, Ticks};
use crate::error::{Error, Result};
use crate::kit::placement::Placement;
use crate::platform::cpu::{CpuMask, current_cpu};
use crate::platform::partner::Partner;

/// The calls of one iteration.
const MOVES: u64 = 2;

pub(super) fn move_cases() -> Vec<Case> {
    [Placement::Cross, Placement::Awake].map(move_case).into()
}

fn move_case(placement: Placement) -> Case {
    let title = format!("a thread moved to another CPU and back, {}", placement.title());
    let case = Case::new(
        format!("move/{}", placement.name()),
        title,
        set_up(move |place| Moving::new(place, placement)),
    );
    let case = if placement == Placement::Awake { case.need(FULL_SCALE) } else { case };
    let idle = if placement == Placement::Cross { 60_000.0 } else { 4_000.0 };
    placement
        .add_needs(case)
        // The kernel counts the time until the other CPU takes the thread as waiting for a CPU.
        .own_tasks(OwnTasks::Elsewhere)
        .derived_figure("move", Rule::OfCost(1.0 / MOVES as f64))
        .claim(Claim::Checked("after each call the thread runs on the CPU that it asked for"))
        .claim(Claim::Counted(claim_left_cpu))
        .predict(
            idle,
            12_000.0,
            "twice a kernel thread that is switched to and moves the task, and a CPU that it is moved to",
        )
}

/// The thread that moves.
pub struct Moving {
    /// The CPUs of each call.
    pub sets: [CpuMask; MOVES as usize],
    cpus: [usize; MOVES as usize],
    /// The tasks that keep the CPUs awake.
    spinners: Vec<Partner>,
}

impl Moving {
    /// Moves to the partner's CPU and back.
    ///
    /// # Errors
    /// There is no such CPU, or the kernel refuses a task that keeps it awake.
    pub fn new(place: &Place, placement: Placement) -> Result<Self> {
        let cpus = [placement.partner_cpu(place)?, Placement::Same.partner_cpu(place)?];
        let set = |cpu| CpuMask::new(&[cpu]).map_err(|e| Error::from_errno("a set of CPUs", e));
        Ok(Self { sets: [set(cpus[0])?, set(cpus[1])?], cpus, spinners: placement.start_spinners(place)? })
    }
}

impl Subject for Moving {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let (mut strayed, mut refused) = (0u64, None);
        let ticks = clock.time(|| {
            for _ in 0..iterations {
                for (set, cpu) in self.sets.iter().zip(self.cpus) {
                    if let Err(errno) = set.apply() {
                        refused = Some(errno);
                    }
                    strayed += u64::from(current_cpu() != cpu);
                }
            }
        });
        if let Some(errno) = refused {
            // So that the thread is where the harness expects it.
            let _ = self.sets[1].apply();
            return Err(Error::from_case_errno("sched_setaffinity", errno));
        }
        match strayed {
            0 => Ok(ticks),
            _ => Err(Error::Disproved(format!(
                "after {strayed} of {} calls the thread ran on another CPU than it had asked for",
                MOVES * iterations
            ))),
        }
    }

    fn report(&self) -> Report {
        Report { partners: self.spinners.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

/// The claim that the thread left its CPU at every call: another task, of the kernel, moves it.
fn claim_left_cpu(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    let left = delta.counted.voluntary_switches + delta.counted.involuntary_switches;
    let seen = format!("the thread left a CPU {left} times in {} moves", MOVES * iterations);
    if left < MOVES * iterations { Err(seen) } else { Ok(seen) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Scale;
    use crate::kit::runnable::{runnable_cases, test_place};
    use crate::platform::cpu;

    #[test]
    fn a_thread_that_moved_is_back_afterwards() {
        let place = test_place(&std::env::temp_dir(), Scale::Full);
        let here = place.cpus.here.unwrap();
        for case in runnable_cases(move_cases(), &place) {
            let ran = cpu::run_on_cpu(here, || {
                (case.set_up)(&place)?.run(20, &Clock::start_up())?;
                Ok::<_, Error>(current_cpu())
            });
            assert_eq!(ran.unwrap().unwrap(), here);
        }
    }

    #[test]
    fn a_thread_that_stayed_is_caught() {
        let mut delta = Delta::default();
        delta.counted.voluntary_switches = 39;
        assert!(claim_left_cpu(&delta, 20).is_err());
        assert!(claim_left_cpu(&delta, 19).is_ok());
    }
}
