//! A kernel that this machine can boot: its image, the initramfs beside it, and words for its command line. Also the running
//! kernel: its release, command line and boot.

use crate::guest::debian::version_numbers;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::plain_file;

/// A kernel that can be booted on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootKernel {
    /// Its name as the user gave it, with the words behind `@`.
    pub name: String,
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// The file of its image.
    pub image: PathBuf,
    /// The initramfs that its distribution made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initramfs: Option<PathBuf>,
    /// Words that are added to the machine's own command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// Why the session measures it no further; `None` if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
}

/// The directory in which distributions install kernels.
pub const INSTALLED: &str = "/boot";
/// The beginning of the names of images.
const IMAGE: &str = "vmlinuz-";

impl BootKernel {
    /// The kernel of this name: a release installed in `directory`, the beginning of one (the newest is meant), or the path of an
    /// image. Words for its command line may follow behind `@`.
    ///
    /// # Errors
    /// There is no such kernel, or neither the image nor its name states the release.
    pub fn find(name: &str, directory: &Path) -> Result<Self> {
        let (place, words) = name.split_once('@').unwrap_or((name, ""));
        let image = if place.contains('/') { place.into() } else { find_installed_image(place, directory)? };
        let image = std::path::absolute(&image).map_err(|e| Error::file(&image, "finding", e))?;
        let release = read_release(&image)?;
        Ok(Self {
            name: name.into(),
            initramfs: find_initramfs(&image, &release),
            release,
            image,
            words: words.into(),
            given_up: None,
        })
    }

    /// The words for its command line, one by one.
    pub fn command_line_words(&self) -> impl Iterator<Item = &str> {
        self.words.split_whitespace()
    }

    /// Whether this is the running kernel: that has its release, all its words, and no other word of `others`.
    pub(super) fn is_running(&self, running: &Running, others: &[&str]) -> bool {
        let has = |word: &str| running.command_line.split_whitespace().any(|known| known == word);
        let is_own = |word: &str| self.command_line_words().any(|own| own == word);
        self.release == running.release
            && self.command_line_words().all(has)
            && !others.iter().any(|word| has(word) && !is_own(word))
    }
}

