//! The plan of a session over reboots and its progress: plain data, from which a function computes the next step.

use super::boot_kernel::{BootKernel, Running};
use super::boot_loader::BootLoader;
use serde::{Deserialize, Serialize};
use std::path::Path;
use syscost_engine::record::store;
use syscost_platform::error::{Error, Result};

/// The version of the layout.
pub const LAYOUT: u32 = 1;
/// A kernel is given up after this many restarts without a whole boot: a power cut may spoil one, and the kernel another.
pub const TRIES: u32 = 3;

/// A session over reboots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootPlan {
    /// Layout version, [`LAYOUT`].
    pub plan: u32,
    /// Name of the session, under which its records are kept.
    pub name: String,
    /// How the next kernel is chosen.
    pub loader: BootLoader,
    /// The kernels.
    pub kernels: Vec<BootKernel>,
    /// Boots wanted of each kernel.
    pub wanted: u32,
    /// Processes wanted in each boot: each measures all cases, and has a record of its own.
    pub processes: u32,
    /// Further words for `syscost record`.
    pub record: Vec<String>,
    /// Seconds to wait after a boot before it is measured.
    pub settle: u32,
    /// The boot in which the plan was made. It is never measured, because it is not fresh; its kernel runs again at the end.
    pub planned_in: Running,
    /// The boots that were measured.
    pub boots: Vec<Boot>,
    /// Restarts since the last whole boot.
    pub tries: u32,
}

/// A boot that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// The kernel that ran, as its index in the plan's kernels.
    pub kernel: usize,
    /// The boot's unique name, [`Running::boot`].
    pub boot: String,
    /// When measuring began, Unix seconds.
    pub began: u64,
    /// The names of the records, one for each process.
    pub records: Vec<String>,
}

/// The next step; a kernel is its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Measure this kernel, which is running.
    Measure(usize),
    /// Restart into this kernel.
    Restart(usize),
    /// Measure this kernel no further: [`TRIES`] restarts into it gave no whole boot.
    GiveUp(usize),
    /// Nothing is left to do.
    Done,
}

impl BootPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// There is no plan, or the file is damaged or of another version.
    pub fn load(path: &Path) -> Result<Self> {
        let remedy = "plan the session again; its records are kept";
        let wrong =
            |field, expected: &str, found| Error::invalid_content(path, field, expected, found, remedy);
        let bytes = store::read(path)?;
        let plan: Self = serde_json::from_slice(&bytes)
            .map_err(|e| wrong("the plan", "a plan of `syscost kernels session`", e.to_string()))?;
        if plan.plan == LAYOUT && plan.boots.iter().all(|boot| boot.kernel < plan.kernels.len()) {
            return Ok(plan);
        }
        Err(wrong("plan", &format!("version {LAYOUT}"), plan.plan.to_string()))
    }

    /// Replaces the file of the plan atomically: after a power cut it has the old plan or the new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        store::replace_file(path, &self.to_json(path)?)
    }

    /// Writes a new plan; an existing file is an error.
    ///
    /// # Errors
    /// There is a plan of this name, or the file cannot be written.
    pub fn create(&self, path: &Path) -> Result<()> {
        store::create_file(path, &self.to_json(path)?)
    }

    fn to_json(&self, path: &Path) -> Result<Vec<u8>> {
        serde_json::to_vec_pretty(self).map_err(|e| Error::file(path, "writing as JSON", e.into()))
    }

    /// Whether all processes of a boot were measured.
    pub fn is_whole(&self, boot: &Boot) -> bool {
        boot.records.len() >= self.processes as usize
    }

    /// The number of whole boots of a kernel.
    pub fn count_whole_boots(&self, kernel: usize) -> usize {
        self.boots.iter().filter(|boot| boot.kernel == kernel && self.is_whole(boot)).count()
    }

    /// The next step while this kernel runs.
    pub fn next(&self, running: &Running) -> Next {
        let Some(kernel) = self.next_kernel() else { return Next::Done };
        if self.is_running_kernel(kernel, running) && self.is_boot_usable(kernel, running) {
            return Next::Measure(kernel);
        }
        if self.tries < TRIES { Next::Restart(kernel) } else { Next::GiveUp(kernel) }
    }

    /// The next kernel with too few whole boots; `None` if there is none. The order is A B B A A B …, so that a drift affects all
    /// kernels alike.
    fn next_kernel(&self) -> Option<usize> {
        let mut whole: Vec<_> =
            (0..self.kernels.len()).map(|kernel| self.count_whole_boots(kernel)).collect();
        let is_missing = |kernel: &usize| match whole[*kernel].checked_sub(1) {
            Some(fewer) => {
                whole[*kernel] = fewer;
                false
            }
            None => true,
        };
        let goes_on = |kernel: &usize| self.kernels[*kernel].given_up.is_none();
        self.kernel_order().filter(goes_on).find(is_missing)
    }

    /// The kernels in the order of their boots: forwards in one round, backwards in the next.
    fn kernel_order(&self) -> impl Iterator<Item = usize> + '_ {
        let last = self.kernels.len().saturating_sub(1);
        (0..self.wanted)
            .flat_map(move |round| (0..=last).map(move |n| if round % 2 == 0 { n } else { last - n }))
    }

    /// Whether this kernel of the plan runs. Words that the planning boot had too do not distinguish kernels.
    fn is_running_kernel(&self, kernel: usize, running: &Running) -> bool {
        let known: Vec<_> = self.planned_in.command_line.split_whitespace().collect();
        let all = self.kernels.iter().flat_map(BootKernel::command_line_words);
        let added: Vec<_> = all.filter(|word| !known.contains(word)).collect();
        self.kernels[kernel].is_running(running, &added)
    }

    /// Whether this boot may be measured: it is fresh, or some of its processes are still missing.
    fn is_boot_usable(&self, kernel: usize, running: &Running) -> bool {
        let is_spent =
            |boot: &&Boot| boot.boot == running.boot && (boot.kernel != kernel || self.is_whole(boot));
        running.boot != self.planned_in.boot && !self.boots.iter().any(|boot| is_spent(&boot))
    }

    /// The index of the entry of this boot, which is added if it is missing.
    pub(super) fn find_or_add_boot(&mut self, kernel: usize, running: &Running, now: u64) -> usize {
        let known = self.boots.iter().position(|boot| boot.boot == running.boot);
        known.unwrap_or_else(|| {
            let boot = Boot { kernel, boot: running.boot.clone(), began: now, records: Vec::new() };
            self.boots.push(boot);
            self.boots.len() - 1
        })
    }
}

// One step of a session: measure in this boot, or restart into the next kernel.

/// The operations of a session on a machine; tests replace them.
pub trait Machine {
    /// The kernel that runs now.
    ///
    /// # Errors
    /// The kernel does not show its identity.
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

    /// Requests a restart into a kernel, and returns before the restart.
    ///
    /// # Errors
    /// The kernel cannot be loaded.
    fn restart_into(&mut self, plan: &BootPlan, kernel: &BootKernel) -> Result<()>;

    /// The present time, Unix seconds.
    fn unix_seconds(&self) -> u64;
}

/// The state of a session after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The machine restarts into this kernel.
    Restarting(usize),
    /// A signal interrupted the measurement.
    Interrupted,
    /// Nothing is left to do.
    Done,
}

/// Continues a session until the machine restarts, a signal comes or nothing is left to do.
///
/// # Errors
/// Nothing could be measured, or the plan cannot be saved.
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
