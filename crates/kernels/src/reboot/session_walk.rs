//! One step of a session: measure in this boot, or restart into the next kernel.

use super::boot_kernel::BootKernel;
use super::boot_plan::{BootPlan, Next, TRIES};
use super::running::Running;
use syscost_platform::error::Result;

/// What a session does to a machine.
pub trait Machine {
    /// The kernel that runs now.
    ///
    /// # Errors
    /// It does not show which it is.
    fn running(&self) -> Result<Running>;

    /// Waits until the boot has settled.
    fn settle(&mut self, plan: &BootPlan);

    /// Measures all cases in one process more; answers the name of its record, or nothing after a signal.
    ///
    /// # Errors
    /// Nothing could be measured or recorded.
    fn measure(&mut self, plan: &BootPlan) -> Result<Option<String>>;

    /// Keeps the plan for good.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&mut self, plan: &BootPlan) -> Result<()>;

    /// Restarts into a kernel; answers once that has been asked for.
    ///
    /// # Errors
    /// The kernel cannot be loaded.
    fn restart(&mut self, plan: &BootPlan, kernel: &BootKernel) -> Result<()>;

    /// The present time, Unix seconds.
    fn now(&self) -> u64;
}

/// Where a session stands after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The machine restarts into this kernel.
    Restarting(usize),
    /// A signal came.
    Interrupted,
    /// Nothing is left to do.
    Done,
}

/// Goes on with a session until the machine restarts or nothing is left to do.
///
/// # Errors
/// Nothing could be measured, or the plan cannot be kept.
pub fn walk(plan: &mut BootPlan, machine: &mut impl Machine) -> Result<Standing> {
    loop {
        let running = machine.running()?;
        match plan.next(&running) {
            Next::Done => return Ok(Standing::Done),
            Next::GiveUp(kernel) => give_up(plan, kernel, never_came_up(&running), machine)?,
            Next::Measure(kernel) => {
                if !measure(plan, kernel, &running, machine)? {
                    return Ok(Standing::Interrupted);
                }
            }
            Next::Restart(kernel) => {
                plan.tries += 1;
                machine.keep(plan)?;
                match machine.restart(plan, &plan.kernels[kernel]) {
                    Ok(()) => return Ok(Standing::Restarting(kernel)),
                    Err(error) => give_up(plan, kernel, error.to_string(), machine)?,
                }
            }
        }
    }
}

fn never_came_up(running: &Running) -> String {
    format!("asked for {TRIES} times without a whole boot, the last of which was {}", running.release)
}

fn give_up(plan: &mut BootPlan, kernel: usize, why: String, machine: &mut impl Machine) -> Result<()> {
    plan.kernels[kernel].given_up = Some(why);
    plan.tries = 0;
    machine.keep(plan)
}

/// Measures what this boot lacks; answers whether it is whole.
fn measure(
    plan: &mut BootPlan,
    kernel: usize,
    running: &Running,
    machine: &mut impl Machine,
) -> Result<bool> {
    machine.settle(plan);
    let at = plan.boot_of(kernel, running, machine.now());
    while !plan.is_whole(&plan.boots[at]) {
        let Some(record) = machine.measure(plan)? else { return Ok(false) };
        plan.boots[at].records.push(record);
        machine.keep(plan)?;
    }
    plan.tries = 0;
    machine.keep(plan)?;
    Ok(true)
}

#[cfg(test)]
mod tests;
