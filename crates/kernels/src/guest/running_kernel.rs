//! The kernel that runs here, as a guest tells its host.

use super::question::VERSION;
use syscost::record::guest_side::Identity;
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::process;

/// The identity of this kernel.
pub fn identity() -> Identity {
    let files = KernelFiles::live();
    let line = |file: &str| files.read_first_line(file).unwrap_or_default();
    let mitigations = files.first_lines_in("sys/devices/system/cpu/vulnerabilities");
    let mut mitigations: Vec<_> = mitigations.collect();
    mitigations.sort();
    Identity {
        version: VERSION,
        release: line("proc/sys/kernel/osrelease"),
        build: line("proc/sys/kernel/version"),
        command_line: line("proc/cmdline"),
        clocksource: line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        page_size: process::page_size(),
        mitigations,
        tool: env!("CARGO_PKG_VERSION").into(),
    }
}
