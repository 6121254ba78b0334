//! One step of a session: measure in this boot, or restart into the next kernel.

use super::boot_kernel::BootKernel;
use super::boot_kernel::Running;
use super::boot_plan::{BootPlan, Next, TRIES};
use syscost_platform::error::Result;

/// What a session does to a machine.
pub trait Machine {
    /// The kernel that runs now.
    ///
    /// # Errors
    /// It does not show which it is.
    fn running_kernel(&self) -> Result<Running>;

    /// Waits until the boot has settled.
    fn wait_until_settled(&mut self, plan: &BootPlan);

    /// Measures all cases in one more process. Returns the name of its record, or `None` after a signal.
    ///
    /// # Errors
    /// Nothing could be measured or recorded.
    fn measure_process(&mut self, plan: &BootPlan) -> Result<Option<String>>;

    /// Saves the plan so that it survives a restart.
    ///
    /// # Errors
    /// It cannot be written.
    fn save_plan(&mut self, plan: &BootPlan) -> Result<()>;

    /// Restarts into a kernel; answers once that has been asked for.
    ///
    /// # Errors
    /// The kernel cannot be loaded.
    fn restart_into(&mut self, plan: &BootPlan, kernel: &BootKernel) -> Result<()>;

    /// The present time, Unix seconds.
    fn unix_seconds(&self) -> u64;
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
pub fn advance_session(plan: &mut BootPlan, machine: &mut impl Machine) -> Result<Standing> {
    loop {
        let running = machine.running_kernel()?;
        match plan.next(&running) {
            Next::Done => return Ok(Standing::Done),
            Next::GiveUp(kernel) => give_up_kernel(plan, kernel, never_came_up_reason(&running), machine)?,
            Next::Measure(kernel) => {
                if !measure_boot(plan, kernel, &running, machine)? {
                    return Ok(Standing::Interrupted);
                }
            }
            Next::Restart(kernel) => {
                plan.tries += 1;
                machine.save_plan(plan)?;
                match machine.restart_into(plan, &plan.kernels[kernel]) {
                    Ok(()) => return Ok(Standing::Restarting(kernel)),
                    Err(error) => give_up_kernel(plan, kernel, error.to_string(), machine)?,
                }
            }
        }
    }
}

fn never_came_up_reason(running: &Running) -> String {
    format!("asked for {TRIES} times without a whole boot, the last of which was {}", running.release)
}

fn give_up_kernel(plan: &mut BootPlan, kernel: usize, why: String, machine: &mut impl Machine) -> Result<()> {
    plan.kernels[kernel].given_up = Some(why);
    plan.tries = 0;
    machine.save_plan(plan)
}

/// Measures the processes that this boot still lacks. Returns `false` if a signal interrupted it.
fn measure_boot(
    plan: &mut BootPlan,
    kernel: usize,
    running: &Running,
    machine: &mut impl Machine,
) -> Result<bool> {
    machine.wait_until_settled(plan);
    let at = plan.find_or_add_boot(kernel, running, machine.unix_seconds());
    while !plan.is_whole(&plan.boots[at]) {
        let Some(record) = machine.measure_process(plan)? else { return Ok(false) };
        plan.boots[at].records.push(record);
        machine.save_plan(plan)?;
    }
    plan.tries = 0;
    machine.save_plan(plan)?;
    Ok(true)
}

#[cfg(test)]
mod tests;
