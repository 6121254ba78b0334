//! The names by which the user selects a kernel: a package, an image, a built tree, the host's kernel or user-mode Linux. A command
//! line may follow behind `@`.

use super::debian::{self, Package};
use super::emulator::{Architecture, program_segments};
use crate::reboot::boot_kernel::INSTALLED;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::plain_file;
use syscost_platform::process::find_on_path;

/// A kernel that can be booted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Its name as the user gave it, with the command line.
    pub name: String,
    /// The file of its image.
    pub image: PathBuf,
    /// The file of its configuration, if there is one.
    pub configuration: Option<PathBuf>,
    /// Words that are added to its command line.
    pub command_line: String,
}

/// The first address above a program's address space: a kernel that is loaded below it runs as a program.
const UPPER_HALF: u64 = 1 << 47;
/// The name of a user-mode Linux as a kernel, and the name of its program on PATH.
const USER_MODE: (&str, &str) = ("uml", "linux.uml");

impl Kernel {
    /// The architecture of its image.
    pub fn architecture(&self) -> &'static Architecture {
        Architecture::of_image(&self.image)
    }

    /// Whether it is a user-mode Linux: a kernel that runs as a process, and needs no emulator.
    ///
    /// # Errors
    /// Its image cannot be read.
    pub fn is_user_mode(&self) -> Result<bool> {
        let mut head = [0; HEAD];
        let file = plain_file::open(&self.image)?;
        let read = file.read_at(&mut head, 0).map_err(|e| Error::file(&self.image, "reading", e))?;
        Ok(first_load_address(&head[..read]).is_some_and(|address| address < UPPER_HALF))
    }
}

/// Bytes that are read of an image: the ELF header and the program headers behind it.
const HEAD: usize = 4096;

/// The address at which the first segment of a program is loaded; `None` if it is no program.
fn first_load_address(head: &[u8]) -> Option<u64> {
    const LOADED: u64 = 1;
    let segments = program_segments(head)?;
    segments.into_iter().flatten().find(|segment| segment.kind == LOADED).map(|segment| segment.address)
}

/// The paths of images in a built tree.
const IN_TREE: [&str; 5] = [
    "arch/x86/boot/bzImage",
    "arch/x86_64/boot/bzImage",
    "arch/arm64/boot/Image",
    "arch/riscv/boot/Image",
    "vmlinux",
];

/// The places where kernels are looked for.
#[derive(Clone, Debug)]
pub struct Supply {
    /// Directory of downloaded kernels, one directory each.
    pub downloads: PathBuf,
    /// Called before a package is downloaded.
    pub announce: fn(&Package),
}

impl Supply {
    /// Finds a kernel by its name, and downloads it if it is a package that is not there yet.
    ///
    /// # Errors
    /// Nothing has this name, or the package cannot be downloaded.
    pub fn find(&self, name: &str) -> Result<Kernel> {
        let (place, command_line) = name.split_once('@').unwrap_or((name, ""));
        check_command_line(command_line)?;
        let (image, configuration) = match place {
            _ if place.contains('/') => image_at_path(Path::new(place))?,
            "host" => host_image()?,
            name if name == USER_MODE.0 => user_mode_image()?,
            "" => {
                return Err(Error::Usage(format!(
                    "{name:?} names no kernel: expected one before the @, such as 6.12"
                )));
            }
            _ => self.find_release(place)?,
        };
        Ok(Kernel { name: name.into(), image, configuration, command_line: command_line.into() })
    }

