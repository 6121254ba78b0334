//! What the machine must offer before a case makes sense.

use std::path::PathBuf;

/// Where and how thoroughly a case is set up.
#[derive(Clone, Debug)]
pub struct Place {
    /// A directory for files of the case's own; it vanishes with the process.
    pub scratch: PathBuf,
    /// How much time there is.
    pub scale: Scale,
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

/// The kernel's clock can be read without entering it: the vDSO knows how to read the clock source.
pub(crate) const VDSO_CLOCK: Need = Need::new(|_| {
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
