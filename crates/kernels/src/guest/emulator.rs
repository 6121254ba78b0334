//! QEMU on this machine: whether it can be started, its version, and whether it loads the plugin that counts executed
//! instructions (`plugin/execution_counts.rs`), with the plugin's arguments.

use super::console::printable_line;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use syscost_platform::error::{Error, Result};
use syscost_platform::plain_file;
use syscost_platform::process::find_on_path;

/// The error for an emulator of this architecture that could not be started.
pub fn start_error(architecture: &Architecture, cause: &std::io::Error) -> Error {
    let Architecture { emulator, package, .. } = architecture;
    match cause.kind() {
        std::io::ErrorKind::NotFound => Error::Missing(format!(
            "{emulator} is not on PATH: install it (Debian: apt-get install --no-install-recommends {package})"
        )),
        _ => Error::Missing(format!("{emulator} cannot be started: {cause}")),
    }
}

/// The emulator's name and version, as `--version` prints them.
pub fn version(architecture: &Architecture) -> String {
    let output = Command::new(architecture.emulator).arg("--version").stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    printable_line(text.lines().next().unwrap_or(architecture.emulator))
}

/// Checks that the emulator of this architecture is on PATH.
///
/// # Errors
/// It is not on PATH.
pub fn check_available(architecture: &Architecture) -> Result<()> {
    let missing = || start_error(architecture, &std::io::ErrorKind::NotFound.into());
    find_on_path(architecture.emulator).map(drop).ok_or_else(missing)
}

/// Kills the process group of a guest, which was started as the group's leader, and waits for the guest.
pub fn kill_guest(guest: &mut Child) {
    // The guest has not been waited for, so no other process can have its number.
    let group = i32::try_from(guest.id()).map(Pid::from_raw);
    let _ = group.map(|group| killpg(group, Signal::SIGKILL));
    let _ = guest.wait();
}

/// The bytes of the plugin's library; empty if the compiler could not build it.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/execution_counts.so"));
/// The text that follows the version in the library.
const BEHIND_VERSION: &[u8] = b"syscost's version <-";
/// Versions of the emulator's interface for plugins that the library knows, newest first.
const VERSIONS: [u8; 4] = [4, 3, 2, 1];
/// The beginning of the line that the library writes when it is loaded for a trial.
const LOADED: &str = "syscost: loaded";

/// The plugin's library in a file, with the version that this emulator loads.
#[derive(Clone, Debug)]
pub struct Plugin {
    path: PathBuf,
    /// Whether it also writes the order of execution.
    pub writes_order: bool,
    /// Whether it also writes the disassembly of each instruction.
    pub writes_listing: bool,
}

impl Plugin {
    /// Writes the library into this directory, with the newest version that this emulator loads. The inner error says in a
    /// sentence why the emulator loads none.
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

    /// Starts the emulator with the library; `None` if it loads it, and otherwise the first line of its errors.
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

    /// The value of the emulator's option `-plugin` with which the plugin writes its counts to the file `out`.
    pub fn argument(&self, out: &Path) -> String {
        let order = if self.writes_order { ",order=on" } else { "" };
        let listing = if self.writes_listing { ",listing=on" } else { "" };
        format!("file={},out={}{order}{listing}", escape_commas(&self.path), escape_commas(out))
    }
}

/// A path as an item of a comma-separated list of the emulator: commas are doubled.
fn escape_commas(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

// The architectures whose kernels can be booted, and the machine that is emulated for each.

/// One architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Rust's name of the architecture.
    pub name: &'static str,
    /// Rust's target for Linux.
    pub target: &'static str,
    /// The emulator's program, which is looked for on PATH.
    pub emulator: &'static str,
    /// Debian's package of the emulator.
    pub package: &'static str,
    /// QEMU's name of the machine.
    pub machine: &'static str,
    /// QEMU's name of the default processor.
    pub processor: &'static str,
    /// The kernel's name of the first serial line.
    pub console: &'static str,
    /// Words that are added to a kernel's command line.
    pub command_line: &'static str,
    /// The number of the architecture in an ELF header: `e_machine` of elf(5).
    pub elf_machine: u16,
    /// The magic number in bytes 56 to 59 of an image, if images have one (Documentation/arch/arm64/booting.rst,
    /// riscv/boot-image-header.rst).
    magic: Option<[u8; 4]>,
}

/// x86-64.
///
/// The command line hides the processor's fast string instructions. A kernel that finds them clears and copies memory with them,
/// but each version requires other features: 6.1 uses string instructions where 6.12 uses loops. With the features hidden, both
/// use loops, so that this choice makes no difference between two kernels. The numbers are `fzrm`, `fsrs` and `fsrc`, for which
/// Linux 6.12 has no names. Counts of emulated instructions do not show which alternative is faster.
pub static X86_64: Architecture = Architecture {
    name: "x86_64",
    target: "x86_64-unknown-linux-gnu",
    emulator: "qemu-system-x86_64",
    package: "qemu-system-x86",
    machine: "pc",
    processor: "max",
    console: "ttyS0",
    command_line: "reboot=t clearcpuid=rep_good,erms,fsrm,394,395,396",
    elf_machine: 62,
    magic: None,
};