    /// The architecture of the kernel of this name, without a download: packages are of x86-64.
    pub fn architecture(name: &str) -> &'static Architecture {
        let place = Path::new(name.split_once('@').map_or(name, |(place, _)| place));
        image_at_path(place)
            .map_or(Kernel::default().architecture(), |(image, _)| Architecture::of_image(&image))
    }

    /// The image and the configuration of a release: installed, downloaded, or from the package that fits `name`.
    fn find_release(&self, name: &str) -> Result<(PathBuf, Option<PathBuf>)> {
        let there = [Path::new(INSTALLED), &self.downloads.join(name)]
            .into_iter()
            .find_map(|place| image_in_directory(place, name));
        if let Some(found) = there {
            return Ok(found);
        }
        let package = debian::find_package(name, &debian::available_packages()?)?;
        self.fetch_image(&package)
    }

    /// The image and the configuration of a package, which is downloaded if it is not there.
    ///
    /// # Errors
    /// It cannot be downloaded or unpacked.
    pub fn fetch_image(&self, package: &Package) -> Result<(PathBuf, Option<PathBuf>)> {
        let place = self.downloads.join(&package.release);
        if let Some(found) = image_in_directory(&place, &package.release) {
            return Ok(found);
        }
        (self.announce)(package);
        debian::download_package(package, &place)?;
        image_in_directory(&place, &package.release).ok_or_else(|| {
            Error::Missing(format!("the package {} holds no vmlinuz-{}", package.name, package.release))
        })
    }

    /// Releases that were downloaded, sorted.
    pub fn downloaded_releases(&self) -> Vec<String> {
        entry_names(&self.downloads)
            .filter(|name| image_in_directory(&self.downloads.join(name), name).is_some())
            .collect()
    }
}

/// Releases that are installed on this machine, sorted.
pub fn installed_releases() -> Vec<String> {
    entry_names(Path::new(INSTALLED))
        .filter_map(|name| name.strip_prefix("vmlinuz-").map(str::to_owned))
        .collect()
}

fn entry_names(directory: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names.into_iter()
}

/// The image and the configuration of a release in a directory, if the image is there.
fn image_in_directory(directory: &Path, release: &str) -> Option<(PathBuf, Option<PathBuf>)> {
    let image = directory.join(format!("vmlinuz-{release}"));
    let configuration = directory.join(format!("config-{release}"));
    image.is_file().then(|| (image, configuration.is_file().then_some(configuration)))
}

fn host_image() -> Result<(PathBuf, Option<PathBuf>)> {
    let release = KernelFiles::live().kernel_release().unwrap_or_default();
    image_in_directory(Path::new(INSTALLED), &release).ok_or_else(|| {
        Error::Usage(format!(
            "the image of the running kernel is not at {INSTALLED}/vmlinuz-{release}: give its path"
        ))
    })
}

/// The program of Debian's user-mode Linux, which has no file of its configuration.
fn user_mode_image() -> Result<(PathBuf, Option<PathBuf>)> {
    let missing = || {
        Error::Missing(format!(
            "{} is not on PATH: install it (Debian: apt-get install user-mode-linux)",
            USER_MODE.1
        ))
    };
    Ok((find_on_path(USER_MODE.1).ok_or_else(missing)?, None))
}

/// The image at a path, or in the tree at a path, and its configuration.
fn image_at_path(path: &Path) -> Result<(PathBuf, Option<PathBuf>)> {
    let path = std::path::absolute(path).map_err(|e| Error::file(path, "looking for", e))?;
    if path.is_dir() {
        let image = IN_TREE.iter().map(|image| path.join(image)).find(|image| image.is_file());
        let image = image.ok_or_else(|| {
            let expected = IN_TREE.join(", ");
            Error::Usage(format!(
                "{}: no kernel was built in this tree (looked for {expected})",
                path.display()
            ))
        })?;
        let configuration = path.join(".config");
        return Ok((image, configuration.is_file().then_some(configuration)));
    }
    let kind = std::fs::metadata(&path).map_err(|e| Error::file(&path, "looking for", e))?;
    if !kind.is_file() {
        return Err(Error::Usage(format!(
            "{}: not a plain file: expected a bzImage, a vmlinux or a tree",
            path.display()
        )));
    }
    let beside = path.file_name().and_then(|name| name.to_str()?.strip_prefix("vmlinu")?.get(2..));
    let configuration = beside.map(|release| path.with_file_name(format!("config-{release}")));
    Ok((path.clone(), configuration.filter(|file| file.is_file())))
}

