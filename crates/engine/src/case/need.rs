//! Needs: the features of a machine without which a case cannot be measured.

use crate::clock::Delta;
use crate::platform::cpu::cpu_class::{choose_own_cpus, cpu_classes};
use crate::platform::cpu::{self, cpu_list};
use crate::platform::kernel_files::KernelFiles;
use crate::platform::process;
use crate::platform::region::PAGE;
use crate::platform::time::{self, KernelClock};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::rc::Rc;

/// Where a case is set up, and how thoroughly it is measured.
#[derive(Clone, Debug)]
pub struct Place {
    /// A directory for files of the case. It is deleted with the process.
    pub scratch: PathBuf,
    /// How much time the run may take.
    pub scale: Scale,
    /// CPUs of the measuring thread and of its partners.
    pub cpus: Cpus,
}

/// The CPUs that a case may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// The CPU that the measuring thread is pinned to; `None` if it could not be pinned.
    pub here: Option<usize>,
    /// The other CPUs that the process was allowed before it was pinned, highest number first.
    pub others: Vec<usize>,
}

impl Cpus {
    /// The CPUs of a thread pinned to `here`, in a process that is allowed those in `allowed`. On a hybrid processor the other
    /// CPUs of the same class are listed first.
    pub fn from_allowed(here: Option<usize>, allowed: Vec<usize>) -> Self {
        Self::from_classes(here, allowed, &KernelFiles::live())
    }

    fn from_classes(here: Option<usize>, mut allowed: Vec<usize>, files: &KernelFiles) -> Self {
        let classes = cpu_classes(files, &allowed);
        let own = here.and_then(|here| classes.into_iter().find(|class| class.cpus.contains(&here)));
        let is_foreign = |cpu: &usize| own.as_ref().is_some_and(|own| !own.cpus.contains(cpu));
        allowed.retain(|cpu| Some(*cpu) != here);
        allowed.sort_unstable_by_key(|cpu| (is_foreign(cpu), Reverse(*cpu)));
        Self { here, others: allowed }
    }

    /// Checks that the process is allowed this many CPUs.
    ///
    /// # Errors
    /// A sentence, the same for all cases, so that skipped cases share one paragraph.
    #[doc(hidden)]
    pub fn check_count(&self, count: usize) -> Result<(), String> {
        match self.others.len() + 1 {
            allowed if allowed >= count => Ok(()),
            allowed => Err(format!(
                "each process or thread needs a CPU of its own, and this process is allowed {allowed}: allow more \
                 (`taskset -c`), or take a larger machine"
            )),
        }
    }

    /// The CPUs that a measuring process will have: it pins itself to the first that it may choose.
    pub fn for_measuring_process() -> Self {
        let chosen = choose_own_cpus().ok().and_then(|(cpus, _)| cpus.first().copied());
        Self::from_allowed(chosen, cpu::allowed_cpus())
    }
}

/// How much time a run may take. `SYSCOST_SCALE` sets it. It is serialized by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Every case once, with small parameters, to check the claims; the numbers are not worth keeping.
    Smoke,
    /// Minutes for the whole suite.
    #[default]
    Default,
    /// All cases and parameters, without a limit of time.
    Full,
}

impl Scale {
    /// Its name in a record and in `SYSCOST_SCALE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Default => "default",
            Self::Full => "full",
        }
    }

    /// The scale of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Smoke, Self::Default, Self::Full].into_iter().find(|scale| scale.name() == name)
    }
}

/// Something that the machine must offer. If it does not, the case is skipped, and the record keeps the reason.
///
/// ```
/// use syscost_engine::Need;
/// const PROC: Need = Need::new(|_| match std::path::Path::new("/proc/self").exists() {
///     true => Ok(()),
///     false => Err("/proc is not mounted: mount it".into()),
/// });
/// ```
#[derive(Clone)]
pub struct Need(Check);

/// `Ok` if a place meets the need, otherwise a sentence on what is missing.
type Met = Result<(), String>;

