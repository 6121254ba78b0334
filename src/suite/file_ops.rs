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
//! Existing names are looked up repeatedly, a thousand different ones at most, so they are in the kernel's cache of names;
//! only the operations that change a large directory show what it costs on the disk. Journals are written later, by
//! threads of the kernel, on any CPU. A disk that reports data as written before it is makes `fsync` cheap; on tmpfs
//! there is nothing to wait for, and the case is skipped. 100 000 entries take seconds to make: full scale only.
//! ext4 without a journal does not reuse inodes that were freed in the last minutes, and skips them one by one: after a
//! program had removed some thousand files, creating one took 60 to 220 µs in place of 3. Each process's directory is
//! placed into a block group of its own (`T` of chattr(1)), where only inodes that it freed itself are skipped.
//!
//! # Reading the number
//! In a hashed directory (ext4's htree, XFS, Btrfs) an operation should cost the same in all three sizes; in a linear
//! one the cost grows in proportion. `create` and `unlink` together are what lmbench's `lat_fs` reports as files a
//! second.
//!
//! # Source
//! lmbench's `lat_fs` (McVoy and Staelin 1996), which creates and deletes files of 0 to 10 KiB in a directory of their
//! own. open(2), rename(2), fsync(2); `recently_deleted` of the kernel's fs/ext4/ialloc.c.

use crate::kit::blocks::DISK;
use crate::kit::contract::*;
use crate::kit::kernel_call::c_path;
use crate::platform::volume;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, open, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, stat};
use nix::unistd::{mkdir, unlink};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

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
    .headlines(&[
        Headline::new(120, "create/1000", "a file created"),
        Headline::new(121, "fsync/1", "fsync of a small file"),
    ]);

/// Sizes of the directory, entries.
const ENTRIES: [usize; 3] = [1, 1_000, 100_000];

/// Name in the id, title, the operation, and the predicted cost of its software, core cycles.
type Row = (&'static str, &'static str, Operate, f64);
const OPERATIONS: [Row; 7] = [
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

fn operation_case((name, words, operate, software): Row, entries: usize) -> Case {
    let once_each = set_up(move |place| {
        Ok(operation_subject(Directory::with_entries(&place.scratch, entries)?, operate))
    });
    let of = if entries == 1 { "one entry".into() } else { format!("{entries} entries") };
    let title = format!("{words} in a directory of {of}");
    let case = Case::new(format!("{name}/{entries}"), title, once_each)
        .one_by_one()
        // Threads of the kernel write the journal, on any CPU.
        .own_tasks(OwnTasks::Elsewhere)
        .derived_figure("rate", Rule::Rate)
        .claim(Claim::Checked(LOOKED_AT));
    let case = if entries >= 100_000 { case.need(TAKES_SECONDS) } else { case };
    // These two use the names in turn, so that a sample is whole rounds of them.
    let case = if matches!(name, "open" | "stat") { case.lap_length(entries.min(USED) as u64) } else { case };
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
fn claim_bytes_written(delta: &Delta, iterations: u64) -> Judged {
    let Some(bytes) = delta.counted.device_written else {
        return Err("the kernel does not tell what went to devices (CONFIG_TASK_IO_ACCOUNTING)".into());
    };
    ensure(bytes >= iterations * OVERWRITTEN as u64, || {
        format!("{bytes} bytes were written in {iterations} times: there was nothing to wait for")
    })?;
    Ok(format!("{bytes} bytes were written in {iterations} times"))
}

#[cfg(test)]
mod tests;

/// What is checked after each operation and batch.
pub(super) const LOOKED_AT: &str =
    "the kernel was asked after every batch: what was made is there, what was removed is not";

/// Bytes of the file that are overwritten before each `fsync`.
pub(super) const OVERWRITTEN: usize = 4096;
/// Number of the entries that are opened and looked up, in turn.
pub(super) const USED: usize = 1000;

/// Times one operation once, checks it, and undoes what it did, except a renaming.
pub(super) type Operate = fn(&mut Directory, &Clock) -> Result<Ticks>;

pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// The entries that are used, by name and inode number.
    entries: Vec<(CString, u64)>,
    next: usize,
    /// Two names that no entry has.
    fresh: [CString; 2],
    /// Whether the first of them exists, because it was renamed.
    renamed: bool,
    overwritten: File,
    /// The byte that `fsync` cases wrote last.
    value: u8,
}

/// The subject: repeats the operation and checks the directory afterwards.
pub(super) fn operation_subject(mut directory: Directory, operate: Operate) -> impl Subject {
    move |n: u64, clock: &Clock| {
        let ticks = (0..n).map(|_| operate(&mut directory, clock)).sum::<Result<Ticks>>()?;
        directory.check_leftovers().map(|()| ticks)
    }
}

/// Makes a directory with this many files. Of an existing directory only the missing files are made.
fn create_entries(path: &Path, count: usize) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|e| Error::file(path, "making a directory", e))?;
    for index in count_entries(path)?..count {
        let name = path.join(format!("entry-{index}"));
        File::create(&name).map_err(|e| Error::file(name, "creating", e))?;
    }
    Ok(())
}

