//! What is mounted where: the parser of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

use std::path::{Path, PathBuf};

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Device number, `major:minor`. The major number is 0 where the file system has no block device.
    pub device: &'a str,
    /// The directory of the file system that the mount point shows: `/`, or another in a bind mount or a container.
    pub root: String,
    /// Where it is mounted.
    pub point: String,
    /// Type of the file system.
    pub kind: &'a str,
    /// What is mounted: often a device.
    pub source: String,
    options: &'a str,
    point_options: &'a str,
}

/// All mounts, in the order in which the kernel lists them. Lines of another form are left out.
pub fn parse_mounts(mountinfo: &str) -> impl DoubleEndedIterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(Mount::parse)
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // The number of optional fields before the lone dash varies.
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(2);
        let (device, root, point) = (before.next()?, unescape(before.next()?), unescape(before.next()?));
        let point_options = before.next().unwrap_or_default();
        let mut after = after.split(' ');
        let (kind, source) = (after.next()?, unescape(after.next()?));
        Some(Self {
            device,
            root,
            point,
            kind,
            source,
            options: after.next().unwrap_or_default(),
            point_options,
        })
    }

    /// Options of this mount alone, such as `noatime`: other mounts of the same file system may have others.
    pub fn point_options(&self) -> impl Iterator<Item = String> + use<'a> {
        self.point_options.split(',').map(unescape)
    }

    /// Options of the file system. For version 1 control groups its controllers are among them.
    pub fn options(&self) -> impl Iterator<Item = String> + use<'a> {
        // A comma within an option is escaped, so the list is split before it is unescaped.
        self.options.split(',').map(unescape)
    }
}

/// The type of the file system that holds a path. The path must be absolute and free of symbolic links;
/// [`resolve_path`] makes it so.
pub fn filesystem_type<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    find_mount(mountinfo, path).map(|mount| mount.kind)
}

/// The mount that holds a path, absolute and free of symbolic links as for [`filesystem_type`].
pub fn find_mount<'a>(mountinfo: &'a str, path: &Path) -> Option<Mount<'a>> {
    // `max_by_key` returns the last of equals: a later mount on the same point hides the earlier one.
    let above = parse_mounts(mountinfo).filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| Path::new(&mount.point).components().count())
}

/// Undoes the kernel's escapes: a backslash and three octal digits stand for one byte, as `\040` for a space.
fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let escaped = behind.get(..3).filter(|_| byte == b'\\').and_then(parse_octal);
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &behind[3..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn parse_octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

/// The path without symbolic links. A path that does not exist yet is replaced by the nearest directory above it that
/// does, because it would be made on the same file system.
pub fn resolve_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find_map(|p| p.canonicalize().ok()).unwrap_or(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = include_str!("../../../fixtures/captured/mountinfo.txt");

    fn filesystem(path: &str) -> Option<&'static str> {
        filesystem_type(MOUNTINFO, Path::new(path))
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
    fn escapes_of_all_fields_are_undone() {
        let line =
            "36 28 0:50 /a\\134b /m\\011n rw shared:1 - overlay my\\040disk rw,upperdir=/u\\054v\\040w,x";
        let mount = parse_mounts(line).next().expect("a mount");
        assert_eq!(
            (mount.root.as_str(), mount.point.as_str(), mount.source.as_str()),
            ("/a\\b", "/m\tn", "my disk")
        );
        assert_eq!(mount.options().collect::<Vec<_>>(), ["rw", "upperdir=/u,v w", "x"]);
        assert_eq!(unescape("a\\04"), "a\\04", "too short for an escape");
    }

    #[test]
    fn without_mounts_the_file_system_is_unknown() {
        assert_eq!(filesystem_type("", Path::new("/")), None);
    }

    #[test]
    fn a_path_that_does_not_exist_yet_is_judged_by_its_parent() {
        let directory = tempfile::tempdir().expect("a directory");
        let parent = directory.path().canonicalize().expect("it exists");
        assert_eq!(resolve_path(&directory.path().join("a/b")), parent);
    }
}
