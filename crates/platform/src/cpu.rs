//! The CPUs of the machine, pinning a thread to one, and messages on a pinned thread that has lost its CPU. They say what can be
//! seen, since the kernel does not state the reason.

mod branch_predictor;
mod claimed_cpu;
pub mod cpu_class;
pub mod cpu_list;

use crate::error::{Error, Result};
use crate::kernel_files::KernelFiles;
use nix::errno::Errno;
use std::sync::OnceLock;

pub use branch_predictor::flush_branch_predictor;
pub use claimed_cpu::{Claimed, claim_cpu};
pub use cpu_list::CpuMask;

/// The CPUs that this thread may run on.
pub fn allowed_cpus() -> Vec<usize> {
    CpuMask::of_thread().map(|mask| mask.cpus().collect()).unwrap_or_default()
}

/// The CPUs that this process was allowed to run on before it first pinned itself.
pub fn initial_cpus() -> &'static [usize] {
    static INITIAL: OnceLock<Vec<usize>> = OnceLock::new();
    INITIAL.get_or_init(allowed_cpus)
}

/// The last of the initial CPUs of this process that is not `cpu`.
pub fn find_other_cpu(cpu: usize) -> Option<usize> {
    initial_cpus().iter().copied().rfind(|&other| other != cpu)
}

/// The CPUs that are present and not online.
pub fn offline_cpus() -> Vec<usize> {
    let list = |of: &str| {
        let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/{of}")).unwrap_or_default();
        cpu_list::parse(&text)
    };
    // CPUs that are possible but not present are in neither list.
    let (present, online) = (list("present"), list("online"));
    present.into_iter().filter(|cpu| !online.is_empty() && !online.contains(cpu)).collect()
}

/// The CPU that this thread runs on at this moment.
pub fn current_cpu() -> usize {
    nix::sched::sched_getcpu().unwrap_or(0)
}

/// Keeps this thread on one CPU.
///
/// # Errors
/// There is no such CPU, or the thread may not run there.
pub fn pin_thread(cpu: usize) -> Result<()> {
    initial_cpus(); // the kernel forgets the former set as soon as the thread is pinned
    pin_without_allocation(cpu).map_err(|e| {
        pinning_error(cpu, e, || {
            format!("sched_setaffinity to CPU {cpu} (allowed here: {:?})", allowed_cpus())
        })
    })
}

/// The error for a task that cannot be pinned to a CPU. If the CPU was allowed at the start, it was lost
/// meanwhile.
pub(super) fn pinning_error(cpu: usize, errno: Errno, doing: impl FnOnce() -> String) -> Error {
    match errno {
        Errno::EINVAL if initial_cpus().contains(&cpu) => Error::Disturbed(lost_cpu_message(cpu)),
        _ => Error::from_errno(doing(), errno),
    }
}

/// A sentence on a CPU that this process was given and has lost.
pub fn lost_cpu_message(cpu: usize) -> String {
    format!(
        "CPU {cpu} was taken away in the middle of the run: {}; run again when it can be had and nothing changes that",
        why_lost(cpu)
    )
}

/// Keeps this thread on one CPU, and checks that the kernel does so: gVisor accepts a set of CPUs and ignores it.
///
/// # Errors
/// As of [`pin_thread`]; [`Error::Missing`] if the thread may still run elsewhere, or does. Then its former affinity is restored.
pub fn pin_and_verify(cpu: usize) -> Result<()> {
    // A single try may pass by chance: the thread may already run on that CPU.
    const TRIES: usize = 8;
    let before = CpuMask::of_thread().map_err(|e| Error::from_errno("sched_getaffinity", e))?;
    pin_thread(cpu)?;
    let both: Vec<_> = find_other_cpu(cpu).into_iter().chain([cpu]).collect();
    let elsewhere = |&to: &usize| {
        pin_without_allocation(to).ok()?;
        Some((to, current_cpu())).filter(|(asked, answered)| asked != answered)
    };
    let strayed = (0..TRIES).flat_map(|_| &both).find_map(elsewhere);
    pin_thread(cpu)?;
    let allowed = allowed_cpus();
    if allowed == [cpu] && strayed.is_none() {
        return Ok(());
    }
    // If this is refused, the thread keeps its present affinity, which does no harm.
    let _ = before.apply();
    Err(Error::Missing(unpinned_message(cpu, &allowed, strayed)))
}

