//! Which CPUs there are, and staying on one.

mod branch_predictor;
mod busy;
mod claimed_cpu;
pub mod cpu_list;
mod lost_cpu;

pub use branch_predictor::forget_branches;
pub use claimed_cpu::{Claimed, claim};
pub use lost_cpu::{why_lost, why_partner_lost};

use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::OnceLock;

/// The CPUs that this thread may run on.
pub fn allowed() -> Vec<usize> {
    let ids = core_affinity::get_core_ids().unwrap_or_default();
    ids.into_iter().map(|id| id.id).collect()
}

/// The CPUs that this process was given: those that it might run on before it first pinned itself.
pub fn lent() -> &'static [usize] {
    static LENT: OnceLock<Vec<usize>> = OnceLock::new();
    LENT.get_or_init(allowed)
}

/// A CPU that this process was given, other than this one.
pub fn other_than(cpu: usize) -> Option<usize> {
    lent().iter().copied().rfind(|&other| other != cpu)
}

/// The CPUs that this machine has and does not use.
pub fn offline() -> Vec<usize> {
    let list = |of: &str| {
        let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/{of}")).unwrap_or_default();
        cpu_list::parse(&text)
    };
    // Those that are merely possible are in neither list.
    let (present, online) = (list("present"), list("online"));
    present.into_iter().filter(|cpu| !online.is_empty() && !online.contains(cpu)).collect()
}

/// The CPU that this thread runs on at this moment.
pub fn current() -> usize {
    nix::sched::sched_getcpu().unwrap_or(0)
}

/// Keeps this thread on one CPU.
///
/// # Errors
/// There is no such CPU, or the thread may not run there.
pub fn pin(cpu: usize) -> Result<()> {
    lent(); // the kernel forgets the former set as soon as the thread is pinned
    pin_bare(cpu).map_err(|e| {
        refusal(cpu, e, || format!("sched_setaffinity to CPU {cpu} (allowed here: {:?})", allowed()))
    })
}

/// Why a task could not be put on a CPU. One that this process was given and that is refused now has gone meanwhile.
pub(super) fn refusal(cpu: usize, errno: Errno, doing: impl FnOnce() -> String) -> Error {
    match errno {
        Errno::EINVAL if lent().contains(&cpu) => Error::Disturbed(gone(cpu)),
        _ => Error::refused(doing(), errno),
    }
}

/// A sentence on a CPU that this process was given and has lost.
pub fn gone(cpu: usize) -> String {
    format!(
        "CPU {cpu} was taken away in the middle of the run: {}; run again when it can be had and nothing changes that",
        why_lost(cpu)
    )
}

/// Keeps this thread on one CPU, and looks whether it is kept there: gVisor accepts a set of CPUs and goes on as before.
///
/// # Errors
/// As of [`pin`]; [`Error::Missing`] if the thread may still run elsewhere, or does. Then it has its former CPUs again.
pub fn pin_and_look(cpu: usize) -> Result<()> {
    // One try may hit by chance the CPU on which the thread is.
    const TRIES: usize = 8;
    let before = sched_getaffinity(Pid::from_raw(0)).map_err(|e| Error::refused("sched_getaffinity", e))?;
    pin(cpu)?;
    let both: Vec<_> = other_than(cpu).into_iter().chain([cpu]).collect();
    let elsewhere = |&to: &usize| {
        pin_bare(to).ok()?;
        Some((to, current())).filter(|(asked, answered)| asked != answered)
    };
    let strayed = (0..TRIES).flat_map(|_| &both).find_map(elsewhere);
    pin(cpu)?;
    let allowed = allowed();
    if allowed == [cpu] && strayed.is_none() {
        return Ok(());
    }
    // If it is refused, the thread stays where it is, which is no worse.
    let _ = sched_setaffinity(Pid::from_raw(0), &before);
    Err(Error::Missing(not_kept(cpu, &allowed, strayed)))
}

/// A sentence on a thread that was to be kept on a CPU, and is not. `strayed`: the CPU that it was put on and the one that it
/// ran on.
fn not_kept(cpu: usize, allowed: &[usize], strayed: Option<(usize, usize)>) -> String {
    let (asked, ran) = match strayed {
        Some((asked, answered)) => (asked, format!(" and sched_getcpu answered CPU {answered}")),
        None => (cpu, String::new()),
    };
    let list = cpu_list::format(allowed);
    format!(
        "CPU {asked} was asked for, sched_getaffinity answered {list}{ran}: this kernel does not keep a thread on its CPU"
    )
}

