//! The kernel that runs, as it describes itself.

use serde::{Deserialize, Serialize};
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;

/// A kernel that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Running {
    /// `uname -r`.
    pub release: String,
    /// `/proc/cmdline`.
    pub command_line: String,
    /// The kernel's name of this boot, `/proc/sys/kernel/random/boot_id`.
    pub boot: String,
}

impl Running {
    /// The running kernel.
    ///
    /// # Errors
    /// The kernel does not show which it is, or which boot this is.
    pub fn now(files: &KernelFiles) -> Result<Self> {
        let line = |file: &str| {
            let missing =
                || Error::Missing(format!("/{file} cannot be read: a session cannot tell its boots apart"));
            files.read_first_line(file).ok_or_else(missing)
        };
        Ok(Self {
            release: line("proc/sys/kernel/osrelease")?,
            command_line: line("proc/cmdline").unwrap_or_default(),
            boot: line("proc/sys/kernel/random/boot_id")?,
        })
    }
}
