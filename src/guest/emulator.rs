//! QEMU as it is found here: whether it can be started, and its version.

use super::last_words::inert;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The emulator, looked for on PATH.
pub const EMULATOR: &str = "qemu-system-x86_64";

/// Why it could not be started.
pub fn not_started(cause: &std::io::Error) -> Error {
    match cause.kind() {
        std::io::ErrorKind::NotFound => Error::Missing(format!(
            "{EMULATOR} is not on PATH: install it (Debian: apt-get install --no-install-recommends qemu-system-x86)"
        )),
        _ => Error::Missing(format!("{EMULATOR} cannot be started: {cause}")),
    }
}

/// Its own name and version.
pub fn version() -> String {
    let output = Command::new(EMULATOR).arg("--version").stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    inert(text.lines().next().unwrap_or(EMULATOR))
}

/// Whether it can be started.
///
/// # Errors
/// There is none on PATH.
pub fn check() -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        std::env::split_paths(&path).any(|directory: PathBuf| Path::new(&directory).join(EMULATOR).is_file());
    if is_there { Ok(()) } else { Err(not_started(&std::io::ErrorKind::NotFound.into())) }
}
