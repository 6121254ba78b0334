//! Settings that a run inherits from the process that started it and that may change a number. They are read once, at its beginning.
//!
//! | inherited | what a run does |
//! |---|---|
//! | scheduling class (`chrt`) | leaves it in its measuring processes, and says so |
//! | nice value, utilization clamp, I/O priority, NUMA policy, timer slack, personality, huge pages switched off | keeps it, and says so |
//! | variables that the C library and the dynamic linker obey | keeps them, and says so |
//! | limit of CPU time (`ulimit -t`) | says so, and keeps what was measured before it strikes |
//! | blocked and ignored signals, open descriptors, the mask of new files' rights | sets them, which changes no number |

use crate::platform::limit;
use crate::platform::process::inheritance::{self, Scheduling, class_name};
use nix::libc;
use std::sync::OnceLock;

/// The default timer slack of a thread, ns.
const USUAL_SLACK_NS: u64 = 50_000;
/// The largest value of a utilization clamp (sched_setattr(2)), which means no limit.
const CLAMP_SCALE: u32 = 1024;
/// Characters of a variable's value that a message quotes at most.
const QUOTED: usize = 80;

/// The settings that this process inherited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inherited {
    scheduling: Scheduling,
    timer_slack_ns: Option<u64>,
    has_no_huge_pages: bool,
    personality: u32,
    memory_policy: i32,
    disk_priority: (i32, i32),
    /// Seconds of CPU time that each process may use.
    pub(crate) cpu_time: Option<u64>,
    variables: Vec<(String, String)>,
}

impl Inherited {
    /// The settings that this process has inherited, read at the first call only.
    pub fn read_once() -> &'static Self {
        static FOUND: OnceLock<Inherited> = OnceLock::new();
        FOUND.get_or_init(Self::read_now)
    }

    fn read_now() -> Self {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        Self {
            scheduling: inheritance::read_scheduling(),
            timer_slack_ns: inheritance::timer_slack_ns(),
            has_no_huge_pages: inheritance::is_thp_disabled(),
            personality: inheritance::personality(),
            memory_policy: inheritance::memory_policy(),
            disk_priority: inheritance::disk_priority(),
            cpu_time: limit::cpu_time_limit_seconds(),
            variables: variables
                .filter(|(name, value)| is_libc_variable(name) && !value.is_empty())
                .collect(),
        }
    }

    /// A sentence for each inherited setting that differs from the default and may change a number.
    pub fn deviation_sentences(&self) -> Vec<String> {
        let found = [
            self.scheduling_class_sentence(),
            self.nice_sentence(),
            self.utilization_clamp_sentence(),
            self.timer_slack_sentence(),
            self.huge_pages_sentence(),
            self.personality_sentence(),
            self.memory_policy_sentence(),
            self.disk_priority_sentence(),
            self.cpu_limit_sentence(),
        ];
        found.into_iter().flatten().chain(self.variables.iter().map(variable_sentence)).collect()
    }

    fn scheduling_class_sentence(&self) -> Option<String> {
        let Scheduling { policy, priority, .. } = self.scheduling;
        let level = if priority > 0 { format!(" at priority {priority}") } else { String::new() };
        let why = if inheritance::is_real_time(policy) {
            "a busy partner of that class would keep its CPU from the operation, and the cases named `-fifo` measure it"
        } else {
            "its tasks are woken later or run last"
        };
        (policy != libc::SCHED_OTHER).then(|| {
            format!(
                "the scheduling class {}{level} was inherited (`chrt`), and the measuring processes run as SCHED_OTHER: {why}",
                class_name(policy)
            )
        })
    }

    fn nice_sentence(&self) -> Option<String> {
        let nice = self.scheduling.nice;
        (nice != 0).then(|| {
            let share = if nice > 0 { "less" } else { "more" };
            format!(
                "the nice value {nice} was inherited: beside other tasks the operation gets {share} of its CPU than usual; start \
                 the run with nice 0"
            )
        })
    }

    fn utilization_clamp_sentence(&self) -> Option<String> {
        let (least, most) = self.scheduling.clamp.filter(|clamp| *clamp != (0, CLAMP_SCALE))?;
        Some(format!(
            "the utilization clamp {least} to {most} of {CLAMP_SCALE} was inherited (`uclampset`): the governor may choose another \
             frequency"
        ))
    }

    fn timer_slack_sentence(&self) -> Option<String> {
        let slack = self.timer_slack_ns.filter(|&slack| slack != USUAL_SLACK_NS && slack > 0)?;
        Some(format!(
            "a timer slack of {slack} ns was inherited ({USUAL_SLACK_NS} is usual): every sleep that ends by a time-out is \
             later by up to so much"
        ))
    }

    fn huge_pages_sentence(&self) -> Option<String> {
        self.has_no_huge_pages.then(|| {
            "transparent huge pages are switched off for this process and its children (PR_SET_THP_DISABLE): cases that need \
             them are skipped, and large memory is slower"
                .into()
        })
    }

    fn personality_sentence(&self) -> Option<String> {
        /// Flags of personality(2) that change what is timed, or how far figures scatter.
        const FLAGS: [(u32, &str); 5] = [
            (
                0x004_0000,
                "no address is chosen at random (`setarch -R`), so all executions share one layout of memory",
            ),
            (0x040_0000, "readable memory is executable (`setarch -X`)"),
            (0x020_0000, "memory is mapped from below (`setarch -L`)"),
            (0x010_0000, "page 0 is mapped (`setarch -Z`)"),
            (0x002_0000, "the kernel tells another release than its own (`setarch --uname-2.6`)"),
        ];
        let known = FLAGS.iter().filter(|(flag, _)| self.personality & flag != 0);
        let known: Vec<_> = known.map(|(_, sentence)| *sentence).collect();
        (self.personality != 0).then(|| {
            let what = if known.is_empty() { "see personality(2)".into() } else { known.join("; ") };
            format!("the personality {:#x} was inherited: {what}", self.personality)
        })
    }

    fn memory_policy_sentence(&self) -> Option<String> {
        const MODES: [&str; 7] =
            ["default", "preferred", "bind", "interleave", "local", "preferred-many", "weighted-interleave"];
        let mode = usize::try_from(self.memory_policy & 0xff).ok().filter(|&mode| mode > 0)?;
        let mode = MODES.get(mode).copied().unwrap_or("of an unknown kind");
        Some(format!(
            "the NUMA memory policy `{mode}` was inherited (`numactl`): memory need not lie on the node of its CPU"
        ))
    }

    fn disk_priority_sentence(&self) -> Option<String> {
        const CLASSES: [&str; 4] = ["none", "real-time", "best-effort", "idle"];
        // Level 4 of class 2 (best effort) is what a process with nice 0 gets.
        let (class, level) = self.disk_priority;
        let name = CLASSES.get(usize::try_from(class).ok()?)?;
        (class != 0 && (class, level) != (2, 4)).then(|| {
            format!(
                "the I/O priority {name} {level} was inherited (`ionice`): beside other tasks a disk may serve the operation \
                 earlier or later than usual"
            )
        })
    }

    fn cpu_limit_sentence(&self) -> Option<String> {
        let seconds = self.cpu_time?;
        Some(format!(
            "each process may use {seconds} s of CPU time (RLIMIT_CPU, `ulimit -t`): a case in which that is used up has no \
             figure"
        ))
    }
}

