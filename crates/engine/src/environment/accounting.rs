//! How this kernel accounts for CPU time. This decides which column of a displacement is right.

use crate::platform::kernel_files::KernelFiles;

/// How CPU time of tasks and interrupts is charged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Whether interrupts are charged to no task (`CONFIG_IRQ_TIME_ACCOUNTING`); `None` if this is unknown.
    pub interrupts_apart: Option<bool>,
    /// Whether samples at the tick separate user from system time, instead of a measurement at every kernel entry
    /// (`CONFIG_VIRT_CPU_ACCOUNTING_GEN` works on CPUs of `nohz_full` only); `None` if this is unknown.
    pub by_tick: Option<bool>,
    /// CPUs without a tick while one task runs (`nohz_full`), as the kernel lists them.
    pub tickless: Option<String>,
    /// Scheduler ticks per second; `None` if the configuration is unknown.
    pub hz: Option<u32>,
}

impl Accounting {
    /// Reads the kernel's configuration where it is available; otherwise looks for files that exist under one setting only.
    pub fn read(files: &KernelFiles) -> Self {
        let release = files.kernel_release().unwrap_or_default();
        let shown = files.read_text(&format!("/boot/config-{release}")).or_else(|| config(files));
        let set =
            |name: &str| shown.as_ref().map(|text| text.lines().any(|line| line == format!("{name}=y")));
        let tickless =
            files.read_first_line("/sys/devices/system/cpu/nohz_full").filter(|list| list != "(null)");
        let hz = shown
            .as_ref()
            .and_then(|text| text.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok()));
        // `/proc/pressure/irq` exists only where interrupts are accounted for separately. On a kernel without any pressure
        // files its absence means nothing.
        let has_irq_pressure = || files.has("/proc/pressure/cpu").then(|| files.has("/proc/pressure/irq"));
        Self {
            interrupts_apart: set("CONFIG_IRQ_TIME_ACCOUNTING").or_else(has_irq_pressure),
            by_tick: set("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE").map(|native| !native && tickless.is_none()),
            tickless,
            hz,
        }
    }

    /// Whether interrupts are known to be charged to no task.
    pub fn hides_interrupts(&self) -> bool {
        self.interrupts_apart == Some(true)
    }

    /// A sentence for each setting that says which column of a displacement it affects, and how.
    pub fn setting_sentences(&self) -> Vec<String> {
        let interrupts = match self.interrupts_apart {
            Some(true) => {
                "this kernel charges interrupts to no task (IRQ_TIME_ACCOUNTING): accounting misses all of them, the \
                 daemon-free column is left out since it cannot tell them from other tasks, and the paper's and the \
                 gap column, which trust the wall clock, need a quiet machine"
            }
            Some(false) => {
                "this kernel charges an interrupt to the task that it interrupts: accounting misses those that come while \
                 the fluid runs, and counts others' that come while the operation runs"
            }
            None => {
                "it is unknown whether this kernel charges interrupts to the task that they interrupt: it is assumed; if it \
                 does not, the daemon-free column is too low"
            }
        };
        let tick = match self.by_tick {
            Some(true) => {
                "the tick divides user from system time, and they add up to the precise sum: getrusage and the \
                 process clock agree in their sum, and only their parts are sampled"
            }
            Some(false) => "user and system time are precise: getrusage can be taken apart",
            None => "it is unknown whether user and system time are sampled: only their sum is used",
        };
        let tickless = self.tickless.as_ref().map(|list| {
            format!(
                "CPUs {list} have no tick while one task runs: beside the fluid there are two, so that the tick comes \
                 back and the operation pays for it here and not in its own life"
            )
        });
        [interrupts, tick].into_iter().map(str::to_owned).chain(tickless).collect()
    }
}

/// The kernel's own copy of its configuration, which is compressed.
fn config(files: &KernelFiles) -> Option<String> {
    use std::io::Read;
    let packed = files.read_bytes("/proc/config.gz")?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;

    #[test]
    fn a_configuration_in_the_boot_directory_is_read() {
        let machine = Machine::with_files(&[
            ("proc/sys/kernel/osrelease", "6.12.0\n"),
            ("boot/config-6.12.0", "CONFIG_IRQ_TIME_ACCOUNTING=y\nCONFIG_HZ=250\n# CONFIG_X is not set\n"),
        ]);
        let found = Accounting::read(&machine.files);
        assert_eq!((found.interrupts_apart, found.by_tick, found.hz), (Some(true), Some(true), Some(250)));
        assert!(found.setting_sentences()[0].contains("daemon-free column is left out"));
    }

    #[test]
    fn without_a_configuration_interrupt_accounting_follows_from_pressure_files() {
        let mut machine = Machine::with_files(&[("proc/pressure/cpu", "")]);
        assert_eq!(Accounting::read(&machine.files).interrupts_apart, Some(false));
        machine.write_file("proc/pressure/irq", "");
        assert_eq!(Accounting::read(&machine.files).interrupts_apart, Some(true));
        machine = Machine::with_files(&[]);
        assert_eq!(Accounting::read(&machine.files), Accounting::default());
        assert!(!Accounting::read(&machine.files).hides_interrupts());
    }

    #[test]
    fn cpus_without_a_tick_are_named() {
        let machine = Machine::with_files(&[("sys/devices/system/cpu/nohz_full", "2-3\n")]);
        let found = Accounting::read(&machine.files);
        assert!(found.setting_sentences().iter().any(|sentence| sentence.contains("CPUs 2-3")), "{found:?}");
        let machine = Machine::with_files(&[("sys/devices/system/cpu/nohz_full", "(null)\n")]);
        assert_eq!(Accounting::read(&machine.files).tickless, None);
    }
}
