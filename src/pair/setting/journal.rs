//! The way back, on disk: what the files held, or the command that undoes it all.

use crate::environment::KernelFiles;
use crate::record::store;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where settings live that a file's content describes whole.
const ROOTS: [&str; 2] = ["/proc/sys/", "/sys/"];

/// What must be done to undo a setting, and whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// The process that made it.
    pid: u32,
    /// When that process began, in clock ticks since boot: a number used again is told apart.
    began: Option<u64>,
    /// The boot that it belongs to: the next one begins afresh.
    boot: Option<String>,
    /// Files, with what they held.
    files: Vec<(PathBuf, String)>,
    /// The user's own command.
    restore: Option<String>,
}

impl Journal {
    /// The way back from these commands.
    pub(super) fn of(commands: [&str; 2], restore: Option<&str>) -> Result<Self> {
        let mut files = Vec::new();
        if restore.is_none() {
            for file in commands.into_iter().flat_map(named) {
                let text = std::fs::read_to_string(&file).map_err(|e| Error::file(&file, "reading", e))?;
                if !files.iter().any(|(known, _)| *known == file) {
                    files.push((file, active(&text)));
                }
            }
            if files.is_empty() {
                return Err(Error::Usage(
                    "nothing tells how to undo these settings: they name no file below /proc/sys or /sys; say it \
                     with --restore 'COMMAND'"
                        .into(),
                ));
            }
        }
        let pid = std::process::id();
        let boot = boot();
        Ok(Self { pid, began: began(pid), boot, files, restore: restore.map(str::to_owned) })
    }

    /// Puts it beside the records of this home.
    pub(super) fn write(&self, home: &Path) -> Result<PathBuf> {
        let file = directory(home).join(format!("{}.json", self.pid));
        let bytes = serde_json::to_vec(self).map_err(|e| Error::file(&file, "writing as JSON", e.into()))?;
        store::replace(&file, &bytes)?;
        Ok(file)
    }

    pub(super) fn read(file: &Path) -> Result<Self> {
        serde_json::from_slice(&store::read(file)?)
            .map_err(|e| Error::file(file, "reading as JSON", e.into()))
    }

    /// What will be done, as a reader could type it.
    pub fn words(&self) -> String {
        let file = |(file, value): &(PathBuf, String)| format!("echo '{value}' > {}", file.display());
        let words: Vec<_> = self.files.iter().map(file).chain(self.restore.clone()).collect();
        words.join("; ")
    }

    /// Whether its owner is dead and the boot still the same, so that nobody has undone it.
    pub(super) fn is_outstanding(&self) -> bool {
        let alive = began(self.pid);
        boot() == self.boot && (alive.is_none() || alive != self.began)
    }

    /// Does it, and looks whether it worked.
    pub(super) fn restore(&self) -> Result<()> {
        for (file, value) in self.files.iter().rev() {
            std::fs::write(file, value).map_err(|e| Error::file(file, "putting back what it held", e))?;
            let now = std::fs::read_to_string(file).map_err(|e| Error::file(file, "reading", e))?;
            if active(&now) != *value {
                return Err(Error::Content {
                    path: file.clone(),
                    field: "value".into(),
                    expected: format!("`{value}`, as before"),
                    found: active(&now),
                    remedy: format!("put it back by hand: {}", self.words()),
                });
            }
        }
        self.restore.as_deref().map_or(Ok(()), shell)
    }
}

fn directory(home: &Path) -> PathBuf {
    store::Store::at(home).home().join("restore")
}

/// Every journal of this home that can be read.
pub(super) fn all(home: &Path) -> Vec<(PathBuf, Journal)> {
    let entries = std::fs::read_dir(directory(home)).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), Journal::read(&entry.path()).ok()?))).collect()
}

pub(super) fn remove(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file(file, "removing", e)),
        _ => Ok(()),
    }
}

/// Runs a command of the user's.
pub(super) fn shell(command: &str) -> Result<()> {
    let output = Command::new("sh").args(["-c", command]).output();
    let output = output.map_err(|e| Error::file("sh", "starting", e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Usage(format!("`{command}` failed ({}): {}", output.status, said.trim())))
}

fn boot() -> Option<String> {
    KernelFiles::live().line("/proc/sys/kernel/random/boot_id")
}

/// When a process began; `None` if there is none of this number.
fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; the start is the 22nd field, the 20th behind it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The files below /proc/sys and /sys that a command names, by path or as `sysctl` does.
fn named(command: &str) -> Vec<PathBuf> {
    let words = command.split(|c: char| c.is_whitespace() || "<>|;&()'\"`".contains(c));
    let paths = words.filter_map(|word| {
        let direct = ROOTS.iter().any(|root| word.starts_with(root)).then(|| PathBuf::from(word));
        let variable =
            || word.split_once('=').map(|(name, _)| Path::new("/proc/sys").join(name.replace('.', "/")));
        direct.or_else(variable).filter(|path| path.is_file())
    });
    paths.collect()
}

/// What a file of choices holds: `always [madvise] never` holds `madvise`.
fn active(text: &str) -> String {
    let text = text.trim();
    let chosen = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    chosen.unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_command_names_are_found() {
        let found = |command: &str| named(command);
        assert_eq!(
            found("echo 1 > /proc/sys/vm/overcommit_memory"),
            [Path::new("/proc/sys/vm/overcommit_memory")]
        );
        assert_eq!(found("sysctl -w vm.overcommit_memory=1"), [Path::new("/proc/sys/vm/overcommit_memory")]);
        assert!(found("echo 1 > /tmp/x; swapoff -a; A=1 true").is_empty());
    }

    #[test]
    fn the_choice_in_brackets_is_what_a_file_holds() {
        assert_eq!(active("always [madvise] never\n"), "madvise");
        assert_eq!(active("60\n"), "60");
    }

    #[test]
    fn a_setting_that_cannot_be_undone_is_refused() {
        let error = Journal::of(["swapoff -a", "swapon -a"], None).unwrap_err().to_string();
        assert!(error.contains("--restore"), "{error}");
        assert!(Journal::of(["swapoff -a", "swapon -a"], Some("swapon -a")).is_ok());
    }

    #[test]
    fn a_journal_is_outstanding_once_its_owner_is_dead() {
        let journal = Journal::of(["a", "b"], Some("true")).unwrap();
        assert!(!journal.is_outstanding());
        assert!(
            Journal { began: Some(0), ..journal.clone() }.is_outstanding(),
            "the number is another's by now"
        );
        assert!(!Journal { began: Some(0), boot: Some("another".into()), ..journal }.is_outstanding());
    }
}
