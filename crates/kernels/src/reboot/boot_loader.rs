//! How the next kernel is chosen: by GRUB for one boot, or by kexec. GRUB's menu is read only to find the name of an entry:
//! `submenu>entry`, by their identifiers.

use super::boot_kernel::BootKernel;
use super::boot_kernel::Running;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use syscost_platform::error::{Error, Result};
use syscost_platform::process::find_on_path;
use syscost_platform::{inert, plain_file};

/// The largest menu that is read, bytes.
const LONGEST: u64 = 4 << 20;

/// How the next kernel is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum BootLoader {
    /// `grub-reboot`, for one boot, through the firmware: what boots otherwise stays as it is
    Grub,
    /// `kexec`, from the running kernel: faster, with words of one's own on the command line, and without the firmware
    Kexec,
}

/// GRUB's program under the names that distributions give it, each with the path of the menu.
const GRUB: [(&str, &str); 2] =
    [("grub-reboot", "/boot/grub/grub.cfg"), ("grub2-reboot", "/boot/grub2/grub.cfg")];

impl BootLoader {
    /// Checks that this loader can boot these kernels.
    ///
    /// # Errors
    /// A program or an entry of the menu is missing, or a kernel has words for its command line, which GRUB cannot add.
    pub fn check_kernels(self, kernels: &[BootKernel]) -> Result<()> {
        find_program("systemctl", "a session is taken up after each boot by a unit of systemd")?;
        match self {
            Self::Kexec => {
                find_program("kexec", "Debian: apt-get install kexec-tools; or --loader grub").map(drop)
            }
            Self::Grub => kernels.iter().try_for_each(|kernel| grub_entry(kernel).map(drop)),
        }
    }

    /// Requests a restart of the machine into a kernel, and returns before the restart.
    ///
    /// # Errors
    /// The kernel cannot be loaded.
    pub fn restart_into(self, kernel: &BootKernel, base: &Running) -> Result<()> {
        match self {
            Self::Grub => {
                let (tool, entry) = grub_entry(kernel)?;
                run_command(Command::new(tool).arg(entry))?;
                restart_machine()
            }
            Self::Kexec => {
                run_command(Command::new("kexec").args(kexec_arguments(kernel, base)))?;
                request_restart("kexec")
            }
        }
    }
}

/// Requests a restart of the machine into its default kernel.
///
/// # Errors
/// systemd refuses the restart.
pub fn restart_machine() -> Result<()> {
    request_restart("reboot")
}

/// Requests a restart from systemd without waiting: the restart would end this process and `systemctl` before the reply.
fn request_restart(verb: &str) -> Result<()> {
    run_command(Command::new("systemctl").args(["--no-block", verb]))
}

/// Arguments of kexec(8): image, initramfs, and the planning boot's command line plus the kernel's own words.
fn kexec_arguments(kernel: &BootKernel, base: &Running) -> Vec<String> {
    // A boot loader added these words for the image that it loaded.
    let is_of_loader = |word: &&str| word.starts_with("BOOT_IMAGE=") || word.starts_with("initrd=");
    let line = base
        .command_line
        .split_whitespace()
        .filter(|word| !is_of_loader(word))
        .chain(kernel.command_line_words());
    let initramfs = kernel.initramfs.as_ref().map(|file| format!("--initrd={}", file.display()));
    let append = format!("--append={}", line.collect::<Vec<_>>().join(" "));
    [Some("--load".to_owned()), Some(kernel.image.display().to_string()), initramfs, Some(append)]
        .into_iter()
        .flatten()
        .collect()
}

/// The program and the entry by which GRUB boots a kernel once.
fn grub_entry(kernel: &BootKernel) -> Result<(PathBuf, String)> {
    let known = GRUB.iter().find_map(|(tool, menu)| Some((find_on_path(tool)?, *menu)));
    let (tool, menu) =
        known.ok_or_else(|| missing_program("grub-reboot", "there is no GRUB: --loader kexec"))?;
    if !kernel.words.is_empty() {
        return Err(Error::Usage(format!(
            "{}: GRUB boots what its menu says: words behind @ need --loader kexec, or an entry of their own",
            kernel.name
        )));
    }
    let text = plain_file::read(Path::new(menu), LONGEST)?;
    let entry = find_entry(&String::from_utf8_lossy(&text), &kernel.image.to_string_lossy());
    entry.map(|entry| (tool, entry)).ok_or_else(|| {
        Error::Missing(format!(
            "{menu}: no entry boots {}: `update-grub` writes one for each installed kernel; or --loader kexec",
            kernel.image.display()
        ))
    })
}

fn find_program(name: &str, why: &str) -> Result<PathBuf> {
    find_on_path(name).ok_or_else(|| missing_program(name, why))
}

fn missing_program(name: &str, why: &str) -> Error {
    Error::Missing(format!("{name} is not on PATH: {why}"))
}

