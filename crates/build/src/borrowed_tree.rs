//! The files of a commit, in a temporary repository that borrows the objects of the user's repository.
//!
//! A linked worktree (`git worktree add`) would run the user's `post-checkout` hook and filters, share references, and make an
//! entry in the user's repository. Pruning that entry would also prune the worktrees on disks that are not mounted. Here git
//! writes only below a temporary directory. References are copied for build scripts that call `git describe`.

use super::build_facts::short_digest;
use super::git::{Repository, git_output, git_without_repository};
use super::neighbours::mirror_surroundings;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use syscost_engine::trial::scratch::{self, Scratch};
use syscost_platform::error::{Error, Result};
use syscost_platform::plain_file;

/// Settings that override the user's configuration for every git command in the tree: no hook and no file monitor runs.
const QUIET: &str = "[core]\n\thooksPath = /dev/null\n\tfsmonitor = false\n[submodule]\n\trecurse = false\n\
    [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
/// The references that are copied. References of a bisection are not.
const REFERENCES: [&str; 5] = ["refs/heads", "refs/tags", "refs/remotes", "refs/notes", "refs/replace"];

/// The file that names further object directories to git (gitrepository-layout(5)).
const ALTERNATES: &str = "objects/info/alternates";

/// The checked-out tree of one commit. Dropping the value removes the tree.
pub(super) struct BorrowedTree {
    directory: Scratch,
    /// The path shared with other revisions to which the directory was moved, if a build needs that.
    common: Option<PathBuf>,
    /// The directory of its files.
    top: PathBuf,
    /// Names of the user's filters, such as `lfs`.
    filters: Vec<String>,
}

impl BorrowedTree {
    /// Checks this commit out into a temporary repository.
    ///
    /// # Errors
    /// The temporary directory cannot be written, or git fails.
    pub(super) fn checkout(repository: &Repository, commit: &str) -> Result<Self> {
        let directory = scratch::make_directory()?;
        let top = match repository.top_directory() {
            Some(top) => mirror_surroundings(top, directory.path())?,
            None => directory.path().join("tree"),
        };
        let mut tree = Self { directory, common: None, top, filters: Vec::new() };
        let hash = if commit.len() == 64 { "sha256" } else { "sha1" };
        let mut init = git_without_repository();
        init.env("GIT_DEFAULT_HASH", hash).env("GIT_DEFAULT_REF_FORMAT", "files");
        // `git init` creates HEAD, which would run the user's hooks: they are switched off before a configuration exists.
        init.args(["-c", "core.hooksPath=/dev/null", "init", "--quiet", "--template="]);
        git_output(init.arg(tree.path()))?;
        tree.borrow_objects(repository)?;
        // The user's references, packed. If they are missing, only a build script that calls `git describe` fails.
        let words = [&["for-each-ref", "--format=%(objectname) %(refname)"][..], &REFERENCES].concat();
        tree.write("packed-refs", &repository.read(&words).unwrap_or_default())?;
        tree.filters = filter_names(repository);
        tree.append_configuration(&tree_configuration(repository, &tree.filters))?;
        git_output(tree.git_command().args(["checkout", "--quiet", "--force", "--detach", commit]))?;
        Ok(tree)
    }

    /// The directory of its files.
    pub(super) fn path(&self) -> &Path {
        &self.top
    }

    /// Whether all files of this tree are newer than the last change of `directory`, by the times of both file systems.
    pub(super) fn is_newer_than(&self, directory: &Path) -> bool {
        let modified = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
        // The first file that is written.
        let own = modified(&self.git_file_path(ALTERNATES));
        own.is_some_and(|own| modified(directory).is_none_or(|other| own > other))
    }

