//! Kernel tunables: the files below `/proc/sys` and `/sys` that a shell command names, and their values.

use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// Where a file's content is the whole state of a setting.
const ROOTS: [&str; 2] = ["/proc/sys", "/sys"];

/// The tunables that a command names, by path or by a name of sysctl(8).
///
/// # Errors
/// A word looks like a path there but is no file: a pattern, a directory, a variable. Its expansion by
/// the shell is unknown, so it could not be restored.
pub(super) fn tunables_in_command(command: &str) -> Result<Vec<PathBuf>> {
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

/// The value in a tunable's text; of a list of choices the selected one: `madvise` in `always [madvise] never`.
pub(super) fn active_value(text: &str) -> String {
    let text = text.trim();
    let chosen = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    chosen.unwrap_or(text).to_owned()
}

/// Writes the recorded value and reads it back.
///
/// # Errors
/// The file cannot be written or read, or holds another value afterwards.
pub(super) fn restore_value(file: &Path, value: &str) -> Result<()> {
    std::fs::write(file, value).map_err(|e| Error::file(file, "putting back what it held", e))?;
    let now = std::fs::read_to_string(file).map_err(|e| Error::file(file, "reading", e))?;
    if active_value(&now) == value {
        return Ok(());
    }
    Err(Error::Content {
        path: file.into(),
        field: "value".into(),
        expected: format!("`{value}`, as before"),
        found: active_value(&now),
        remedy: format!("put it back by hand: {}", restore_command(file, value)),
    })
}

/// The shell command that writes this value, for display.
pub(super) fn restore_command(file: &Path, value: &str) -> String {
    format!("echo '{value}' > {}", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;

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
