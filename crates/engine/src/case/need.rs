//! Needs: the features of a machine without which a case cannot be measured.

use crate::platform::cpu::cpu_class::{choose_own_cpus, cpu_classes};
use crate::platform::cpu::{self, cpu_list};
use crate::platform::kernel_files::KernelFiles;
use crate::platform::process;
use crate::platform::region::PAGE;
use crate::platform::time::{self, KernelClock};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::path::PathBuf;

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
    /// The CPUs of a thread pinned to `here`, in a process that is allowed those in `allowed`. On a hybrid processor the others of
    /// its class come first.
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

    /// A sentence unless the process is allowed this many CPUs: it is the same for all cases, so that they share a paragraph.
    ///
    /// # Errors
    /// The sentence.
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
#[derive(Clone, Copy)]
pub struct Need {
    check: fn(&Place) -> Result<(), String>,
}

impl Need {
    /// A need that is met if `check` returns `Ok`. Its error says what is missing and what to do about it.
    pub const fn new(check: fn(&Place) -> Result<(), String>) -> Self {
        Self { check }
    }

    /// Checks whether the machine meets it.
    ///
    /// # Errors
    /// The sentence of the check, if it does not.
    pub fn check_place(&self, place: &Place) -> Result<(), String> {
        (self.check)(place)
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
/// The vDSO answers the coarse clocks, which need no clock source.
pub const VDSO_COARSE: Need = Need::new(|_| check_vdso(KernelClock::Coarse));
/// The vDSO answers `time`.
pub const VDSO_TIME: Need = Need::new(|_| check_vdso(KernelClock::Seconds));

/// Whether the vDSO answers this clock. If no child can be traced, the need counts as met, and the claim cannot be
/// checked either.
fn check_vdso(clock: KernelClock) -> Result<(), String> {
    if time::enters_kernel(clock) != Some(true) {
        return Ok(());
    }
    let source = time::clock_source(&KernelFiles::live()).map_or_else(String::new, |name| {
        format!(" (clock source {name}; others, if there are any, are chosen in {})", time::CLOCK_SOURCE)
    });
    Err(format!("user space cannot read this clock here{source}: every reading enters the kernel"))
}