/// Whether the C library, its allocator or the dynamic linker obeys this variable.
fn is_libc_variable(name: &str) -> bool {
    name.starts_with("MALLOC_") || ["LD_PRELOAD", "LD_AUDIT", "LD_BIND_NOW", "GLIBC_TUNABLES"].contains(&name)
}

fn variable_sentence((name, value): &(String, String)) -> String {
    let beginning: String = value.chars().take(QUOTED).collect();
    let rest = if beginning.len() < value.len() { "…" } else { "" };
    format!(
        "{name}={beginning}{rest} was inherited: the C library's part of an operation may cost something else; `env -u {name}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> Inherited {
        Inherited { timer_slack_ns: Some(USUAL_SLACK_NS), ..Inherited::default() }
    }

    #[test]
    fn default_settings_produce_no_sentence() {
        assert_eq!(usual().deviation_sentences(), [""; 0]);
        assert_eq!(Inherited::default().deviation_sentences(), [""; 0], "a kernel that does not tell");
        let scheduling = Scheduling { clamp: Some((0, CLAMP_SCALE)), ..Scheduling::default() };
        assert_eq!(Inherited { scheduling, disk_priority: (2, 4), ..usual() }.deviation_sentences(), [""; 0]);
    }

    #[test]
    fn each_setting_that_may_change_a_number_produces_one_sentence() {
        let scheduled = |scheduling| Inherited { scheduling, ..usual() };
        let cases = [
            (
                scheduled(Scheduling { policy: libc::SCHED_RR, priority: 5, ..Scheduling::default() }),
                "SCHED_RR at priority 5",
            ),
            (
                scheduled(Scheduling { policy: libc::SCHED_BATCH, ..Scheduling::default() }),
                "SCHED_BATCH was inherited",
            ),
            (scheduled(Scheduling { nice: 19, ..Scheduling::default() }), "nice value 19"),
            (scheduled(Scheduling { clamp: Some((0, 512)), ..Scheduling::default() }), "clamp 0 to 512"),
            (Inherited { timer_slack_ns: Some(1), ..usual() }, "slack of 1 ns"),
            (Inherited { has_no_huge_pages: true, ..usual() }, "PR_SET_THP_DISABLE"),
            (Inherited { personality: 0x004_0000, ..usual() }, "`setarch -R`"),
            (Inherited { personality: 8, ..usual() }, "personality 0x8"),
            (Inherited { memory_policy: 3, ..usual() }, "`interleave`"),
            (Inherited { disk_priority: (3, 7), ..usual() }, "I/O priority idle 7"),
            (Inherited { cpu_time: Some(5), ..usual() }, "5 s of CPU time"),
            (
                Inherited { variables: vec![("MALLOC_ARENA_MAX".into(), "1".into())], ..usual() },
                "MALLOC_ARENA_MAX=1 was inherited",
            ),
        ];
        for (inherited, words) in cases {
            let sentences = inherited.deviation_sentences();
            assert!(sentences.len() == 1 && sentences[0].contains(words), "{words}: {sentences:?}");
        }
    }

    #[test]
    fn variables_that_the_c_library_does_not_obey_are_ignored() {
        assert!(is_libc_variable("MALLOC_PERTURB_") && is_libc_variable("LD_PRELOAD"));
        assert!(
            !["HOME", "LD_LIBRARY_PATH", "LC_ALL", "TZ", "IFS", "MALLOC"].into_iter().any(is_libc_variable)
        );
    }
}