/// The image of the installed release `name`, or else of the newest one that begins with `name` at the end of a number.
fn find_installed_image(name: &str, directory: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(directory).map_err(|e| Error::file(directory, "listing kernels", e))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut releases: Vec<_> = names.filter_map(|file| Some(file.strip_prefix(IMAGE)?.to_owned())).collect();
    releases.sort_by_key(|release| version_numbers(release));
    let is_meant = |release: &&String| {
        let rest = release.strip_prefix(name);
        rest.is_some_and(|rest| !name.is_empty() && !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let exact = releases.iter().find(|release| *release == name);
    let meant = exact.or_else(|| releases.iter().rev().find(is_meant));
    meant.map(|release| directory.join(format!("{IMAGE}{release}"))).ok_or_else(|| {
        Error::Usage(format!(
            "{name}: no such kernel is installed in {}: expected {}the path of an image (./bzImage)",
            directory.display(),
            if releases.is_empty() { String::new() } else { format!("one of {}, or ", releases.join(", ")) }
        ))
    })
}

/// The release that the header of an image states, or else the one in its file name.
fn read_release(image: &Path) -> Result<String> {
    let file = plain_file::open(image)?;
    let named = || Some(image.file_name()?.to_str()?.strip_prefix(IMAGE)?.to_owned());
    release_in_header(&file).or_else(named).ok_or_else(|| {
        Error::Usage(format!(
            "{}: expected a kernel's image that says its release (a bzImage), or whose name is {IMAGE}RELEASE",
            image.display()
        ))
    })
}

/// The release in the header of a bzImage: its text begins 0x200 bytes behind the offset in the field `kernel_version`
/// (Documentation/arch/x86/boot.rst).
fn release_in_header(file: &File) -> Option<String> {
    const KERNEL_VERSION: usize = 0x20e;
    let mut head = [0; KERNEL_VERSION + 2];
    file.read_exact_at(&mut head, 0).ok().filter(|()| head[0x202..0x206] == *b"HdrS")?;
    let at = u16::from_le_bytes([head[KERNEL_VERSION], head[KERNEL_VERSION + 1]]);
    let mut text = [0; 128];
    let read = file.read_at(&mut text, u64::from(at) + 0x200).ok()?;
    let word = text[..read].split(|byte| *byte == 0 || *byte == b' ').next()?;
    let is_plain = word.first().is_some_and(u8::is_ascii_digit) && word.iter().all(u8::is_ascii_graphic);
    is_plain.then(|| String::from_utf8_lossy(word).into_owned())
}

/// The initramfs of a release beside its image, under a name that Debian, Fedora, SUSE or Arch gives it.
fn find_initramfs(image: &Path, release: &str) -> Option<PathBuf> {
    let beside = image.parent()?;
    let names =
        [format!("initrd.img-{release}"), format!("initramfs-{release}.img"), format!("initrd-{release}")];
    names.into_iter().map(|name| beside.join(name)).find(|file| file.is_file())
}

/// The identity of a running kernel and of its boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Running {
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// Its command line, `/proc/cmdline`.
    pub command_line: String,
    /// The kernel's unique name of this boot, `/proc/sys/kernel/random/boot_id`.
    pub boot: String,
}

impl Running {
    /// The kernel that runs now.
    ///
    /// # Errors
    /// The kernel does not show its release or the name of the boot.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with bzImages whose headers state these releases.
    fn boot(releases: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for release in releases {
            let mut image = vec![0; 0x300];
            image[0x202..0x206].copy_from_slice(b"HdrS");
            image[0x20e..0x210].copy_from_slice(&0x90_u16.to_le_bytes());
            let text = format!("{release} (someone@somewhere) #1 SMP\0");
            image[0x290..0x290 + text.len()].copy_from_slice(text.as_bytes());
            std::fs::write(directory.path().join(format!("vmlinuz-{release}")), image).unwrap();
        }
        directory
    }

    #[test]
    fn a_version_selects_the_newest_installed_release_that_begins_with_it() {
        let boot = boot(&["6.1.0-9-amd64", "6.1.0-47-amd64", "6.12.0-rc1"]);
        let found = |name| BootKernel::find(name, boot.path()).map(|kernel| kernel.release);
        assert_eq!(found("6.1").unwrap(), "6.1.0-47-amd64");
        assert_eq!(found("6.1.0-9-amd64").unwrap(), "6.1.0-9-amd64");
        assert_eq!(found("6").unwrap(), "6.12.0-rc1");
        let sentence = found("6.13").unwrap_err().to_string();
        assert!(sentence.contains("one of 6.1.0-9-amd64, 6.1.0-47-amd64, 6.12.0-rc1"), "{sentence}");
        assert!(found("").is_err());
    }

    #[test]
    fn the_release_is_read_from_the_image_whatever_its_file_name() {
        let boot = boot(&["6.12.0-rc1"]);
        let own = boot.path().join("bzImage");
        std::fs::rename(boot.path().join("vmlinuz-6.12.0-rc1"), &own).unwrap();
        std::fs::write(boot.path().join("initrd.img-6.12.0-rc1"), "").unwrap();
        let kernel = BootKernel::find(&format!("{}@pti=on", own.display()), boot.path()).unwrap();
        assert_eq!((kernel.release.as_str(), kernel.words.as_str()), ("6.12.0-rc1", "pti=on"));
        assert_eq!(kernel.initramfs, Some(boot.path().join("initrd.img-6.12.0-rc1")));
        std::fs::write(&own, "no kernel").unwrap();
        assert!(BootKernel::find(own.to_str().unwrap(), boot.path()).is_err());
    }

    #[test]
    fn kernels_of_one_release_are_distinguished_by_their_words() {
        let kernel = |words: &str| BootKernel {
            name: String::new(),
            release: "6.12".into(),
            image: PathBuf::new(),
            initramfs: None,
            words: words.into(),
            given_up: None,
        };
        let running = |command_line: &str| Running {
            release: "6.12".into(),
            command_line: command_line.into(),
            boot: String::new(),
        };
        assert!(kernel("pti=on").is_running(&running("root=/dev/vda pti=on"), &["pti=on"]));
        assert!(!kernel("pti=on").is_running(&running("root=/dev/vda"), &["pti=on"]));
        assert!(!kernel("").is_running(&running("root=/dev/vda pti=on"), &["pti=on"]));
        assert!(kernel("").is_running(&running("root=/dev/vda"), &["pti=on"]));
    }
}
