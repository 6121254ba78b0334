//! The journal of a setting: a file with the original values, or with the user's command that restores them.

use super::guard::Shell;
use crate::error::{Error, Result};
use crate::platform::kernel_files::KernelFiles;
use crate::platform::{plain_file, process};
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::time::{SystemTime, UNIX_EPOCH};
use syscost_engine::json_line::parse_value;
use syscost_engine::record::store;

/// The data to undo a setting, and the process that made the setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// Process id of the owner.
    pid: u32,
    /// Start time of the owner, in clock ticks since boot. It shows whether the process id was reused.
    began: Option<u64>,
    /// Boot id. Under another boot id a reboot has undone the setting.
    boot: Option<String>,
    /// Tunables with their original values.
    files: Vec<(PathBuf, String)>,
    /// The user's command that restores the settings.
    restore: Option<String>,
    /// Working directory of that command.
    #[serde(default)]
    directory: Option<PathBuf>,
}

impl Journal {
    /// A journal with the data to undo these commands.
    ///
    /// # Errors
    /// Without a `restore` command: the commands name no tunable, or name one that cannot be restored.
    pub(super) fn new(commands: [&str; 2], restore: Option<&str>) -> Result<Self> {
        let files = if restore.is_none() { current_values(commands)? } else { Vec::new() };
        let pid = std::process::id();
        Ok(Self {
            pid,
            began: process::process_start_ticks(pid),
            boot: boot_id(),
            files,
            restore: restore.map(str::to_owned),
            directory: std::env::current_dir().ok(),
        })
    }

    /// Writes the journal below `home` and returns its path. The name has the time and a random part, because process ids
    /// repeat between containers.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&self, home: &Path) -> Result<PathBuf> {
        // A clock before 1970 affects only the name.
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let file = journal_directory(home).join(format!(
            "{}-{moment}-{}.json",
            self.pid,
            plain_file::random_word(8)
        ));
        let bytes = serde_json::to_vec(self).map_err(|e| Error::file(&file, "writing as JSON", e.into()))?;
        store::create_file(&file, &bytes)?;
        Ok(file)
    }

    /// Reads a journal.
    ///
    /// # Errors
    /// The file cannot be read or parsed.
    pub(super) fn read(file: &Path) -> Result<Self> {
        parse_value(&store::read(file)?).map_err(|(e, _)| Error::file(file, "reading as JSON", e.into()))
    }

    /// The shell commands that restore the settings, for display.
    pub fn restore_commands(&self) -> String {
        let files = self.files.iter().map(|(file, value)| restore_command(file, value));
        let commands: Vec<_> = files.chain(self.restore.clone()).collect();
        commands.join("; ")
    }

    /// Whether the owner died during the current boot, so that the setting is not undone.
    pub(super) fn is_outstanding(&self) -> bool {
        let alive = process::process_start_ticks(self.pid);
        boot_id() == self.boot && (alive.is_none() || alive != self.began)
    }

    /// Restores everything that can be restored. The user's command holds the guard's pipe open while it runs.
    ///
    /// # Errors
    /// A part could not be restored; the error is the first failure.
    pub(super) fn restore(&self, guard: Option<&ChildStdin>) -> Result<()> {
        let mut first = Ok(());
        for (file, value) in self.files.iter().rev() {
            first = first.and(restore_value(file, value));
        }
        let Some(command) = &self.restore else { return first };
        first.and(Shell { command, directory: self.directory.as_deref(), guard, apart: true }.run())
    }
}

/// The tunables that these commands name, with their current values.
fn current_values(commands: [&str; 2]) -> Result<Vec<(PathBuf, String)>> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for command in commands {
        for file in tunables_in_command(command)? {
            let text = std::fs::read_to_string(&file).map_err(|e| Error::file(&file, "reading", e))?;
            if !files.iter().any(|(known, _)| *known == file) {
                files.push((file, active_value(&text)));
            }
        }
    }
    if files.is_empty() {
        return Err(Error::Usage(
            "nothing tells how to undo these settings: they name no file below /proc/sys or /sys; say it with \
             --restore 'COMMAND'"
                .into(),
        ));
    }
    Ok(files)
}

fn journal_directory(home: &Path) -> PathBuf {
    store::Store::at(home).home().join("restore")
}

/// Every readable journal of this user below this directory. Journals of other users are ignored, because a journal may name
/// a command to run.
pub(super) fn own_journals(home: &Path) -> Vec<(PathBuf, Journal)> {
    let entries = std::fs::read_dir(journal_directory(home)).into_iter().flatten().flatten();
    let own = entries
        .map(|entry| entry.path())
        .filter(|path| plain_file::open_own(path, Metadata::is_file).is_some());
    own.filter_map(|path| Some((path.clone(), Journal::read(&path).ok()?))).collect()
}

/// Removes a journal's file, if it still exists.
///
/// # Errors
/// The file cannot be removed.
pub(super) fn remove_journal(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file(file, "removing", e)),
        _ => Ok(()),
    }
}

fn boot_id() -> Option<String> {
    KernelFiles::live().read_first_line("/proc/sys/kernel/random/boot_id")
}

// Kernel tunables: the files below `/proc/sys` and `/sys` that a shell command names, and their values.

/// The directories of tunables: files whose content is the whole state of a setting.
const ROOTS: [&str; 2] = ["/proc/sys", "/sys"];