impl Directory {
    /// A directory below `scratch` with `count` empty files. It is made once for all cases of a process.
    pub(super) fn with_entries(scratch: &Path, count: usize) -> Result<Self> {
        volume::spread_directories(scratch);
        let path = scratch.join(std::process::id().to_string()).join(format!("entries-{count}"));
        let made = create_entries(&path, count);
        if made.is_err() {
            // An incomplete directory would take inodes and space that other cases need.
            let _ = std::fs::remove_dir_all(&path);
        }
        made?;
        let step = count.div_ceil(USED);
        let used = (0..count).step_by(step).map(|index| {
            let name = path.join(format!("entry-{index}"));
            let inode = std::fs::metadata(&name).map_err(|e| Error::file(&name, "asking for", e))?.ino();
            Ok((c_path(&name)?, inode))
        });
        let used = used.collect::<Result<_>>()?;
        let fresh = [c_path(&path.join("fresh"))?, c_path(&path.join("fresher"))?];
        let beside = path.join("entry-0");
        let overwritten = File::options().read(true).write(true).open(&beside);
        let overwritten = overwritten.map_err(|e| Error::file(&beside, "opening", e))?;
        let directory = Self { path, entries: used, next: 0, fresh, renamed: false, overwritten, value: 0 };
        directory.overwrite_file(0)?;
        // The kernel charges a process for overwriting a page only if the page was clean.
        directory.check_synced(nix::unistd::fsync(&directory.overwritten))?;
        Ok(directory)
    }

    fn overwrite_file(&self, value: u8) -> Result<()> {
        let bytes = [value; OVERWRITTEN];
        self.overwritten
            .write_all_at(&bytes, 0)
            .map_err(|e| Error::file(&self.path, "overwriting entry-0", e))
    }

    /// The error of a call, with the path that it was about.
    fn call_error(&self, doing: &'static str, name: &CString, errno: Errno) -> Error {
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        Error::file(path, doing, errno.into())
    }

    fn next(&mut self) -> usize {
        self.next = (self.next + 1) % self.entries.len();
        self.next
    }