/// Checks words for a kernel's command line: `--` is refused, since it would end the words for the kernel.
fn check_command_line(words: &str) -> Result<()> {
    let is_wrong = words.split_whitespace().any(|word| word == "--") || words.chars().any(char::is_control);
    if !is_wrong && words.len() <= 1024 {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{words:?} cannot stand behind the @: expected words of a kernel's command line, without -- and on one line"
    )))
}

// The differences between the configurations of two kernels that affect the cost of operations.

/// Names, or beginnings of names, of options that affect costs: the timer, preemption, mitigations, debugging.
const OPTIONS: [&str; 26] = [
    "HZ",
    "NO_HZ",
    "PREEMPT",
    "MITIGATION_",
    "PAGE_TABLE_ISOLATION",
    "RETPOLINE",
    "RETHUNK",
    "CPU_UNRET_ENTRY",
    "CPU_IBPB_ENTRY",
    "CPU_IBRS_ENTRY",
    "CPU_SRSO",
    "SLS",
    "DEBUG_LOCK",
    "DEBUG_PREEMPT",
    "DEBUG_VM",
    "DEBUG_PAGEALLOC",
    "DEBUG_ATOMIC",
    "PROVE_LOCKING",
    "LOCKDEP",
    "KASAN",
    "KCSAN",
    "UBSAN",
    "HARDENED_USERCOPY",
    "INIT_ON_",
    "RANDOMIZE_KSTACK_OFFSET",
    "TRANSPARENT_HUGEPAGE",
];
/// The largest file that is read as a configuration, bytes.
const LARGEST: u64 = 4 << 20;

/// Options by name, with their values. An option that is off is left out.
type Configuration = BTreeMap<String, String>;

/// The differences between the configurations of the two kernels; empty if one configuration cannot be read.
pub fn configuration_differences(kernels: &[Kernel; 2]) -> Vec<String> {
    let text =
        |kernel: &Kernel| kernel.configuration.as_deref().and_then(|path| read_configuration(path).ok());
    match [text(&kernels[0]), text(&kernels[1])] {
        [Some(a), Some(b)] => differences_of_texts(&a, &b),
        _ => Vec::new(),
    }
}