/// The tunables that a command names, by path or by a name of sysctl(8).
///
/// # Errors
/// A word looks like a path below [`ROOTS`] but is no file: a pattern, a directory, a variable. Its expansion by
/// the shell is unknown, so the setting could not be restored.
fn tunables_in_command(command: &str) -> Result<Vec<PathBuf>> {
    let words = command.split(|c: char| c.is_whitespace() || "<>|;&()'\"`".contains(c));
    let mut files = Vec::new();
    for word in words {
        let assigned = word.split_once('=');
        // As in `dd of=FILE`.
        let path = Path::new(assigned.map_or(word, |(_, value)| value));
        if ROOTS.iter().any(|root| path.starts_with(root)) {
            if !path.is_file() {
                return Err(unrestorable_error(word));
            }
            files.push(path.to_owned());
        } else if let Some((name, _)) = assigned {
            let variable = Path::new("/proc/sys").join(name.replace('.', "/"));
            files.extend(variable.is_file().then_some(variable));
        }
    }
    Ok(files)
}

fn unrestorable_error(word: &str) -> Error {
    Error::Usage(format!(
        "`{word}` is no file, so that what it held cannot be put back: name each file in full, or say how to undo \
         the settings with --restore 'COMMAND'"
    ))
}

/// The value in a tunable's text. In a list of choices it is the selected one: `madvise` in `always [madvise] never`.
fn active_value(text: &str) -> String {
    let text = text.trim();
    let chosen = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    chosen.unwrap_or(text).to_owned()
}

/// Writes the recorded value to the file and checks it by reading.
///
/// # Errors
/// The file cannot be written or read, or holds another value afterwards.
fn restore_value(file: &Path, value: &str) -> Result<()> {
    std::fs::write(file, value).map_err(|e| Error::file(file, "putting back what it held", e))?;
    let now = std::fs::read_to_string(file).map_err(|e| Error::file(file, "reading", e))?;
    if active_value(&now) == value {
        return Ok(());
    }
    let remedy = format!("put it back by hand: {}", restore_command(file, value));
    Err(Error::invalid_content(file, "value", format!("`{value}`, as before"), active_value(&now), remedy))
}

/// The shell command that writes this value, for display.
fn restore_command(file: &Path, value: &str) -> String {
    format!("echo '{value}' > {}", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_cannot_be_undone_is_refused() {
        let error = Journal::new(["swapoff -a", "swapon -a"], None).unwrap_err().to_string();
        assert!(error.contains("--restore"), "{error}");
        assert!(Journal::new(["swapoff -a", "swapon -a"], Some("swapon -a")).is_ok());
    }

    #[test]
    fn a_journal_is_outstanding_once_its_owner_is_dead() {
        let journal = Journal::new(["a", "b"], Some("true")).unwrap();
        assert!(!journal.is_outstanding());
        assert!(
            Journal { began: Some(0), ..journal.clone() }.is_outstanding(),
            "the number is another's by now"
        );
        assert!(!Journal { began: Some(0), boot: Some("another".into()), ..journal }.is_outstanding());
    }

    #[test]
    fn a_file_that_fails_does_not_keep_the_others_from_being_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let [first, gone, last] = ["first", "gone/x", "last"].map(|name| directory.path().join(name));
        let files = [&first, &gone, &last].map(|file| (file.clone(), "before".to_owned()));
        let mut journal = Journal::new(["a", "b"], Some("echo ran > command")).unwrap();
        journal.directory = Some(directory.path().to_owned());
        journal.files = files.to_vec();
        let error = journal.restore(None).unwrap_err().to_string();
        assert!(error.contains("gone/x"), "{error}");
        for file in [&first, &last, &directory.path().join("command")] {
            assert!(file.exists(), "{}", file.display());
        }
    }

    #[test]
    fn two_journals_of_one_process_are_two_files() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::new(["a", "b"], Some("true")).unwrap();
        assert_ne!(journal.write(home.path()).unwrap(), journal.write(home.path()).unwrap());
        assert_eq!(own_journals(home.path()).len(), 2);
    }

    #[test]
    fn the_files_that_a_command_names_are_found() {
        let found = |command: &str| tunables_in_command(command).unwrap();
        let file = [Path::new("/proc/sys/vm/overcommit_memory")];
        assert_eq!(found("echo 1 > /proc/sys/vm/overcommit_memory"), file);
        assert_eq!(found("sysctl -w vm.overcommit_memory=1"), file);
        assert_eq!(found("echo 1 | dd of=/proc/sys/vm/overcommit_memory"), file);
        assert!(found("echo 1 > /tmp/x; swapoff -a; A=1 true; ls /system").is_empty());
    }

    #[test]
    fn a_pattern_a_directory_and_a_variable_are_refused_by_name() {
        for word in ["/proc/sys/vm/overcommit_*", "/sys", "/proc/sys/$name", "of=/proc/sys/vm/{a,b}"] {
            let error = tunables_in_command(&format!("echo 1 > '{word}'")).unwrap_err().to_string();
            assert!(error.contains(&format!("`{word}`")) && error.contains("--restore"), "{error}");
        }
    }

    #[test]
    fn the_choice_in_brackets_is_what_a_file_holds() {
        assert_eq!(active_value("always [madvise] never\n"), "madvise");
        assert_eq!(active_value("60\n"), "60");
    }
}
