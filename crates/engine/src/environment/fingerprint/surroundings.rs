//! What a process inherits, what limits it, and where its files lie: all that its numbers depend on beside the machine.
//!
//! Nothing here identifies a machine or its owner: paths, addresses and names of users are left out.

mod process_state;
mod scratch_place;

use crate::platform::control_group;
use crate::platform::kernel_files::KernelFiles;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The surroundings of a process. `None` where the kernel does not tell, and in records from before they were kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Surroundings {
    /// Options of the mount that holds the scratch directory, and of its file system, sorted.
    pub scratch_options: Option<String>,
    /// Block device below the scratch directory, with the model of its disk.
    pub scratch_device: Option<String>,
    /// Filters of system calls: `off`, or their mode and number. The kernel does not tell what is in them.
    pub seccomp: Option<String>,
    /// What the kernel does about speculative stores in this process.
    pub store_bypass: Option<String>,
    /// What the kernel does about indirect branches in this process.
    pub indirect_branches: Option<String>,
    /// Scheduling class, with the priority of those that have one.
    pub scheduling: Option<String>,
    /// Niceness, from -20 to 19.
    pub nice: Option<String>,
    /// Memory that control groups allow: the smallest limits of this group and those above it.
    pub memory_limit: Option<String>,
    /// Rates to which control groups limit devices.
    pub io_limit: Option<String>,
    /// NUMA nodes from which this process may take memory.
    pub memory_nodes: Option<String>,
    /// Whether the user namespace is the one that the machine began with.
    pub user_namespace: Option<String>,
    /// The program that traces this process.
    pub tracer: Option<String>,
    /// Variables that change what the C library does, and a burden that `syscost burden` has put on.
    pub environment: Option<String>,
    /// Whether programs that this process starts can gain privileges.
    pub new_privileges: Option<String>,
    /// Whether addresses of this process are drawn by chance.
    pub layout: Option<String>,
    /// By how much the kernel may delay a timer of this process, ns.
    pub timer_slack_ns: Option<String>,
    /// Whether this process may get huge pages.
    pub process_huge_pages: Option<String>,
    /// The security module's label of this process.
    pub confinement: Option<String>,
}

impl Surroundings {
    /// Reads the surroundings of this process, whose files are made below `scratch`.
    pub(super) fn read(files: &KernelFiles, scratch: &Path) -> Self {
        let status = files.read_text("proc/self/status").unwrap_or_default();
        let scheduled =
            files.read_text("proc/self/stat").and_then(|text| process_state::parse_scheduling(&text));
        let (scheduling, nice) = scheduled.unzip();
        Self {
            scratch_options: scratch_place::mount_option_text(files, scratch),
            scratch_device: scratch_place::block_device_name(files, scratch),
            seccomp: process_state::seccomp_state(&status),
            store_bypass: process_state::status_value(&status, "Speculation_Store_Bypass"),
            indirect_branches: process_state::status_value(&status, "SpeculationIndirectBranch"),
            scheduling,
            nice,
            memory_limit: control_group::memory_limits(files),
            io_limit: control_group::io_limits(files),
            memory_nodes: process_state::status_value(&status, "Mems_allowed_list"),
            user_namespace: files
                .read_text("proc/self/uid_map")
                .map(|map| process_state::user_namespace_kind(&map).into()),
            tracer: process_state::tracing_program(files, &status),
            environment: files
                .read_bytes("proc/self/environ")
                .map(|bytes| process_state::relevant_variables(&bytes)),
            new_privileges: process_state::status_flag_word(&status, "NoNewPrivs", ["allowed", "forbidden"]),
            layout: files
                .read_first_line("proc/self/personality")
                .and_then(|line| process_state::address_layout(&line)),
            timer_slack_ns: files.read_first_line("proc/self/timerslack_ns"),
            process_huge_pages: process_state::status_flag_word(
                &status,
                "THP_enabled",
                ["forbidden", "allowed"],
            ),
            confinement: files
                .read_first_line("proc/self/attr/current")
                .map(|line| process_state::security_profile(&line)),
        }
    }
}
