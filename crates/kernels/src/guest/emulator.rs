//! QEMU as it is found here: whether it can be started, and its version.

use super::architecture::Architecture;
use super::last_words::printable_line;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::process::{Child, Command, Stdio};
use syscost_platform::error::{Error, Result};
use syscost_platform::process::find_on_path;

/// Why the emulator of an architecture could not be started.
pub fn start_error(architecture: &Architecture, cause: &std::io::Error) -> Error {
    let Architecture { emulator, package, .. } = architecture;
    match cause.kind() {
        std::io::ErrorKind::NotFound => Error::Missing(format!(
            "{emulator} is not on PATH: install it (Debian: apt-get install --no-install-recommends {package})"
        )),
        _ => Error::Missing(format!("{emulator} cannot be started: {cause}")),
    }
}

/// Its own name and version.
pub fn version(architecture: &Architecture) -> String {
    let output = Command::new(architecture.emulator).arg("--version").stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    printable_line(text.lines().next().unwrap_or(architecture.emulator))
}

/// Whether it can be started.
///
/// # Errors
/// There is none on PATH.
pub fn check_available(architecture: &Architecture) -> Result<()> {
    let missing = || start_error(architecture, &std::io::ErrorKind::NotFound.into());
    find_on_path(architecture.emulator).map(drop).ok_or_else(missing)
}

/// Kills the process group of a guest that was started as the first of it.
pub fn kill_guest(guest: &mut Child) {
    // It is not waited for yet, so that no other process has its number.
    let group = i32::try_from(guest.id()).map(Pid::from_raw);
    let _ = group.map(|group| killpg(group, Signal::SIGKILL));
    let _ = guest.wait();
}