/// The other architectures. `pauth-impdef` avoids Arm's own algorithm of pointer authentication, which takes most of an emulator's time.
static OTHERS: [Architecture; 2] = [
    Architecture {
        name: "aarch64",
        target: "aarch64-unknown-linux-gnu",
        emulator: "qemu-system-aarch64",
        package: "qemu-system-arm",
        machine: "virt",
        processor: "max,pauth-impdef=on",
        console: "ttyAMA0",
        command_line: "",
        elf_machine: 183,
        magic: Some(*b"ARMd"),
    },
    Architecture {
        name: "riscv64",
        target: "riscv64gc-unknown-linux-gnu",
        emulator: "qemu-system-riscv64",
        package: "qemu-system-misc",
        machine: "virt",
        processor: "rv64",
        console: "ttyS0",
        command_line: "",
        elf_machine: 243,
        magic: Some(*b"RSC\x05"),
    },
];

impl Architecture {
    /// The architecture of a kernel's image; x86-64 if the image cannot be read or names no architecture.
    pub fn of_image(image: &Path) -> &'static Self {
        let mut head = [0; 64];
        // Bytes behind the end of a short image stay zero.
        let _ = plain_file::open(image).map(|file| file.read_at(&mut head, 0));
        let is_of = |it: &&Self| {
            let is_program = head.starts_with(b"\x7fELF") && head[18..20] == it.elf_machine.to_le_bytes();
            is_program || it.magic.is_some_and(|magic| head[56..60] == magic)
        };
        OTHERS.iter().find(is_of).unwrap_or(&X86_64)
    }
}

/// A segment of a program: its kind (`p_type`), and the address at which it is loaded.
pub(super) struct Segment {
    pub(super) kind: u64,
    pub(super) address: u64,
}

/// The segments of a 64-bit little-endian ELF program (elf(5)), read from its first bytes; `None` if `head` is no such program.
/// A segment is `None` if its header lies behind these bytes.
pub(super) fn program_segments(head: &[u8]) -> Option<Vec<Option<Segment>>> {
    let number = |at: u64, bytes: usize| {
        let at = usize::try_from(at).ok()?;
        let field = head.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (begin, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let segment = |n: u64| {
        let at = begin.checked_add(n * size)?;
        Some(Segment { kind: number(at, 4)?, address: number(at.checked_add(16)?, 8)? })
    };
    Some((0..count).map(segment).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_platform::testing::print_skipped;

    #[test]
    fn the_text_behind_the_version_occurs_once_in_the_library() {
        if LIBRARY.is_empty() {
            return print_skipped("the plugin could not be built");
        }
        let places = LIBRARY.windows(BEHIND_VERSION.len()).filter(|bytes| *bytes == BEHIND_VERSION);
        assert_eq!(places.count(), 1);
    }

    #[test]
    fn an_installed_emulator_loads_one_version_of_the_plugin() {
        if super::super::emulator::check_available(&X86_64).is_err() || LIBRARY.is_empty() {
            return print_skipped("there is no QEMU, or the plugin could not be built");
        }
        let place = tempfile::tempdir().expect("a directory");
        let plugin = Plugin::install(place.path(), &X86_64).expect("tried").expect("loaded");
        let out = place.path().join("a,b");
        assert!(plugin.argument(&out).ends_with("a,,b"), "{}", plugin.argument(&out));
    }

    #[test]
    fn an_image_names_its_architecture() {
        let place = tempfile::tempdir().expect("a directory");
        let image = place.path().join("image");
        let of = |head: &[(usize, &[u8])]| {
            let mut bytes = vec![0; 4096];
            head.iter().for_each(|(at, part)| bytes[*at..at + part.len()].copy_from_slice(part));
            std::fs::write(&image, bytes).expect("written");
            Architecture::of_image(&image).name
        };
        assert_eq!(of(&[(0, b"MZ"), (56, b"ARMd")]), "aarch64");
        assert_eq!(of(&[(0, b"MZ"), (56, b"RSC\x05")]), "riscv64");
        assert_eq!(of(&[(0, b"\x7fELF\x02\x01"), (18, b"\xb7\x00")]), "aarch64");
        assert_eq!(of(&[(0, b"\x7fELF\x02\x01"), (18, b"\x3e\x00")]), "x86_64");
        assert_eq!(of(&[(0, b"MZ"), (0x202, b"HdrS")]), "x86_64");
        assert_eq!(Architecture::of_image(Path::new("/no/such/image")).name, "x86_64");
    }
}