/// Whether this thread is still kept on this CPU: when a CPU goes offline the kernel lets its tasks run anywhere, and does
/// not take that back when it returns.
pub fn is_pinned_to(cpu: usize) -> bool {
    allowed() == [cpu]
}

/// Like [`pin`] without an allocation, for a forked child.
pub(super) fn pin_bare(cpu: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}

/// Keeps the thread that made it off one CPU, so that a measurement there is not disturbed. Dropping it restores the
/// affinity.
pub struct Aside {
    before: CpuSet,
    /// Empty where there is no other CPU.
    aside: Option<CpuSet>,
}

impl Aside {
    /// Keeps this thread off `cpu`, if there is another.
    ///
    /// # Errors
    /// The kernel refuses to tell or to set the affinity.
    pub fn from(cpu: usize) -> Result<Self> {
        let mask = |e| Error::refused("sched_getaffinity", e);
        let before = sched_getaffinity(Pid::from_raw(0)).map_err(mask)?;
        let mut rest = before;
        rest.unset(cpu).map_err(mask)?;
        let others = (0..CpuSet::count()).any(|other| rest.is_set(other).unwrap_or(false));
        let aside = Self { before, aside: others.then_some(rest) };
        aside.step_aside()?;
        Ok(aside)
    }

    /// Whether there is another CPU.
    pub fn is_aside(&self) -> bool {
        self.aside.is_some()
    }

    fn step_aside(&self) -> Result<()> {
        let Some(rest) = &self.aside else { return Ok(()) };
        sched_setaffinity(Pid::from_raw(0), rest).map_err(|e| Error::refused("sched_setaffinity", e))
    }

    /// Runs `f` with the former affinity: a process that is started inherits it.
    ///
    /// # Errors
    /// The kernel refuses to set the affinity.
    pub fn as_before<T>(&self, f: impl FnOnce() -> T) -> Result<T> {
        let refused = |e| Error::refused("sched_setaffinity", e);
        sched_setaffinity(Pid::from_raw(0), &self.before).map_err(refused)?;
        let value = f();
        self.step_aside()?;
        Ok(value)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // If the set was shrunk meanwhile, the smaller one remains.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}

/// Runs `f` with this thread on one CPU, and restores the affinity afterwards.
///
/// # Errors
/// As of [`pin`], or the affinity cannot be restored.
pub fn while_on<T>(cpu: usize, f: impl FnOnce() -> T) -> Result<T> {
    let before = sched_getaffinity(Pid::from_raw(0)).map_err(|e| Error::refused("sched_getaffinity", e))?;
    pin(cpu)?;
    let value = f();
    sched_setaffinity(Pid::from_raw(0), &before).map_err(|e| Error::refused("sched_setaffinity back", e))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_is_put_back() {
        let before = allowed();
        let cpu = allowed().into_iter().max().expect("a CPU");
        assert_eq!(while_on(cpu, current).expect("pinned"), cpu);
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_cpu_that_has_gone_is_a_disturbance_and_one_that_never_was_is_refused() {
        let cpu = lent()[0];
        let refusal_of = |cpu, errno| refusal(cpu, errno, || "scheduling".into());
        assert!(
            matches!(refusal_of(cpu, Errno::EINVAL), Error::Disturbed(sentence) if sentence.contains("was taken away"))
        );
        assert!(matches!(refusal_of(cpu, Errno::EPERM), Error::Kernel { .. }));
        assert!(matches!(refusal_of(1023, Errno::EINVAL), Error::Kernel { .. }));
    }

    #[test]
    fn a_kernel_that_does_not_keep_a_thread_is_told_by_what_was_seen() {
        let told = not_kept(1, &[0, 1], Some((1, 0)));
        assert!(
            told.starts_with("CPU 1 was asked for, sched_getaffinity answered 0-1 and sched_getcpu"),
            "{told}"
        );
        assert!(not_kept(1, &[1], Some((1, 0))).contains("answered 1 and sched_getcpu answered CPU 0"));
    }

    #[test]
    fn a_thread_that_is_kept_is_found_there() {
        let before = allowed();
        let cpu = before.iter().copied().max().expect("a CPU");
        pin_and_look(cpu).expect("kept");
        assert!(is_pinned_to(cpu) && current() == cpu);
        std::thread::spawn(move || assert!(pin_and_look(1023).is_err())).join().expect("refused");
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let error = pin(1023).expect_err("no such CPU").to_string();
        assert!(error.contains("CPU 1023"), "{error}");
    }
}