/// The message for a kernel that does not keep a pinned thread on its CPU. `strayed`: the CPU that the thread was
/// pinned to, and the CPU that it ran on.
fn unpinned_message(cpu: usize, allowed: &[usize], strayed: Option<(usize, usize)>) -> String {
    let (asked, ran) = match strayed {
        Some((asked, answered)) => (asked, format!(" and sched_getcpu answered CPU {answered}")),
        None => (cpu, String::new()),
    };
    let list = cpu_list::format(allowed);
    format!(
        "CPU {asked} was asked for, sched_getaffinity answered {list}{ran}: this kernel does not keep a thread on its CPU"
    )
}

/// Whether this thread is still pinned to this CPU. When a CPU goes offline, the kernel lets its tasks run
/// anywhere, and does not pin them again when the CPU returns.
pub fn is_pinned_to(cpu: usize) -> bool {
    allowed_cpus() == [cpu]
}

/// Like [`pin_thread`] without an allocation, for a forked child.
pub(super) fn pin_without_allocation(cpu: usize) -> nix::Result<()> {
    CpuMask::new(&[cpu])?.apply()
}

/// Keeps the thread that made it off one CPU, so that a measurement there is not disturbed. Dropping it restores the
/// affinity.
pub struct Aside {
    before: FormerAffinity,
    /// Empty where there is no other CPU.
    aside: Option<CpuMask>,
}

impl Aside {
    /// Keeps this thread off `cpu`, if there is another.
    ///
    /// # Errors
    /// The kernel refuses to tell or to set the affinity.
    pub fn keep_off(cpu: usize) -> Result<Self> {
        let mask = |e| Error::from_errno("sched_getaffinity", e);
        let before = CpuMask::of_thread().map_err(mask)?;
        let others: Vec<_> = before.cpus().filter(|&other| other != cpu).collect();
        let rest = CpuMask::new(&others).map_err(mask)?;
        let before = FormerAffinity(before);
        let aside = Self { before, aside: (!others.is_empty()).then_some(rest) };
        aside.leave_cpu()?;
        Ok(aside)
    }

    /// Whether there is another CPU.
    pub fn has_other_cpu(&self) -> bool {
        self.aside.is_some()
    }

    fn leave_cpu(&self) -> Result<()> {
        let Some(rest) = &self.aside else { return Ok(()) };
        rest.apply().map_err(|e| Error::from_errno("sched_setaffinity", e))
    }

    /// Runs `f` with the former affinity, which a process that `f` starts inherits.
    ///
    /// # Errors
    /// The kernel refuses to set the affinity.
    pub fn run_with_former_affinity<T>(&self, f: impl FnOnce() -> T) -> Result<T> {
        let refused = |e| Error::from_errno("sched_setaffinity", e);
        self.before.0.apply().map_err(refused)?;
        let value = f();
        self.leave_cpu()?;
        Ok(value)
    }
}

/// The former affinity of a thread. Dropping this value in that thread restores it.
pub(super) struct FormerAffinity(CpuMask);

impl Drop for FormerAffinity {
    fn drop(&mut self) {
        // If the set was shrunk meanwhile, the smaller one remains.
        let _ = self.0.apply();
    }
}

/// Keeps this thread, and the children that it starts, on its current CPU. `None` if it has no other CPU, or the kernel refuses.
pub(super) fn keep_on_this_cpu() -> Option<FormerAffinity> {
    initial_cpus(); // as in `pin_thread`
    let before = CpuMask::of_thread().ok().filter(|mask| mask.cpus().nth(1).is_some())?;
    pin_without_allocation(current_cpu()).ok()?;
    Some(FormerAffinity(before))
}

/// Lets this thread run on these CPUs.
///
/// # Errors
/// It may run on none of them.
pub fn allow_cpus(cpus: &[usize]) -> Result<()> {
    CpuMask::new(cpus).and_then(|set| set.apply()).map_err(|e| Error::from_errno("sched_setaffinity", e))
}

/// Runs `f` with this thread on one CPU, and restores the affinity afterwards.
///
/// # Errors
/// As of [`pin_thread`], or the affinity cannot be restored.
pub fn run_on_cpu<T>(cpu: usize, f: impl FnOnce() -> T) -> Result<T> {
    let before = CpuMask::of_thread().map_err(|e| Error::from_errno("sched_getaffinity", e))?;
    pin_thread(cpu)?;
    let value = f();
    before.apply().map_err(|e| Error::from_errno("sched_setaffinity back", e))?;
    Ok(value)
}

