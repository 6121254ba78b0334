//! What is mounted where, from `/proc/self/mountinfo` (the kernel's Documentation/filesystems/proc.rst, 3.5).

use std::path::{Path, PathBuf};

/// The type of the file system that holds a path. The path must be absolute and free of symbolic links;
/// [`resolve`] makes it so.
pub fn filesystem_of<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    // The last of equals wins: a later mount on the same point hides the earlier one.
    mountinfo
        .lines()
        .filter_map(mount)
        .filter(|(point, _)| path.starts_with(point))
        .max_by_key(|(point, _)| point.components().count())
        .map(|(_, filesystem)| filesystem)
}

/// The mount point and the file system type of one line. Optional fields stand before the lone dash, so
/// the type can only be found from there.
fn mount(line: &str) -> Option<(PathBuf, &str)> {
    let (left, right) = line.split_once(" - ")?;
    let point = left.split(' ').nth(4)?;
    Some((PathBuf::from(unescape(point)), right.split(' ').next()?))
}

/// The kernel writes space, tab, newline and backslash in octal, as `\040`.
fn unescape(point: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(point.to_owned(), |text, (octal, plain)| text.replace(octal, plain))
}

/// The path without symbolic links. What does not exist yet is judged by the nearest directory above it
/// that does, because that is where it would be made.
pub fn resolve(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find_map(|p| p.canonicalize().ok()).unwrap_or(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = include_str!("../../fixtures/captured/mountinfo.txt");

    fn filesystem(path: &str) -> Option<&'static str> {
        filesystem_of(MOUNTINFO, Path::new(path))
    }

    #[test]
    fn the_deepest_mount_point_holds_the_path() {
        assert_eq!(filesystem("/home/x"), Some("ext4"));
        assert_eq!(filesystem("/dev/shm/scratch"), Some("tmpfs"));
        assert_eq!(filesystem("/sys/fs/cgroup/unified/a"), Some("cgroup2"));
    }

    #[test]
    fn a_mount_point_is_a_directory_and_no_prefix_of_a_name() {
        assert_eq!(filesystem("/development"), Some("ext4"));
    }

    #[test]
    fn a_later_mount_hides_an_earlier_one() {
        assert_eq!(filesystem("/mnt/twice/file"), Some("xfs"));
    }

    #[test]
    fn escaped_spaces_and_optional_fields_are_understood() {
        assert_eq!(filesystem("/mnt/my disk/file"), Some("btrfs"));
    }

    #[test]
    fn without_mounts_nothing_is_known() {
        assert_eq!(filesystem_of("", Path::new("/")), None);
    }

    #[test]
    fn what_does_not_exist_yet_is_judged_by_its_parent() {
        let directory = tempfile::tempdir().expect("a directory");
        let parent = directory.path().canonicalize().expect("it exists");
        assert_eq!(resolve(&directory.path().join("a/b")), parent);
    }
}
