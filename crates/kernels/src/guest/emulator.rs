//! QEMU as it is found here: whether it can be started, its version, and whether it loads the plugin that counts executed
//! instructions (`plugin/execution_counts.rs`), with the arguments by which the plugin knows what to write.

use super::architecture::Architecture;
use super::console::printable_line;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
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

/// The library, empty where the compiler could not build it.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/execution_counts.so"));
/// What follows the version in the library.
const BEHIND_VERSION: &[u8] = b"syscost's version <-";
/// Versions of the emulator's interface for plugins that the library knows, newest first.
const VERSIONS: [u8; 4] = [4, 3, 2, 1];
/// What the library says when it is loaded for a trial.
const LOADED: &str = "syscost: loaded";

/// The library in a file, as this emulator loads it.
#[derive(Clone, Debug)]
pub struct Plugin {
    path: PathBuf,
    /// Write the order of execution, too.
    pub writes_order: bool,
    /// Write the text of each instruction, too.
    pub writes_listing: bool,
}

impl Plugin {
    /// Writes the library into this directory, with the version that this emulator asks for. The inner error is why
    /// this emulator does not load it, in a sentence.
    ///
    /// # Errors
    /// The file cannot be written, or there is no emulator.
    pub fn install(
        directory: &Path,
        architecture: &Architecture,
    ) -> Result<std::result::Result<Self, String>> {
        let Some(at) = LIBRARY.windows(BEHIND_VERSION.len()).position(|bytes| bytes == BEHIND_VERSION) else {
            return Ok(Err("this program was built without the plugin that counts".into()));
        };
        let path = directory.join("execution_counts.so");
        let mut refusal = String::new();
        for version in VERSIONS {
            let mut library = LIBRARY.to_vec();
            library[at - 4..at].copy_from_slice(&i32::from(version).to_ne_bytes());
            std::fs::write(&path, library).map_err(|e| Error::file(&path, "writing", e))?;
            let plugin = Self { path: path.clone(), writes_order: false, writes_listing: false };
            match plugin.try_loading(architecture)? {
                None => return Ok(Ok(plugin)),
                Some(words) => refusal = words,
            }
        }
        Ok(Err(refusal))
    }

    /// What the emulator says instead of loading it.
    fn try_loading(&self, architecture: &Architecture) -> Result<Option<String>> {
        let mut command = Command::new(architecture.emulator);
        command.args(["-machine", "none", "-accel", "tcg", "-nodefaults", "-display", "none"]);
        command.args(["-plugin", &format!("file={}", escape_commas(&self.path))]);
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|e| super::emulator::start_error(architecture, &e))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let words = said.lines().next().unwrap_or("it says nothing");
        Ok((!said.contains(LOADED)).then(|| printable_line(words)))
    }

    /// The emulator's argument that makes it write its counts to this file.
    pub fn argument(&self, out: &Path) -> String {
        let order = if self.writes_order { ",order=on" } else { "" };
        let listing = if self.writes_listing { ",listing=on" } else { "" };
        format!("file={},out={}{order}{listing}", escape_commas(&self.path), escape_commas(out))
    }
}

/// A path in a list of the emulator's, in which commas separate.
fn escape_commas(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::super::architecture::X86_64;
    use super::*;
    use syscost_platform::testing::print_skipped;

    #[test]
    fn the_library_has_one_place_for_its_version() {
        if LIBRARY.is_empty() {
            return print_skipped("the plugin could not be built");
        }
        let places = LIBRARY.windows(BEHIND_VERSION.len()).filter(|bytes| *bytes == BEHIND_VERSION);
        assert_eq!(places.count(), 1);
    }

    #[test]
    fn an_emulator_that_is_here_loads_it_by_one_of_the_versions() {
        if super::super::emulator::check_available(&X86_64).is_err() || LIBRARY.is_empty() {
            return print_skipped("there is no QEMU, or the plugin could not be built");
        }
        let place = tempfile::tempdir().expect("a directory");
        let plugin = Plugin::install(place.path(), &X86_64).expect("tried").expect("loaded");
        let out = place.path().join("a,b");
        assert!(plugin.argument(&out).ends_with("a,,b"), "{}", plugin.argument(&out));
    }
}