/// Runs `f` on the initial CPUs of this process, which a process that `f` starts inherits. Restores the affinity afterwards.
///
/// # Errors
/// The kernel refuses to tell or to set the affinity.
pub fn run_on_initial_cpus<T>(f: impl FnOnce() -> T) -> Result<T> {
    let refused = |e| Error::from_errno("sched_setaffinity", e);
    let before = CpuMask::of_thread().map_err(refused)?;
    allow_cpus(initial_cpus())?;
    let value = f();
    before.apply().map_err(refused)?;
    Ok(value)
}

/// Explains, in a sentence, why the calling thread no longer runs on the CPU that it was pinned to.
pub fn why_lost(cpu: usize) -> String {
    describe_lost_cpu(cpu, online_cpus().as_deref(), &allowed_cpus())
}

/// As [`why_lost`], for another thread, whose affinity is not read.
pub fn why_partner_lost(cpu: usize) -> String {
    describe_lost_cpu(cpu, online_cpus().as_deref(), &[cpu])
}

fn online_cpus() -> Option<Vec<usize>> {
    KernelFiles::live().read_first_line("sys/devices/system/cpu/online").map(|list| cpu_list::parse(&list))
}

fn describe_lost_cpu(cpu: usize, online: Option<&[usize]>, allowed: &[usize]) -> String {
    match online {
        Some(list) if !list.contains(&cpu) => {
            format!("CPU {cpu} is offline now (/sys/devices/system/cpu/online)")
        }
        _ if !allowed.contains(&cpu) => format!(
            "the thread may run on CPU {} only now: its affinity or the control group's cpuset.cpus was changed",
            cpu_list::format(allowed)
        ),
        _ => format!(
            "CPU {cpu} is there and may be used: the affinity was changed for a moment, or this kernel does not keep a thread where it \
             is pinned"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_is_put_back() {
        let before = allowed_cpus();
        let cpu = allowed_cpus().into_iter().max().expect("a CPU");
        assert_eq!(run_on_cpu(cpu, current_cpu).expect("pinned"), cpu);
        assert_eq!(allowed_cpus(), before);
    }

    #[test]
    fn a_lost_initial_cpu_is_a_disturbance_and_an_unknown_cpu_is_refused() {
        let cpu = initial_cpus()[0];
        let refusal_of = |cpu, errno| pinning_error(cpu, errno, || "scheduling".into());
        assert!(
            matches!(refusal_of(cpu, Errno::EINVAL), Error::Disturbed(sentence) if sentence.contains("was taken away"))
        );
        assert!(matches!(refusal_of(cpu, Errno::EPERM), Error::Kernel { .. }));
        assert!(matches!(refusal_of(1023, Errno::EINVAL), Error::Kernel { .. }));
    }

    #[test]
    fn the_message_on_a_strayed_thread_names_the_cpus_that_were_seen() {
        let message = unpinned_message(1, &[0, 1], Some((1, 0)));
        assert!(
            message.starts_with("CPU 1 was asked for, sched_getaffinity answered 0-1 and sched_getcpu"),
            "{message}"
        );
        assert!(
            unpinned_message(1, &[1], Some((1, 0))).contains("answered 1 and sched_getcpu answered CPU 0")
        );
    }

    #[test]
    fn a_pinned_thread_runs_on_its_cpu() {
        let before = allowed_cpus();
        let cpu = before.iter().copied().max().expect("a CPU");
        pin_and_verify(cpu).expect("kept");
        assert!(is_pinned_to(cpu) && current_cpu() == cpu);
        std::thread::spawn(move || assert!(pin_and_verify(1023).is_err())).join().expect("refused");
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let error = pin_thread(1023).expect_err("no such CPU").to_string();
        assert!(error.contains("CPU 1023"), "{error}");
    }

    #[test]
    fn the_sentence_on_a_lost_cpu_says_what_is_seen() {
        for (online, allowed, words) in [
            (Some(&[0][..]), &[0][..], "CPU 1 is offline now"),
            (Some(&[0, 1]), &[0], "may run on CPU 0 only"),
            (None, &[0], "may run on CPU 0 only"),
            (Some(&[0, 1]), &[1], "does not keep a thread"),
        ] {
            let sentence = describe_lost_cpu(1, online, allowed);
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