#[derive(Clone)]
enum Check {
    Constant(fn(&Place) -> Met),
    OfCase(Rc<dyn Fn(&Place) -> Met>),
}

impl Need {
    /// A need that is met if `check` returns `Ok`. Its error says what is missing and what to do about it.
    pub const fn new(check: fn(&Place) -> Result<(), String>) -> Self {
        Self(Check::Constant(check))
    }

    /// As [`Need::new`], for a check that captures a property of the case, such as its size.
    pub fn of_case(check: impl Fn(&Place) -> Result<(), String> + 'static) -> Self {
        Self(Check::OfCase(Rc::new(check)))
    }

    /// Checks whether the machine meets it.
    ///
    /// # Errors
    /// The sentence of the check, if the need is not met.
    pub fn check_place(&self, place: &Place) -> Result<(), String> {
        match &self.0 {
            Check::Constant(check) => check(place),
            Check::OfCase(check) => check(place),
        }
    }
}

const NOT_AT_THIS_SCALE: &str = "measured at full scale only (`SYSCOST_SCALE=full`)";

/// The scale is not the default one: for a case that adds little to the other cases of its group. At smoke scale its
/// claims are checked.
pub const FULL_SCALE: Need = Need::new(|place| match place.scale {
    Scale::Default => Err(NOT_AT_THIS_SCALE.into()),
    Scale::Smoke | Scale::Full => Ok(()),
});

/// The scale is full: for a case that takes seconds whatever the scale is.
pub const TAKES_SECONDS: Need = Need::new(|place| match place.scale {
    Scale::Full => Ok(()),
    Scale::Smoke | Scale::Default => Err(NOT_AT_THIS_SCALE.into()),
});

/// Pages have 4 KiB: for a case whose id or whose claims depend on it.
pub const FOUR_KIB: Need = Need::new(|_| match process::page_size() as usize {
    PAGE => Ok(()),
    bytes => {
        Err(format!("the pages of this kernel have {} KiB, and the case is made for 4 KiB", bytes >> 10))
    }
});

/// The measuring thread is pinned, so that a partner can be placed on the same or on another CPU.
pub const PINNED: Need = Need::new(|place| {
    match place.cpus.here {
    Some(_) => Ok(()),
    None => {
        Err("the measuring thread is not kept on a CPU, so that no partner can be placed beside it: a note tells why".into())
    }
}
});

/// A second CPU is allowed, for a partner.
pub const TWO_CPUS: Need = Need::new(|place| match place.cpus.others.first() {
    Some(_) => Ok(()),
    None => Err(format!(
        "the partner needs a second CPU and this process is allowed one only: allow another \
         (`taskset -c`, cpuset.cpus of the control group){}",
        offline_cpu_hint()
    )),
});

/// A hint how to bring an offline CPU back; empty if no CPU is offline.
fn offline_cpu_hint() -> String {
    let offline = cpu::offline_cpus();
    let Some(first) = offline.first() else { return String::new() };
    format!(
        "; offline here: {}, and writing 1 to /sys/devices/system/cpu/cpu{first}/online brings one back",
        cpu_list::format(&offline)
    )
}

/// Three CPUs are allowed.
pub const THREE_CPUS: Need = Need::new(|place| match place.cpus.others.len() {
    0 | 1 => Err("with two CPUs this is the same as the case of two; it needs a third".into()),
    _ => Ok(()),
});

/// The vDSO can read the kernel's clock source, so that `clock_gettime` makes no system call.
pub const VDSO_CLOCK: Need = Need::new(|_| check_vdso(KernelClock::Precise));
/// The vDSO can read the coarse clocks, which need no clock source.
pub const VDSO_COARSE: Need = Need::new(|_| check_vdso(KernelClock::Coarse));
/// The vDSO can answer `time` without a system call.
pub const VDSO_TIME: Need = Need::new(|_| check_vdso(KernelClock::Seconds));

