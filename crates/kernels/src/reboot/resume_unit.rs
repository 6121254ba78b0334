//! The unit of systemd that resumes a session after each boot, and is removed when the session ends.

use super::boot_loader::run_command;
use std::path::{Path, PathBuf};
use std::process::Command;
use syscost_engine::record::store;
use syscost_platform::error::{Error, Result};

/// The directory of an administrator's units (systemd.unit(5)).
pub const UNITS: &str = "/etc/systemd/system";

/// The unit of one session.
#[derive(Clone, Debug)]
pub struct ResumeUnit {
    name: String,
    directory: PathBuf,
}

impl ResumeUnit {
    /// The unit of the session of this name.
    ///
    /// # Errors
    /// The name cannot be part of a unit's name.
    pub fn for_session(session: &str) -> Result<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !session.starts_with(|c: char| c.is_ascii_alphanumeric()) || !session.chars().all(is_plain) {
            return Err(Error::Usage(format!(
                "{session:?} cannot name a session over reboots: use letters, digits, `-`, `_` and `.`, as in a unit of systemd"
            )));
        }
        Ok(Self { name: format!("syscost-session-{session}.service"), directory: UNITS.into() })
    }

    fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Whether the unit is installed.
    pub fn is_installed(&self) -> bool {
        self.path().is_file()
    }

    /// Installs the unit: from now on each boot runs these words as a command.
    ///
    /// # Errors
    /// The unit cannot be written or enabled.
    pub fn install(&self, words: &[String]) -> Result<()> {
        store::replace_file(&self.path(), unit_text(&self.name, words).as_bytes())?;
        run_command(Command::new("systemctl").args(["enable", &self.name]))
    }

    /// Ends the process that the unit has started.
    ///
    /// # Errors
    /// systemd refuses it.
    pub fn stop(&self) -> Result<()> {
        run_command(Command::new("systemctl").args(["stop", &self.name]))
    }

    /// Removes the unit: no further boot runs its command.
    ///
    /// # Errors
    /// The unit cannot be disabled or removed.
    pub fn remove(&self) -> Result<()> {
        run_command(Command::new("systemctl").args(["disable", &self.name]))?;
        let path = self.path();
        std::fs::remove_file(&path).map_err(|e| Error::file(&path, "removing", e))?;
        run_command(Command::new("systemctl").arg("daemon-reload"))
    }
}

/// The text of the unit. Its type `idle` delays the start until the other jobs of the boot have been started.
fn unit_text(name: &str, words: &[String]) -> String {
    let command: Vec<_> = words.iter().map(|word| quote_word(word)).collect();
    format!(
        "# Written by syscost, which removes it when the session has ended.\n\
         [Unit]\nDescription={name}: measures this boot, and restarts into the next kernel\n\n\
         [Service]\nType=idle\nExecStart={}\nSuccessExitStatus=143\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        command.join(" ")
    )
}

/// A word of ExecStart (systemd.service(5)) in quotes. Quotes and backslashes are escaped, `%` and `$` are doubled.
fn quote_word(word: &str) -> String {
    let inner: String = word
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            '%' | '$' => format!("{c}{c}"),
            c => c.to_string(),
        })
        .collect();
    format!("\"{inner}\"")
}

/// Why a file at `path` would be lost by a reboot; `None` if it would stay.
pub fn reboot_loss_reason(path: &Path) -> Option<String> {
    const EMPTIED: [&str; 2] = ["/tmp", "/run"];
    let path = syscost_platform::mount::resolve_path(path);
    let emptied = EMPTIED.into_iter().find(|directory| path.starts_with(directory));
    let emptied =
        emptied.map(|directory| format!("{} lies in {directory}, which a boot empties", path.display()));
    emptied.or_else(|| syscost_platform::volume::no_disk_reason(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_a_command_are_escaped() {
        let words = ["/opt/a b/syscost", "100%", "$HOME", "say \"x\\y\""].map(str::to_owned);
        let expected = r#"ExecStart="/opt/a b/syscost" "100%%" "$$HOME" "say \"x\\y\"""#;
        assert!(
            unit_text("x.service", &words).lines().any(|line| line == expected),
            "{}",
            unit_text("x", &words)
        );
    }

    #[test]
    fn a_name_that_no_unit_can_have_is_refused() {
        for wrong in ["", "../x", "a b", "-x", "a/b", "é"] {
            assert!(ResumeUnit::for_session(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ResumeUnit::for_session("fork.6-1").unwrap().name, "syscost-session-fork.6-1.service");
    }

    #[test]
    fn files_that_a_boot_deletes_are_recognised() {
        assert!(reboot_loss_reason(Path::new("/tmp/syscost")).unwrap().contains("a boot empties"));
        assert!(reboot_loss_reason(Path::new("/run/x")).is_some());
        assert_eq!(reboot_loss_reason(Path::new("/usr/bin/env")), None);
    }
}
