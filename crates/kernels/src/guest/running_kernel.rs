//! The kernel that runs here, as a guest tells its host.

use super::question::VERSION;
use crate::executed::execution_log::symbol_line;
use std::io::{BufRead, BufReader};
use syscost_engine::record::guest_side::Identity;
use syscost_platform::emulator_mark;
use syscost_platform::kernel_files::{KernelFiles, field};
use syscost_platform::process;
use syscost_platform::time::kernel_clock::clock_source;

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
        clocksource: clock_source(&files).unwrap_or_default(),
        page_size: process::page_size(),
        mitigations,
        processor_flags: processor_flags(&files),
        tool: env!("CARGO_PKG_VERSION").into(),
    }
}

/// What the kernel says of its processor, sorted: features and bugs by which it chooses among alternatives.
fn processor_flags(files: &KernelFiles) -> Vec<String> {
    let text = files.read_text("proc/cpuinfo").unwrap_or_default();
    let lists = ["flags", "bugs", "Features", "isa"].into_iter().filter_map(|key| field(&text, key));
    let mut flags: Vec<_> = lists.flat_map(str::split_whitespace).map(str::to_owned).collect();
    flags.sort();
    flags
}

/// Says the addresses of all functions of this kernel to the emulator.
pub fn say_symbols() {
    let Ok(file) = std::fs::File::open("/proc/kallsyms") else { return };
    let lines = BufReader::new(file).lines().map_while(std::io::Result::ok);
    lines.filter_map(|line| symbol_line(&line)).for_each(|line| emulator_mark::say_line(&line));
}