    /// Moves this tree to a path that all trees with this key use, one at a time. For cargo, a dependency at another path is
    /// another dependency, so neighbours of the repository would be compiled again for each revision. The files in the tree
    /// then also have the same paths, so they must be newer than every build of them. If another process uses the path, the
    /// tree stays where it is.
    pub(super) fn move_to_common_path(&mut self, key: &str) {
        let common = scratch::common_path(self.directory.path(), &short_digest(key.as_bytes()));
        let Ok(inside) = self.top.strip_prefix(self.directory.path()) else { return };
        common.parent().into_iter().for_each(scratch::remove_orphans);
        // rename(2) does not replace a directory that has entries or that belongs to another user in a shared directory.
        if std::fs::rename(self.directory.path(), &common).is_ok() {
            self.top = common.join(inside);
            self.common = Some(common);
        }
    }

    /// A git command that runs in this tree.
    pub(super) fn git_command(&self) -> Command {
        let mut git = git_without_repository();
        git.arg("-C").arg(self.path());
        git
    }

    /// Sentences on files of this commit that are not as in the user's tree: those of the user's filters and submodules.
    pub(super) fn missing_files_notes(&self) -> Vec<String> {
        let files = |filter: &str| {
            let found = git_output(
                self.git_command().args(["ls-files", "-z", "--"]).arg(format!(":(attr:filter={filter})")),
            );
            found.map_or(0, |names| names.iter().filter(|byte| **byte == 0).count())
        };
        let counted = self.filters.iter().map(|filter| (filter, files(filter)));
        let note = |(filter, count): (&String, usize)| {
            format!(
                "{count} files have the git filter `{filter}`, which is not run: they are built as git stores them. If the bench needs \
                 them, build both sides yourself and compare them by --a-bin and --b-bin"
            )
        };
        let notes = counted.filter(|(_, count)| *count > 0).map(note);
        notes.chain(self.submodule_note()).collect()
    }

    /// A sentence if the commit has submodules. They are missing: fetching their repositories could ask for a password.
    fn submodule_note(&self) -> Option<String> {
        // Mode 160000 is a commit of another repository (gitformat-index(5)).
        let listed = git_output(self.git_command().args(["ls-files", "-z", "--stage"])).ok()?;
        let count = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 ")).count();
        (count > 0).then(|| {
            format!(
                "{count} submodules are not initialised: their directories are empty. If the bench needs them, build both sides \
                 yourself and compare them by --a-bin and --b-bin"
            )
        })
    }

    /// Writes the list of the user's object directories, and copies the list of commits where a shallow history ends.
    fn borrow_objects(&self, repository: &Repository) -> Result<()> {
        let places = repository.object_directories()?;
        let lines: Vec<_> = places.iter().map(|place| alternate_line(place)).collect();
        self.write(ALTERNATES, &[lines.join(&b'\n'), b"\n".to_vec()].concat())?;
        let (cut, own) = (repository.file_path("shallow")?, self.git_file_path("shallow"));
        if cut.is_file() {
            std::fs::copy(&cut, &own).map_err(|e| Error::file(cut, "copying", e))?;
        }
        Ok(())
    }

    fn git_file_path(&self, name: &str) -> PathBuf {
        self.path().join(".git").join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let file = self.git_file_path(name);
        let parent = file.parent().unwrap_or(Path::new("/"));
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&file, bytes));
        written.map_err(|e| Error::file(file, "writing", e))
    }

    fn append_configuration(&self, text: &str) -> Result<()> {
        let file = self.git_file_path("config");
        let written = plain_file::open_to_append(&file)?.write_all(text.as_bytes());
        written.map_err(|e| Error::file(file, "writing", e))
    }
}

impl Drop for BorrowedTree {
    fn drop(&mut self) {
        if let Some(common) = &self.common {
            // The directory is removed at its first path. If it remains, a later run removes it, as no process holds its lock.
            let _ = std::fs::rename(common, self.directory.path());
        }
    }
}

/// The line that names an object directory. git reads a path between quotes as a C string, but other readers do not, so
/// only a path with a line feed is quoted.
fn alternate_line(place: &Path) -> Vec<u8> {
    let bytes = place.as_os_str().as_bytes();
    if !bytes.contains(&b'\n') {
        return bytes.to_vec();
    }
    let escape = |byte: &u8| match byte {
        b'\n' => b"\\n".to_vec(),
        b'"' | b'\\' => vec![b'\\', *byte],
        _ => vec![*byte],
    };
    [&b"\""[..], &bytes.iter().flat_map(escape).collect::<Vec<_>>(), b"\""].concat()
}

