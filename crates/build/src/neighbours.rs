//! The neighbours of a revision's repository: the other entries of the directories above it. A manifest may name them (`path =
//! "../core"`), and cargo searches those directories for its configuration and for the workspace of a package.
//!
//! The files of a revision lie in a temporary directory, which has no such neighbours. So the directories above the
//! repository are made again there, with a symbolic link to each of their other entries.

use super::build_facts::short_digest;
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Component, Path, PathBuf};
use syscost_platform::error::{Error, Result};

/// Makes the directory below `place` that stands for `top`. It is empty; links give it the same neighbours as `top`.
///
/// # Errors
/// A directory or a link cannot be made.
pub(super) fn mirror_surroundings(top: &Path, place: &Path) -> Result<PathBuf> {
    let (mut above, mut here) = (PathBuf::from("/"), place.to_owned());
    for component in top.components() {
        let Component::Normal(name) = component else { continue };
        // A directory that may be passed through but not listed contributes no neighbours.
        for entry in std::fs::read_dir(&above).into_iter().flatten().flatten() {
            let link = here.join(entry.file_name());
            if entry.file_name() != name {
                symlink(entry.path(), &link).map_err(|e| Error::file(link, "making the link", e))?;
            }
        }
        above.push(name);
        here.push(name);
        std::fs::create_dir(&here).map_err(|e| Error::file(&here, "making", e))?;
    }
    Ok(here)
}

/// The directories outside of `top` that its manifests name as path dependencies, directly or through each other. Each has
/// a digest of the names, lengths and times of its files.
pub(super) fn outside_dependencies(top: &Path) -> BTreeMap<PathBuf, String> {
    let real_top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
    let mut found = BTreeMap::new();
    // The commit identifies the files of the top, so only the manifests of the top are read, and only once.
    let mut left = directories_named_by(&files_below(&real_top));
    while let Some(directory) = left.pop() {
        if directory.starts_with(&real_top) || found.keys().any(|known| directory.starts_with(known)) {
            continue;
        }
        let files = files_below(&directory);
        left.extend(directories_named_by(&files));
        found.insert(directory, digest_of_files(&files));
    }
    found
}

/// The directories that the manifests among these files name.
fn directories_named_by(files: &[PathBuf]) -> Vec<PathBuf> {
    let manifests = files.iter().filter(|file| file.ends_with("Cargo.toml"));
    manifests.flat_map(|manifest| named_directories(manifest)).collect()
}

/// The directories that a manifest names by the key `path`, in any table. A manifest that cannot be read names none; cargo
/// will refuse it.
fn named_directories(manifest: &Path) -> Vec<PathBuf> {
    fn paths(value: &toml::Value, found: &mut Vec<String>) {
        match value {
            toml::Value::Table(table) => {
                found.extend(table.get("path").and_then(toml::Value::as_str).map(str::to_owned));
                table.values().for_each(|value| paths(value, found));
            }
            toml::Value::Array(values) => values.iter().for_each(|value| paths(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    let table = std::fs::read_to_string(manifest).ok().and_then(|text| text.parse::<toml::Table>().ok());
    paths(&toml::Value::Table(table.unwrap_or_default()), &mut found);
    let place = manifest.parent().unwrap_or(manifest);
    let there = found.iter().filter_map(|path| place.join(path).canonicalize().ok());
    there.filter(|path| path.join("Cargo.toml").is_file()).collect()
}

/// The plain files below a directory, in order. It skips hidden directories and those marked as caches, such as cargo's
/// target directory, because they hold no sources. It follows no links.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(directory).into_iter().flatten().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type());
        let is_source =
            || !entry.file_name().to_string_lossy().starts_with('.') && !path.join("CACHEDIR.TAG").exists();
        match kind {
            Ok(kind) if kind.is_dir() && is_source() => files.extend(files_below(&path)),
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
    files
}

fn digest_of_files(files: &[PathBuf]) -> String {
    let line = |file: &PathBuf| {
        let (length, seconds, ns) =
            file.metadata().map_or((0, 0, 0), |data| (data.len(), data.mtime(), data.mtime_nsec()));
        format!("{file:?} {length} {seconds}.{ns}\n")
    };
    short_digest(files.iter().map(line).collect::<String>().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A directory with `w/mine` and what lies beside it.
    fn surroundings() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for directory in ["w/mine", "w/core/src", "w/core/target", "w/other", "far"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        for (file, text) in [
            (
                "w/mine/Cargo.toml",
                "[lib]\npath = \"lib.rs\"\n[dependencies]\ncore = { path = \"../core\" }\n",
            ),
            ("w/core/Cargo.toml", "[target.'cfg(unix)'.dependencies.far]\npath = \"../../far\"\n"),
            ("w/core/src/lib.rs", "one"),
            ("w/core/target/CACHEDIR.TAG", ""),
            ("far/Cargo.toml", "no manifest ["),
        ] {
            fs::write(place.path().join(file), text).unwrap();
        }
        place
    }

    #[test]
    fn neighbours_are_found_from_the_mirrored_directory() {
        let (place, scratch) = (surroundings(), tempfile::tempdir().unwrap());
        let mirrored = mirror_surroundings(&place.path().join("w/mine"), scratch.path()).unwrap();
        assert_eq!(fs::read_dir(&mirrored).unwrap().count(), 0);
        assert!(mirrored.starts_with(scratch.path()) && mirrored.ends_with("w/mine"));
        assert_eq!(fs::read(mirrored.join("../core/src/lib.rs")).unwrap(), b"one");
        assert!(mirrored.join("../../far/Cargo.toml").is_file());
        fs::remove_dir_all(scratch.path()).unwrap();
        assert!(place.path().join("w/core/src/lib.rs").is_file(), "what was linked stays");
    }

    #[test]
    fn packages_that_name_each_other_are_read_once() {
        let place = surroundings();
        let top = place.path().join("w/mine");
        fs::create_dir(top.join("member")).unwrap();
        // A member names its root. A neighbour names the root, the member and itself.
        let to_all = "[dependencies]\na = { path = \"../mine\" }\nb = { path = \"../mine/member\" }\nc = { path = \".\" }\n";
        for (file, text) in [
            ("mine/member/Cargo.toml", "[dependencies]\nmine = { path = \"..\" }\n"),
            ("core/Cargo.toml", to_all),
        ] {
            fs::write(place.path().join("w").join(file), text).unwrap();
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(outside_dependencies(&top)));
        let found = receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("an end");
        assert_eq!(
            found.into_keys().collect::<Vec<_>>(),
            [place.path().canonicalize().unwrap().join("w/core")]
        );
    }

    #[test]
    fn dependencies_outside_are_found_through_each_other_and_their_change_is_seen() {
        let place = surroundings();
        let top = place.path().join("w/mine");
        let before = outside_dependencies(&top);
        let real = place.path().canonicalize().unwrap();
        assert_eq!(before.keys().cloned().collect::<Vec<_>>(), [real.join("far"), real.join("w/core")]);
        fs::write(place.path().join("w/core/target/built"), "").unwrap();
        fs::write(place.path().join("w/other/new"), "").unwrap();
        assert_eq!(outside_dependencies(&top), before);
        fs::write(place.path().join("w/core/src/lib.rs"), "three").unwrap();
        let after = outside_dependencies(&top);
        assert_ne!(after[&real.join("w/core")], before[&real.join("w/core")]);
        assert_eq!(after[&real.join("far")], before[&real.join("far")]);
    }
}
