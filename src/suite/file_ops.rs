//! # What is timed
//! One operation on a name in a directory, each by itself. The directory has 1, 1000 or 100 000 entries. The
//! operations: creating an empty file (`openat` with `O_CREAT` and `O_EXCL`), opening one that exists, `stat`, `rename`
//! to another name and back, `unlink`, `mkdir`, and `fsync` of a file of which 4 KiB were just overwritten.
//!
//! # What is not
//! Making the entries; closing what was opened; removing what was made, and making what is removed; overwriting what
//! `fsync` writes to the device.
//!
//! # How we know
//! A call that is refused ends the case and names the file. The kernel is asked after every operation: what was created
//! is there, as a file or as a directory; what was renamed has its new name and not its old one; what was opened and
//! what `stat` described is the same inode; and after every batch: what was removed is gone. With `fsync` the bytes
//! must have been charged to this process as written. The number of entries is counted before.
//!
//! # What fools it
//! Existing names are looked up repeatedly, a thousand different ones at most, so the kernel's cache of names answers;
//! only the operations that change a large directory show what it costs on the disk. Journals are written later, by
//! threads of the kernel, on any CPU. A disk that reports data as written before it is makes `fsync` cheap; on tmpfs
//! there is nothing to wait for, and the case is skipped. 100 000 entries take seconds to make: full scale only.
//! ext4 without a journal does not give away inodes that were removed in the last minutes, and passes over them one by
//! one: where a program has just removed some thousand files, creating one took 60 to 220 µs in place of 3. Each
//! process's directory is laid into a block group of its own (`T` of chattr(1)), so that it meets none but its own.
//!
//! # Reading the number
//! In a hashed directory (ext4's htree, XFS, Btrfs) an operation should cost the same in all three sizes; in a linear
//! one the cost grows in proportion. `create` and `unlink` together are what lmbench's `lat_fs` reports as files a
//! second.
//!
//! # Source
//! lmbench's `lat_fs` (McVoy and Staelin 1996), which creates and deletes files of 0 to 10 KiB in a directory of their
//! own. open(2), rename(2), fsync(2); `recently_deleted` of the kernel's fs/ext4/ialloc.c.

mod directory;

use crate::case::need::TAKES_SECONDS;
use crate::case::{Case, Claim, Group, OwnTasks, Rule, set_up};
use crate::clock::Delta;
use crate::kit::blocks::DISK;
use crate::record::{Axis, Curve, Headline};
use directory::{Directory, Operate, operation_subject};

pub const GROUP: Group = Group::new("file_ops", include_str!("file_ops.rs"), cases)
    .version(2)
    .curves(&[
        Curve::new("file_ops/create/", "create", Axis::Count("names in the directory")),
        Curve::new("file_ops/open/", "open", Axis::Count("names in the directory")),
        Curve::new("file_ops/stat/", "stat", Axis::Count("names in the directory")),
        Curve::new("file_ops/rename/", "rename", Axis::Count("names in the directory")),
        Curve::new("file_ops/unlink/", "unlink", Axis::Count("names in the directory")),
        Curve::new("file_ops/mkdir/", "mkdir", Axis::Count("names in the directory")),
    ])
    .headlines(&HEADLINES);

const HEADLINES: [Headline; 2] = [
    Headline::new(120, "create/1000", "a file created"),
    Headline::new(121, "fsync/1", "fsync of a small file"),
];

/// Sizes of the directory, entries.
const ENTRIES: [usize; 3] = [1, 1_000, 100_000];

/// Name in the id, title, the operation, and the predicted cost of its software, core cycles.
const OPERATIONS: [(&str, &str, Operate, f64); 7] = [
    ("create", "creating an empty file", Directory::time_create, 20_000.0),
    ("open", "opening a file", Directory::time_open, 3_000.0),
    ("stat", "stat of a file by its name", Directory::time_stat, 1_500.0),
    ("rename", "renaming a file", Directory::time_rename, 20_000.0),
    ("unlink", "unlinking an empty file", Directory::time_unlink, 20_000.0),
    ("fsync", "fsync of a file with 4 KiB overwritten", Directory::time_fsync, 60_000.0),
    ("mkdir", "making a directory", Directory::time_mkdir, 40_000.0),
];

fn cases() -> Vec<Case> {
    let operation_cases = |operation| ENTRIES.map(|entries| operation_case(operation, entries));
    OPERATIONS.into_iter().flat_map(operation_cases).collect()
}

fn operation_case(
    (name, words, operate, software): (&'static str, &str, Operate, f64),
    entries: usize,
) -> Case {
    let once_each = set_up(move |place| {
        Ok(operation_subject(Directory::with_entries(&place.scratch, entries)?, operate))
    });
    let title = match entries {
        1 => format!("{words} in a directory of one entry"),
        _ => format!("{words} in a directory of {entries} entries"),
    };
    let case = Case::new(format!("{name}/{entries}"), title, once_each)
        .one_by_one()
        // Threads of the kernel write the journal, on any CPU.
        .own_tasks(OwnTasks::Elsewhere)
        .derived_figure("rate", Rule::Rate)
        .claim(Claim::Checked(directory::LOOKED_AT));
    let case = match entries {
        100_000.. => case.need(TAKES_SECONDS),
        _ => case,
    };
    // Those that use the names do so in turn.
    let case = if matches!(name, "open" | "stat") {
        case.lap_length(entries.min(directory::USED) as u64)
    } else {
        case
    };
    match name {
        "fsync" => case.need(DISK).claim(Claim::Counted(claim_bytes_written)).predict(
            300_000.0,
            software,
            "two writes that the disk must have kept, one after the other",
        ),
        _ => case.predict(1_000.0, software, "a name looked up; where it changes, blocks of a journal"),
    }
}

/// Claims that the kernel has charged this process for writing what it overwrote.
fn claim_bytes_written(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    let Some(bytes) = delta.counted.device_written else {
        return Err("the kernel does not tell what went to devices (CONFIG_TASK_IO_ACCOUNTING)".into());
    };
    if bytes < iterations * directory::OVERWRITTEN as u64 {
        return Err(format!(
            "{bytes} bytes were written in {iterations} times: there was nothing to wait for"
        ));
    }
    Ok(format!("{bytes} bytes were written in {iterations} times"))
}

#[cfg(test)]
mod tests;
