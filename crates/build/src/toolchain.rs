//! The toolchain that a user has chosen for a directory, where the commits do not say it: by `rustup override set`, or by a
//! `rust-toolchain.toml` that git does not track. rustup finds neither from the temporary directory in which a revision is built.

use super::build_facts::compiler;
use super::git::Repository;
use std::path::Path;
use syscost_platform::error::Result;
use syscost_platform::process::tool;

/// The names of the file that chooses a toolchain.
const FILES: [&str; 2] = ["rust-toolchain.toml", "rust-toolchain"];

/// The toolchain of the current directory that a build in `place`, below the top of a revision's `tree`, has to be given.
/// `None` if rustup finds it there by itself, or if there is no rustup.
///
/// # Errors
/// The toolchain of the current directory is not installed.
pub(super) fn chosen_toolchain(repository: &Repository, tree: &Path, place: &Path) -> Result<Option<String>> {
    let Ok(shown) = tool::command("rustup").args(["show", "active-toolchain"]).output() else {
        return Ok(None);
    };
    if !shown.status.success() {
        // The compiler may be none of rustup's.
        return compiler(Path::new("."), None).map(|_| None);
    }
    let text = String::from_utf8_lossy(&shown.stdout);
    let Some((name, origin, is_file)) = parse_choice(&text) else { return Ok(None) };
    let inside = repository.top_directory().and_then(|top| Path::new(origin).strip_prefix(top).ok());
    let is_tracked = |file: &Path| {
        let pattern = format!(":(top,literal){}", file.display());
        repository.read(&["ls-files", "--error-unmatch", "--", &pattern]).is_ok()
    };
    let is_of_commits = is_file && inside.is_some_and(is_tracked);
    // An override of a directory of the repository counts more than a file, one of a directory above it less.
    let is_first = !is_file && inside.is_some();
    let applies = !is_of_commits && (is_first || !has_own_file(tree, place));
    Ok(applies.then(|| name.to_owned()))
}

/// Whether the revision chooses a toolchain by a file.
fn has_own_file(tree: &Path, place: &Path) -> bool {
    let directories = place.ancestors().take_while(|directory| directory.starts_with(tree));
    directories.into_iter().any(|directory| FILES.iter().any(|name| directory.join(name).is_file()))
}

/// The name of the toolchain, the directory or the file that it is chosen by, and whether that is a file. `None` for a choice
/// that holds in every directory: the default, and the variable `RUSTUP_TOOLCHAIN`, which a build inherits.
fn parse_choice(shown: &str) -> Option<(&str, &str, bool)> {
    let (name, reason) = shown.trim().split_once(" (")?;
    let (words, rest) = reason.split_once('\'')?;
    let is_file = match words.trim() {
        "directory override for" => false,
        "overridden by" => true,
        _ => return None,
    };
    Some((name, rest.rsplit_once('\'')?.0, is_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_a_directory_is_told_from_one_of_everywhere() {
        for (shown, expected) in [
            ("1.86.0-x (directory override for '/a (b)')\n", Some(("1.86.0-x", "/a (b)", false))),
            (
                "1.86.0-x (overridden by '/it's/rust-toolchain.toml')",
                Some(("1.86.0-x", "/it's/rust-toolchain.toml", true)),
            ),
            ("1.86.0-x (overridden by environment variable RUSTUP_TOOLCHAIN)", None),
            ("1.86.0-x (environment override by RUSTUP_TOOLCHAIN)", None),
            ("stable-x (default)", None),
            ("", None),
        ] {
            assert_eq!(parse_choice(shown), expected, "{shown}");
        }
    }

    #[test]
    fn a_file_of_a_revision_is_looked_for_up_to_its_top() {
        let scratch = tempfile::tempdir().unwrap();
        let (tree, place) = (scratch.path().join("tree"), scratch.path().join("tree/a/b"));
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(scratch.path().join("rust-toolchain"), "").unwrap();
        assert!(!has_own_file(&tree, &place));
        std::fs::write(tree.join("rust-toolchain.toml"), "").unwrap();
        assert!(has_own_file(&tree, &place));
    }
}