/// Checks that the vDSO can read this clock. If no child can be traced, the need counts as met, and the claim cannot be checked
/// either.
fn check_vdso(clock: KernelClock) -> Result<(), String> {
    if time::enters_kernel(clock) != Some(true) {
        return Ok(());
    }
    let source = time::clock_source(&KernelFiles::live()).map_or_else(String::new, |name| {
        format!(" (clock source {name}; others, if there are any, are chosen in {})", time::CLOCK_SOURCE)
    });
    Err(format!("user space cannot read this clock here{source}: every reading enters the kernel"))
}

// Claims: conditions that hold if an operation really happened.

/// A condition that holds if the operation of a case really happened. If a claim is disproved, no number is saved and the run
/// ends with exit code 1.
#[derive(Clone)]
pub enum Claim {
    /// Twice the iterations take twice the time: nothing was optimised away or cached.
    Linear,
    /// The operation costs more than its control: the interval of their difference lies above zero.
    AboveControl,
    /// The function at this address is entered once an iteration, so the call was not inlined. A witness counts the
    /// entries.
    Calls(fn() -> usize),
    /// Every iteration makes exactly these system calls, in any order: name and number. A witness counts them, and sees
    /// that none is refused.
    Enters(Vec<(&'static str, i64)>),
    /// Every system call of the number in the first field returns the value in the second, which may be an error. A witness
    /// reads the return values.
    Answers(i64, i64),
    /// No iteration makes a system call. A witness counts them.
    NeverEnters,
    /// Every iteration executes at least this many instructions. A witness counts them.
    Executes(f64),
    /// Every iteration executes more instructions than the empty loop, which has this many (0 if unknown), and a later
    /// iteration not far fewer than an early one. A witness counts them; an iteration that is too long to count is judged by
    /// its time.
    KeepsWorking(f64),
    /// Counters of the kernel grew as they must over a sample. The function is given their growth and the number of
    /// iterations, and returns what it saw as a sentence: `Ok` if the claim holds, `Err` if not.
    Counted(fn(&Delta, u64) -> std::result::Result<String, String>),
    /// As [`Claim::Counted`], for the upper limit of a count that other tasks and the kernel can raise too: the case is
    /// disproved only if every execution exceeds the limit.
    AtMost(fn(&Delta, u64) -> std::result::Result<String, String>),
    /// As [`Claim::Counted`], for a mode of operation that arises by chance. In another mode the case is not disproved
    /// but measured again.
    Regime(fn(&Delta, u64) -> std::result::Result<String, String>),
    /// The operation checks this sentence itself in every batch, and returns an error if it does not hold.
    Checked(&'static str),
}

impl Claim {
    /// Whether a witness must judge it, which traces some iterations in a child process.
    pub fn wants_witness(&self) -> bool {
        matches!(
            self,
            Self::Calls(_)
                | Self::Enters(_)
                | Self::Answers(..)
                | Self::NeverEnters
                | Self::Executes(_)
                | Self::KeepsWorking(_)
        )
    }
}

/// The claim as a sentence, as the record's evidence shows it.
impl Display for Claim {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Linear => f.write_str("twice the iterations take twice the time"),
            Self::AboveControl => f.write_str("it costs more than the same loop without the operation"),
            Self::Calls(_) => f.write_str("the function is entered once an iteration: it was not inlined"),
            Self::Enters(calls) => {
                let names: Vec<_> = calls.iter().map(|(name, _)| *name).collect();
                write!(f, "every iteration enters the kernel by exactly: {}", names.join(", "))
            }
            Self::Answers(_, answer) => write!(f, "the kernel answers each call by {answer}"),
            Self::NeverEnters => f.write_str("no iteration enters the kernel"),
            Self::Executes(least) => write!(f, "instructions executed an iteration: at least {least}"),
            Self::KeepsWorking(_) => {
                f.write_str("a later iteration does as much as an early one, and more than the empty loop")
            }
            Self::Regime(_) => f.write_str("the kernel's counters show the regime that the id says"),
            Self::Checked(what) => f.write_str(what),
            Self::Counted(_) => f.write_str("the kernel's counters grow with the iterations as they must"),
            Self::AtMost(_) => {
                f.write_str("the kernel's counters grow no more than the iterations may cause")
            }
        }
    }
}
