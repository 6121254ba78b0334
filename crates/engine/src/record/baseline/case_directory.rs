//! Criterion's directory of a case. Criterion makes one name of many: it replaces characters and cuts what is long, so that
//! two cases would pass for earlier runs of each other. A name that it would change so is given to it with a hash.

use std::path::{Path, PathBuf};

/// Bytes of a name that Criterion keeps.
const LONGEST: usize = 64;
/// Characters that Criterion replaces by `_`.
const REPLACED: [char; 10] = ['?', '"', '/', '\\', '*', '<', '>', ':', '|', '^'];
/// Where this crate keeps its own files, beside the directories of groups.
const OWN: &str = "syscost";
/// Bytes of the hash and of the dash before it.
const HASH: usize = 9;

/// Criterion's directory of a case, below its home. The first part of the id is the group, all the rest
/// is one function id to Criterion, so that `call/u64/3` lives in `call/u64_3`.
pub fn criterion_directory(id: &str) -> PathBuf {
    let (group, function) = id.split_once('/').unwrap_or((id, ""));
    let part = |name| replace_characters(&criterion_name(name));
    Path::new(&part(group)).join(part(function))
}

/// The name under which Criterion is given a group, or a case without its group: its own, or a readable beginning and a hash
/// where several names would share a directory.
pub fn criterion_name(name: &str) -> String {
    if is_unchanged_by_criterion(name) {
        return name.to_owned();
    }
    let mut beginning = replace_characters(name);
    let end = (0..=(LONGEST - HASH).min(beginning.len())).rev().find(|&end| beginning.is_char_boundary(end));
    beginning.truncate(end.unwrap_or_default());
    if beginning.starts_with('.') {
        beginning.replace_range(..1, "_");
    }
    format!("{beginning}-{:08x}", hash(name))
}

/// Whether Criterion's directory is this name with `_` for each `/`. A name with both would be ambiguous.
fn is_unchanged_by_criterion(name: &str) -> bool {
    let is_replaced = |c: char| c != '/' && REPLACED.contains(&c);
    let is_twofold = name.contains('/') && name.contains('_');
    name.len() <= LONGEST
        && !name.contains(is_replaced)
        && !is_twofold
        && !name.starts_with('.')
        && name != OWN
}

/// As Criterion's `make_filename_safe`, of a name that it does not cut.
fn replace_characters(name: &str) -> String {
    name.replace(REPLACED, "_")
}

/// FNV-1a of 64 bits, folded to 32. It must never change: directories are named by it.
fn hash(name: &str) -> u32 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash >> 32) as u32 ^ hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_directory_is_criterions() {
        assert_eq!(criterion_directory("call/u64/3"), Path::new("call/u64_3"));
        assert_eq!(criterion_directory("mine/snake_case"), Path::new("mine/snake_case"));
        assert_eq!(criterion_directory("alone"), Path::new("alone"));
        assert_eq!(criterion_directory("a:b/c?d/e"), Path::new("a_b-e2c18079/c_d_e-0a5f1d4b"));
    }

    #[test]
    fn names_that_criterion_makes_one_have_directories_of_their_own() {
        let long = "x".repeat(64);
        let ends = ["a", "b", "é", ""].map(|end| format!("g/{long}{end}"));
        let replaced =
            ["x/y/z", "x/y_z", "x_y/z", "x?y/z", "x:y|z", "x\\y*z"].map(|name| format!("g/{name}"));
        let ids: Vec<_> = ends.into_iter().chain(replaced).collect();
        let directories: BTreeSet<_> = ids.iter().map(|id| criterion_directory(id)).collect();
        assert_eq!(directories.len(), ids.len(), "{directories:?}");
        for id in &ids {
            let given = criterion_name(id.strip_prefix("g/").expect("a case"));
            assert!(
                given.len() <= LONGEST && criterion_directory(id).ends_with(given.replace('/', "_")),
                "{given}"
            );
        }
    }

    #[test]
    fn no_name_leaves_its_place() {
        for name in ["..", ".", ".hidden", "", "syscost"] {
            let given = criterion_name(name);
            assert!(!given.starts_with('.') && given != "syscost", "{name}: {given}");
        }
    }

    #[test]
    fn the_cases_of_this_crate_keep_their_directories() {
        let ids = include_str!("../../../../../fixtures/ids.txt").lines();
        let ids = ids.filter_map(|line| line.split_whitespace().next());
        let moved = |id: &&str| {
            criterion_directory(id)
                != Path::new(&id.replacen('/', "\0", 1).replace('/', "_").replace('\0', "/"))
        };
        assert_eq!(ids.filter(moved).collect::<Vec<_>>(), [""; 0]);
    }
}
