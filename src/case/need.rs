//! What the machine must offer before a case makes sense.

use crate::platform::process;
use crate::platform::region::PAGE;
use std::path::PathBuf;

/// Where and how thoroughly a case is set up.
#[derive(Clone, Debug)]
pub struct Place {
    /// A directory for files of the case's own; it vanishes with the process.
    pub scratch: PathBuf,
    /// How much time there is.
    pub scale: Scale,
    /// Where it is measured, and where partners may run.
    pub cpus: Cpus,
}

/// The CPUs of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// The one that the measuring thread is pinned to, if it could be.
    pub here: Option<usize>,
    /// The others that the process was allowed before it was pinned, the farthest in number first.
    pub others: Vec<usize>,
}

impl Cpus {
    /// For a thread pinned to `here`, of a process that was allowed all of these.
    pub fn around(here: Option<usize>, mut allowed: Vec<usize>) -> Self {
        allowed.retain(|cpu| Some(*cpu) != here);
        allowed.sort_unstable_by(|a, b| b.cmp(a));
        Self { here, others: allowed }
    }

    /// As a measuring process will find them: it pins itself to the last that is allowed.
    pub fn expected() -> Self {
        let allowed = crate::platform::cpu::allowed();
        Self::around(allowed.iter().copied().max(), allowed)
    }
}

/// How much time a run may take. Every parameter has a small size for the smoke run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scale {
    /// Every case once, claims on, numbers not worth keeping.
    Smoke,
    /// Minutes for the whole suite.
    #[default]
    Default,
    /// As long as it takes to be sure.
    Full,
}

impl Scale {
    /// The name in a record and in `SYSCOST_SCALE`.
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

/// Something that the machine must offer. Where it does not, the case is skipped with the sentence.
#[derive(Clone, Copy)]
pub struct Need {
    check: fn(&Place) -> Result<(), String>,
}

impl Need {
    /// A need that is met when `check` answers `Ok`; else its sentence says what is missing and what to do.
    pub const fn new(check: fn(&Place) -> Result<(), String>) -> Self {
        Self { check }
    }

    /// Asks the machine.
    pub fn ask(&self, place: &Place) -> Result<(), String> {
        (self.check)(place)
    }
}

/// A case that takes seconds, or tells little beside its neighbours, is left to the scale that has the time.
pub const FULL_SCALE: Need = Need::new(|place| match place.scale {
    Scale::Full => Ok(()),
    _ => Err("measured at full scale only (`SYSCOST_SCALE=full`)".into()),
});

/// Ids, and what is claimed of faults, say what a page is.
pub const FOUR_KIB: Need = Need::new(|_| match process::page_size() as usize {
    PAGE => Ok(()),
    bytes => {
        Err(format!("the pages of this kernel have {} KiB, and the case is made for 4 KiB", bytes >> 10))
    }
});

/// The measuring thread stays on a CPU, so that a partner can be told to be on the same or on another.
pub const PINNED: Need = Need::new(|place| match place.cpus.here {
    Some(_) => Ok(()),
    None => Err("the measuring thread could not be pinned to a CPU, so that nobody knows who is beside it: \
                 allow sched_setaffinity"
        .into()),
});

/// There is a second CPU for a partner.
pub const TWO_CPUS: Need = Need::new(|place| match place.cpus.others.first() {
    Some(_) => Ok(()),
    None => Err("the partner needs a second CPU and this process is allowed one only: allow another \
                 (`taskset -c`, cpuset.cpus of the control group)"
        .into()),
});

/// There are three CPUs.
pub const THREE_CPUS: Need = Need::new(|place| match place.cpus.others.len() {
    0 | 1 => Err("with two CPUs this is the same as the case of two; it needs a third".into()),
    _ => Ok(()),
});

/// The kernel's clock can be read without entering it: the vDSO knows how to read the clock source.
pub const VDSO_CLOCK: Need = Need::new(|_| {
    const READABLE: [&str; 5] =
        ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "hyperv_clocksource_vdso"];
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match std::fs::read_to_string(path) {
        Ok(source) if !READABLE.contains(&source.trim()) => Err(format!(
            "the clock source is {}, which user space cannot read: every clock_gettime enters the kernel; \
             choose another in {path} if there is one",
            source.trim()
        )),
        // Where the file is missing the claim itself will tell.
        _ => Ok(()),
    }
});