/// The names of the user's filters, from the configuration of this repository and from the global one.
fn filter_names(repository: &Repository) -> Vec<String> {
    // git returns exit code 1 if there is no filter.
    let found =
        repository.read(&["config", "-z", "--name-only", "--get-regexp", r"^filter\."]).unwrap_or_default();
    let keys = found.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let names = keys.filter_map(|key| Some(key.strip_prefix("filter.")?.rsplit_once('.')?.0.to_owned()));
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The configuration of the tree. It prevents that a program from the user's configuration runs. If the user's repository is
/// a partial clone, git fetches missing objects from the user's remote.
fn tree_configuration(repository: &Repository, filters: &[String]) -> String {
    let mut text = QUIET.to_owned();
    for filter in filters {
        for (key, value) in [("smudge", ""), ("clean", ""), ("process", ""), ("required", "false")] {
            text += &format_entry(&format!("filter.{filter}.{key}"), value);
        }
    }
    let remotes = r"^(remote\.|extensions\.partialclone$)";
    let found = repository.read(&["config", "--local", "-z", "--get-regexp", remotes]).unwrap_or_default();
    let entries = found.split(|byte| *byte == 0).map(parse_entry);
    text.extend(entries.flatten().map(|(key, value)| format_entry(&key, &value)));
    text
}

/// Key and value of an entry as `git config -z` prints it; `None` without a value. The values read here are no paths, so
/// they are UTF-8.
fn parse_entry(bytes: &[u8]) -> Option<(String, String)> {
    let text = OsStr::from_bytes(bytes).to_str()?;
    let (key, value) = text.split_once('\n')?;
    Some((key.to_owned(), value.to_owned()))
}

/// A line of a configuration (git-config(1), "Syntax"), with its section.
fn format_entry(key: &str, value: &str) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let (section, name) = key.rsplit_once('.').unwrap_or(("core", key));
    let heading = match section.split_once('.') {
        Some((section, subsection)) => format!("[{section} \"{}\"]", escaped(subsection)),
        None => format!("[{section}]"),
    };
    format!("{heading}\n\t{name} = \"{}\"\n", escaped(value).replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_with_special_characters_in_the_repository_path() {
        for name in ["plain", "a b", "quo\"te", "back\\slash", "line\nfeed \"\\"] {
            let scratch = tempfile::tempdir().unwrap();
            let (from, to) = (scratch.path().join(name), scratch.path().join("to"));
            let git = |place: &Path, words: &[&str]| {
                git_output(git_without_repository().arg("-C").arg(place).args(words)).unwrap()
            };
            for place in [&from, &to] {
                std::fs::create_dir(place).unwrap();
                git(place, &["init", "--quiet"]);
            }
            std::fs::write(from.join("text"), "here").unwrap();
            let object = git(&from, &["hash-object", "-w", "text"]);
            let line = alternate_line(&from.join(".git/objects"));
            std::fs::write(to.join(".git/objects/info/alternates"), [line, b"\n".to_vec()].concat()).unwrap();
            let object = String::from_utf8(object).unwrap();
            assert_eq!(git(&to, &["cat-file", "blob", object.trim()]), b"here", "{name:?}");
        }
    }

    #[test]
    fn git_reads_back_entries_with_special_characters() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config");
        for (key, value) in [
            ("filter.lfs.smudge", ""),
            ("core.fsmonitor", "false"),
            ("remote.a.b\"c\\d.url", "/x y/\"q\" \\ # ;"),
            ("remote.origin.proxy", "a\nb"),
        ] {
            std::fs::write(&file, format_entry(key, value)).unwrap();
            let read =
                git_output(git_without_repository().arg("config").arg("-f").arg(&file).args(["--get", key]))
                    .unwrap();
            assert_eq!(String::from_utf8(read).unwrap(), format!("{value}\n"), "{key}");
        }
    }
}
