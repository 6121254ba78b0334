//! A kernel that ran as a guest: the identity that it states, its number of boots, and the clock of its numbers.

use serde::{Deserialize, Serialize};

/// What the numbers of a file count. Numbers by different clocks are never compared with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// Time of the machine on which the cases ran. Files without a mark have this clock.
    #[default]
    Host,
    /// Instructions that an emulator has executed.
    Icount,
    /// Time in a guest under KVM: that of this hardware, with the overhead of virtualization.
    Kvm,
    /// Time in a guest whose processor is emulated.
    Tcg,
    /// Time in user-mode Linux, a kernel that runs as a process of the host's kernel.
    Uml,
}

impl ClockKind {
    /// A warning that its numbers are not times of this machine; `None` if they are.
    pub fn clock_warning(self) -> Option<&'static str> {
        match self {
            Self::Host => None,
            Self::Icount => Some("instructions (icount), and not time"),
            Self::Kvm => Some("time in guests (kvm): of this hardware, with what virtualization adds"),
            Self::Tcg => Some(
                "time of an emulator (tcg), and not of hardware: whether a figure moved can be read from it, and not by how much it \
                 would on a processor",
            ),
            Self::Uml => Some(
                "time in user-mode Linux (uml), a kernel that is a process of this one: what enters it costs far more than on a \
                 processor of its own",
            ),
        }
    }
}

impl std::fmt::Display for ClockKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// One kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuestSide {
    /// The name that the user gave it.
    pub name: String,
    /// The identity that it states; `None` if no boot has reached that point.
    pub identity: Option<Identity>,
    /// Number of boots.
    pub boots: usize,
    /// A sentence for each boot that did not reach its end.
    pub faults: Vec<String>,
}

/// The identity that a kernel states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of the question format that the program in the guest reads.
    pub version: u32,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`: the build.
    pub build: String,
    /// The command line as the kernel read it.
    pub command_line: String,
    /// The kernel's clock source.
    pub clocksource: String,
    /// Size of a page, bytes.
    pub page_size: u64,
    /// Features and bugs of the processor, by the kernel's names.
    #[serde(default)]
    pub processor_flags: Vec<String>,
    /// Names of vulnerabilities, and how each is mitigated.
    pub mitigations: Vec<(String, String)>,
    /// Version of the program in the guest.
    pub tool: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_mark_has_the_host_clock_and_other_clocks_have_a_warning() {
        assert_eq!(ClockKind::default(), ClockKind::Host);
        assert_eq!(ClockKind::Host.clock_warning(), None);
        for clock in [ClockKind::Icount, ClockKind::Kvm, ClockKind::Tcg, ClockKind::Uml] {
            let word = clock.to_string();
            assert!(
                clock.clock_warning().is_some_and(|caution| caution.contains(&format!("({word})"))),
                "{word}"
            );
            assert_eq!(serde_json::to_value(clock).expect("JSON"), word);
        }
    }
}
