//! The file system of the scratch directory.

use super::{Finding, Patient};

/// File systems without a disk of their own, and what a case with files would measure there.
const UNBACKED: [(&str, &str); 4] = [
    ("tmpfs", "its files are memory: nothing can be evicted, and cases that must reach a disk are skipped"),
    ("ramfs", "its files are memory: nothing can be evicted, and cases that must reach a disk are skipped"),
    ("rootfs", "its files are memory: nothing can be evicted, and cases that must reach a disk are skipped"),
    ("overlay", "a file operation passes through two file systems, and opening a file may copy it"),
];

pub(super) fn scratch_has_no_disk(patient: &Patient) -> Option<Finding> {
    let filesystem = patient.fingerprint.scratch_filesystem.as_deref()?;
    let (_, why) = UNBACKED.iter().find(|(name, _)| *name == filesystem)?;
    Some(Finding::new(
        format!("the scratch directory {} is on {filesystem}", patient.scratch.display()),
        *why,
        "put it on a disk: TMPDIR=/directory/on/ext4/xfs/or/btrfs COMMAND",
    ))
}