/// Runs a program to its end.
///
/// # Errors
/// The program cannot be started, or fails; then the error quotes the last line of its standard error.
pub(super) fn run_command(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|e| missing_program(&name, &e.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    if output.status.success() {
        return Ok(());
    }
    let last = inert::neutralize_line(last, 200);
    Err(Error::Missing(format!("{name} failed ({}): {last}", output.status)))
}

/// The name for `grub-reboot` of the entry that boots an image; entries for recovery are passed over.
///
/// `menu` is the text of grub.cfg. An entry begins with a line of `menuentry` or `submenu`, a title, and
/// `$menuentry_id_option 'IDENTIFIER'` before the brace (grub-mkconfig's 10_linux).
pub(super) fn find_entry(menu: &str, image: &str) -> Option<String> {
    let mut open: Vec<Option<String>> = Vec::new();
    for line in menu.lines().map(str::trim) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("menuentry" | "submenu") => open.push(parse_identifier(line)),
            Some("linux" | "linux16" | "linuxefi") if is_boot_line(line, image) => return entry_path(&open),
            Some(word) if line.ends_with('{') && word != "}" => open.push(None),
            Some("}") => drop(open.pop()),
            _ => (),
        }
    }
    None
}

/// The quoted text behind `$menuentry_id_option`, or the title if there is none.
fn parse_identifier(line: &str) -> Option<String> {
    let behind = line.split_once("menuentry_id_option").map_or(line, |(_, behind)| behind);
    let quote = behind.find(['\'', '"'])?;
    let rest = &behind[quote..];
    let end = rest[1..].find(&rest[..1])? + 1;
    Some(rest[1..end].to_owned())
}

/// Whether this line boots the image, and not for recovery. Only file names are compared, since the menu's path may begin at the
/// file system of `/boot`.
fn is_boot_line(line: &str, image: &str) -> bool {
    let file = image.rsplit('/').next().unwrap_or(image);
    let mut words = line.split_whitespace().skip(1);
    let is_image = words.next().is_some_and(|path| path.rsplit('/').next() == Some(file));
    is_image && !words.any(|word| matches!(word, "single" | "recovery" | "rescue"))
}

/// The identifiers of the open submenus and the entry, joined by `>`; `None` outside of entries.
fn entry_path(open: &[Option<String>]) -> Option<String> {
    let names: Vec<_> = open.iter().flatten().map(String::as_str).collect();
    (!names.is_empty()).then(|| names.join(">"))
}

#[cfg(test)]
mod tests {
    use super::{find_entry, *};

    #[test]
    fn kexec_keeps_the_command_line_and_adds_the_kernels_own_words() {
        let kernel = BootKernel {
            name: "6.1@pti=on".into(),
            release: "6.1".into(),
            image: "/boot/vmlinuz-6.1".into(),
            initramfs: Some("/boot/initrd.img-6.1".into()),
            words: "pti=on".into(),
            given_up: None,
        };
        let base = Running {
            release: "6.12".into(),
            command_line: "BOOT_IMAGE=/vmlinuz-6.12 root=/dev/vda ro".into(),
            boot: String::new(),
        };
        let expected = [
            "--load",
            "/boot/vmlinuz-6.1",
            "--initrd=/boot/initrd.img-6.1",
            "--append=root=/dev/vda ro pti=on",
        ];
        assert_eq!(kexec_arguments(&kernel, &base), expected);
    }

    #[test]
    fn the_error_of_a_failed_program_quotes_it() {
        let sentence =
            run_command(Command::new("sh").args(["-c", "echo no such entry >&2; exit 3"])).unwrap_err();
        assert!(sentence.to_string().contains("no such entry"), "{sentence}");
        assert!(run_command(&mut Command::new("true")).is_ok());
    }

    const MENU: &str = r#"
function load_video {
  if [ x$feature_all_video_module = xy ]; then
    insmod all_video
  fi
}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1234' {
	load_video
	if [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
	linux	/boot/vmlinuz-6.12.1 root=UUID=1234 ro  quiet
	initrd	/boot/initrd.img-6.12.1
}
submenu 'Advanced options' $menuentry_id_option 'gnulinux-advanced-1234' {
	menuentry 'with Linux 6.1.0-47 (recovery mode)' $menuentry_id_option 'gnulinux-6.1.0-47-recovery-1234' {
		linux	/boot/vmlinuz-6.1.0-47 root=UUID=1234 ro single
	}
	menuentry 'with Linux 6.1.0-47' $menuentry_id_option "gnulinux-6.1.0-47-advanced-1234" {
		if [ x = y ]; then
		    echo 'never {'
		fi
		linux	/boot/vmlinuz-6.1.0-47 root=UUID=1234 ro  quiet
	}
}
menuentry "Own" {
	linux /bzImage-own root=/dev/sda1
}
"#;

    #[test]
    fn an_entry_is_named_with_its_submenu_and_recovery_entries_are_passed_over() {
        assert_eq!(find_entry(MENU, "/boot/vmlinuz-6.12.1").as_deref(), Some("gnulinux-simple-1234"));
        let inner = Some("gnulinux-advanced-1234>gnulinux-6.1.0-47-advanced-1234");
        assert_eq!(find_entry(MENU, "/boot/vmlinuz-6.1.0-47").as_deref(), inner);
        // If /boot is a file system of its own, the menu's paths begin at its root.
        assert_eq!(find_entry(MENU, "/boot/bzImage-own").as_deref(), Some("Own"));
    }

    #[test]
    fn an_image_without_an_entry_is_not_found() {
        assert_eq!(find_entry(MENU, "/boot/vmlinuz-6.1.0"), None);
        assert_eq!(find_entry("", "/boot/vmlinuz"), None);
        assert_eq!(find_entry("}\n}\nmenuentry {\nlinux /a\n}", "/a"), None);
    }
}