/// Reads the text of a configuration.
///
/// # Errors
/// It is no plain file, too large, or cannot be read.
fn read_configuration(path: &Path) -> Result<String> {
    let bytes = plain_file::read(path, LARGEST)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The options in the text of a configuration that affect costs.
fn parse_options(text: &str) -> Configuration {
    let option = |line: &str| {
        let (name, value) = line.trim().strip_prefix("CONFIG_")?.split_once('=')?;
        OPTIONS.iter().any(|option| name.starts_with(option)).then(|| (name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(option).collect()
}

/// Options that affect costs and differ, such as `HZ: 250, then 1000`. A renamed mitigation is compared under its old name.
fn differences_of_texts(a: &str, b: &str) -> Vec<String> {
    let [a, b] =
        [a, b].map(|text| parse_options(text).into_iter().map(with_old_name).collect::<Configuration>());
    let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let value = |of: &Configuration, name: &String| {
        of.get(name).map_or("off".into(), |value| super::console::printable_line(value))
    };
    let differing = names.into_iter().filter(|name| a.get(*name) != b.get(*name));
    differing.map(|name| format!("{name}: {}, then {}", value(&a, name), value(&b, name))).collect()
}

/// Replaces the name of a mitigation of Linux 6.9 and later, which begins with `MITIGATION_`, by its name in older versions.
fn with_old_name((name, value): (String, String)) -> (String, String) {
    let old = name.strip_prefix("MITIGATION_").map(|rest| match rest {
        "UNRET_ENTRY" | "IBPB_ENTRY" | "IBRS_ENTRY" | "SRSO" => format!("CPU_{rest}"),
        rest => rest.to_owned(),
    });
    (old.unwrap_or(name), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supply(downloads: &Path) -> Supply {
        Supply { downloads: downloads.into(), announce: |_| () }
    }

    fn made(path: PathBuf) -> PathBuf {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(&path, "image").expect("written");
        path
    }

    #[test]
    fn an_image_a_tree_and_a_download_are_found_with_their_configuration() {
        let place = tempfile::tempdir().expect("a directory");
        let image = made(place.path().join("vmlinuz-6.9"));
        let configuration = made(place.path().join("config-6.9"));
        let supply = supply(&place.path().join("downloads"));
        let found = supply.find(&format!("{}@pti=on", image.display())).expect("an image");
        assert_eq!((found.image, found.configuration), (image, Some(configuration)));
        assert_eq!(found.command_line, "pti=on");

        let built = made(place.path().join("tree/arch/x86/boot/bzImage"));
        let found = supply.find(&place.path().join("tree").display().to_string()).expect("a tree");
        assert_eq!((found.image, found.configuration), (built, None));

        let downloaded = made(place.path().join("downloads/6.8-x/vmlinuz-6.8-x"));
        assert_eq!(supply.find("6.8-x").expect("a download").image, downloaded);
        assert_eq!(supply.downloaded_releases(), ["6.8-x"]);
    }

    #[test]
    fn a_kernel_that_is_a_program_is_user_mode_linux() {
        let place = tempfile::tempdir().expect("a directory");
        let elf = |kind: u8, address: u64| {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.resize(64 + 2 * 56, 0);
            (bytes[32], bytes[54], bytes[56], bytes[64], bytes[120]) = (64, 56, 2, kind, 1);
            bytes[80..88].copy_from_slice(&address.to_le_bytes());
            bytes[136..144].copy_from_slice(&0x6000_0000_u64.to_le_bytes());
            bytes
        };
        let is = |bytes: &[u8]| {
            let image = place.path().join("image");
            std::fs::write(&image, bytes).expect("written");
            Kernel { image, ..Kernel::default() }.is_user_mode().expect("read")
        };
        assert!(is(&elf(1, 0x6000_0000)) && is(&elf(6, u64::MAX)));
        assert!(!is(&elf(1, 0xffff_ffff_8100_0000)));
        assert!(!is(b"MZ\xea\x07") && !is(b"") && !is(&elf(6, 0)[..100]));
    }

    #[test]
    fn names_of_no_kernel_are_refused_with_a_reason() {
        let place = tempfile::tempdir().expect("a directory");
        let supply = supply(place.path());
        let directory = place.path().display().to_string();
        for (name, words) in [
            ("@pti=on", "before the @"),
            (directory.as_str(), "no kernel was built"),
            ("/dev/null", "not a plain file"),
            ("/no/such/image", "looking for"),
            ("/dev/null@quiet -- sh", "behind the @"),
        ] {
            let said = supply.find(name).expect_err(name).to_string();
            assert!(said.contains(words), "{name}: {said}");
        }
    }

    #[test]
    fn only_options_that_affect_costs_are_listed() {
        let a = "CONFIG_HZ=250\nCONFIG_USB=y\n# CONFIG_PREEMPT_RT is not set\nCONFIG_RETPOLINE=y\n";
        let b = "CONFIG_HZ=1000\nCONFIG_USB=m\nCONFIG_PREEMPT_RT=y\nCONFIG_MITIGATION_RETPOLINE=y\n";
        assert_eq!(differences_of_texts(a, b), ["HZ: 250, then 1000", "PREEMPT_RT: off, then y"]);
        assert!(differences_of_texts(a, a).is_empty());
    }

    #[test]
    fn a_device_is_no_configuration() {
        assert!(read_configuration(Path::new("/dev/zero")).is_err());
    }
}