    #[inline(always)]
    fn open_new(&self) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        open(self.fresh[0].as_c_str(), flags, Mode::S_IRUSR)
    }

    /// Creates the fresh name, untimed.
    fn create_fresh_name(&self) -> Result<()> {
        self.close_created(self.open_new())
    }

    /// Closes a file that was created.
    fn close_created(&self, file: nix::Result<OwnedFd>) -> Result<()> {
        file.map(drop).map_err(|errno| self.call_error("creating", &self.fresh[0], errno))
    }

    fn check_removed(&self, answer: nix::Result<()>) -> Result<()> {
        answer.map_err(|errno| self.call_error("unlinking", &self.fresh[0], errno))
    }

    pub(super) fn time_create(&mut self, clock: &Clock) -> Result<Ticks> {
        let mut file = Err(Errno::UnknownErrno);
        let ticks = clock.time(|| file = self.open_new());
        self.close_created(file)?;
        self.check_kind(&self.fresh[0], Some(SFlag::S_IFREG))?;
        self.check_removed(unlink(self.fresh[0].as_c_str())).map(|()| ticks)
    }

    pub(super) fn time_unlink(&mut self, clock: &Clock) -> Result<Ticks> {
        self.create_fresh_name()?;
        let name = &self.fresh[0];
        let mut gone = Ok(());
        let ticks = clock.time(|| gone = unlink(name.as_c_str()));
        self.check_removed(gone).map(|()| ticks)
    }

    pub(super) fn time_open(&mut self, clock: &Clock) -> Result<Ticks> {
        let next = self.next();
        let (name, inode) = &self.entries[next];
        let mut opened = Err(Errno::UnknownErrno);
        let ticks =
            clock.time(|| opened = open(name.as_c_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()));
        let file = File::from(opened.map_err(|errno| self.call_error("opening", name, errno))?);
        let metadata = file.metadata().map_err(|e| Error::file(&self.path, "asking for an open file", e))?;
        self.check_inode(name, metadata.ino(), *inode).map(|()| ticks)
    }

    pub(super) fn time_stat(&mut self, clock: &Clock) -> Result<Ticks> {
        let next = self.next();
        let (name, inode) = &self.entries[next];
        let mut status: nix::Result<FileStat> = Err(Errno::UnknownErrno);
        let ticks = clock.time(|| status = stat(name.as_c_str()));
        let status = status.map_err(|errno| self.call_error("asking for", name, errno))?;
        self.check_inode(name, status.st_ino, *inode).map(|()| ticks)
    }

    fn check_inode(&self, name: &CString, found: u64, inode: u64) -> Result<()> {
        if found == inode { Ok(()) } else { Err(self.call_error("finding again", name, Errno::ESTALE)) }
    }

    /// Renames to the other name; the next call renames back.
    pub(super) fn time_rename(&mut self, clock: &Clock) -> Result<Ticks> {
        let [from, to] = &self.fresh;
        if !self.renamed {
            self.create_fresh_name()?;
        }
        let mut renamed = Ok(());
        let ticks = clock.time(|| renamed = renameat(AT_FDCWD, from.as_c_str(), AT_FDCWD, to.as_c_str()));
        renamed.map_err(|errno| self.call_error("renaming", from, errno))?;
        self.check_kind(from, None)?;
        self.check_kind(to, Some(SFlag::S_IFREG))?;
        self.fresh.swap(0, 1);
        self.renamed = true;
        Ok(ticks)
    }

    pub(super) fn time_mkdir(&mut self, clock: &Clock) -> Result<Ticks> {
        let name = &self.fresh[0];
        let mut made = Ok(());
        let ticks = clock.time(|| made = mkdir(name.as_c_str(), Mode::S_IRWXU));
        made.map_err(|errno| self.call_error("making a directory", name, errno))?;
        self.check_kind(name, Some(SFlag::S_IFDIR))?;
        let path = self.path.join(std::ffi::OsStr::from_bytes(name.as_bytes()));
        std::fs::remove_dir(&path).map_err(|e| Error::file(path, "removing a directory", e)).map(|()| ticks)
    }

    pub(super) fn time_fsync(&mut self, clock: &Clock) -> Result<Ticks> {
        self.value = self.value.wrapping_add(1);
        self.overwrite_file(self.value)?;
        let mut synced = Ok(());
        let ticks = clock.time(|| synced = nix::unistd::fsync(&self.overwritten));
        self.check_synced(synced).map(|()| ticks)
    }

    fn check_synced(&self, answer: nix::Result<()>) -> Result<()> {
        answer.map_err(|errno| Error::file(self.path.join("entry-0"), "fsync", errno.into()))
    }

    /// Checks that a name is of this kind, or that it does not exist.
    fn check_kind(&self, name: &CString, kind: Option<SFlag>) -> Result<()> {
        let found = match stat(name.as_c_str()) {
            Ok(status) => Some(SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT),
            Err(Errno::ENOENT) => None,
            Err(errno) => return Err(self.call_error("asking for", name, errno)),
        };
        if found == kind {
            return Ok(());
        }
        let errno = if found.is_none() { Errno::ENOENT } else { Errno::EEXIST };
        Err(self.call_error("looking whether the operation was done", name, errno))
    }

    /// Checks after a batch that only a renamed file is left, under one name.
    fn check_leftovers(&self) -> Result<()> {
        self.check_kind(&self.fresh[0], self.renamed.then_some(SFlag::S_IFREG))?;
        self.check_kind(&self.fresh[1], None)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Remove what a renaming leaves: the next case counts the entries.
        for name in &self.fresh {
            let _ = unlink(name.as_c_str());
        }
    }
}

/// Number of entries of a directory.
pub(super) fn count_entries(path: &Path) -> Result<usize> {
    let entries = std::fs::read_dir(path).map_err(|e| Error::file(path, "reading a directory", e))?;
    Ok(entries.count())
}
