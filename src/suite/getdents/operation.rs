//! A directory with a given number of names, and the listing of all of them by lseek(2) and getdents64(2), without the C library.
//!
//! # Invariants
//!
//! * **QUIET**: the call reads and writes no memory of ours.
//! * **OWN-BUFFER**: the call writes only into the slice that it is given, and gets its length.
#![allow(unsafe_code)]

use crate::kit::contract::*;
use crate::kit::kernel_call::{check_granted, time_calls};
use crate::platform::arch::syscall4;
use std::fs::{File, create_dir_all};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Goes back to the beginning of a directory. Returns 0, or a negative error number.
#[inline(always)]
pub fn rewind(directory: BorrowedFd<'_>) -> i64 {
    // SAFETY: QUIET.
    unsafe { syscall4(libc::SYS_lseek, directory.as_raw_fd() as usize, 0, libc::SEEK_SET as usize, 0) }
}

/// Reads the next records of a directory into `buffer`. Returns how many bytes they have, 0 at the end, or a negative
/// error number.
#[inline(always)]
pub fn getdents64(directory: BorrowedFd<'_>, buffer: &mut [u8]) -> i64 {
    let (address, length) = (buffer.as_mut_ptr() as usize, buffer.len());
    // SAFETY: OWN-BUFFER.
    unsafe { syscall4(libc::SYS_getdents64, directory.as_raw_fd() as usize, address, length, 0) }
}

/// What is checked after each batch.
pub(super) const WHOLE: &str =
    "every name was listed once and no other, and each iteration gave as many bytes by as many calls";

/// Size of the buffer, bytes: what glibc's `readdir` takes.
const BUFFER: usize = 32 << 10;
/// Offsets, in a record of the kernel (`struct linux_dirent64`), of its length, which has two bytes, and of its name.
const LENGTH: usize = 16;
const NAME: usize = 19;

/// The name of a file: all are equally long.
pub(super) fn file_name(index: usize) -> String {
    format!("name-{index:06}")
}

pub(super) struct Listing {
    path: PathBuf,
    directory: File,
    buffer: Box<[u8]>,
    /// Number of names.
    names: usize,
    /// The calls and the bytes of one whole listing.
    whole: Answers,
}

/// The number of answers of `getdents64`, the 0 at the end included, and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Answers {
    calls: u64,
    bytes: u64,
}

impl Listing {
    /// A listing of a directory below `scratch` with `names` empty files, which are made if they are missing.
    pub(super) fn create(scratch: &Path, names: usize) -> Result<Self> {
        let path = scratch.join(format!("names-{names}"));
        create_dir_all(&path).map_err(|e| Error::file(&path, "making a directory", e))?;
        for index in 0..names {
            let file = path.join(file_name(index));
            File::create(&file).map_err(|e| Error::file(file, "creating", e))?;
        }
        let directory = File::open(&path).map_err(|e| Error::file(&path, "opening", e))?;
        let buffer = vec![0; BUFFER].into_boxed_slice();
        let mut listing = Self { path, directory, buffer, names, whole: Answers::default() };
        listing.whole = listing.verify_listing()?;
        Ok(listing)
    }

    /// Checks that the first call returns all names, so that the second one returns 0.
    pub(super) fn check_one_buffer(&self) -> Result<()> {
        match self.whole.calls {
            2 => Ok(()),
            calls => Err(Error::Missing(format!(
                "the file system of {} lists {} names by {calls} calls, and the case is made for 2: let SYSCOST_DIR \
                 be a directory on another one",
                self.path.display(),
                self.names
            ))),
        }
    }

    /// Lists from the beginning to the end, and hands each answer's records to `see`. Returns 0, or a negative error
    /// number.
    #[inline(always)]
    fn list_entries(&mut self, mut see: impl FnMut(&[u8])) -> i64 {
        let directory = self.directory.as_fd();
        let answer = rewind(directory);
        if answer < 0 {
            return answer;
        }
        loop {
            let answer = getdents64(directory, &mut self.buffer);
            if answer < 0 {
                return answer;
            }
            see(&self.buffer[..answer as usize]);
            if answer == 0 {
                return 0;
            }
        }
    }

    /// Lists once and looks at every record.
    fn verify_listing(&mut self) -> Result<Answers> {
        let mut answers = Answers::default();
        let mut seen = vec![false; self.names];
        let mut wrong = None;
        let answer = self.list_entries(|records| {
            answers.add(records);
            for found in record_names(records).filter(|found| ![&b"."[..], b".."].contains(found)) {
                match index(found).and_then(|index| seen.get_mut(index)) {
                    Some(seen) if !*seen => *seen = true,
                    _ => wrong = Some(String::from_utf8_lossy(found).into_owned()),
                }
            }
        });
        check_granted("getdents64", answer)?;
        let path = self.path.display();
        if let Some(found) = wrong {
            return Err(Error::Disproved(format!(
                "{path}: {found} was listed, and more often than there is such a file"
            )));
        }
        match seen.iter().position(|seen| !seen) {
            None => Ok(answers),
            Some(index) => Err(Error::Disproved(format!("{path}: {} was not listed", file_name(index)))),
        }
    }
}

impl Subject for Listing {
    fn run(&mut self, n: u64, clock: &Clock) -> Result<Ticks> {
        let mut all = Answers::default();
        let ticks = time_calls("getdents64", n, clock, || self.list_entries(|records| all.add(records)))?;
        self.whole = self.verify_listing()?;
        let Answers { calls, bytes } = self.whole;
        if all == (Answers { calls: n * calls, bytes: n * bytes }) {
            return Ok(ticks);
        }
        Err(Error::Disproved(format!(
            "{n} listings gave {} bytes by {} calls, and one gives {bytes} by {calls}",
            all.bytes, all.calls
        )))
    }
}

impl Answers {
    #[inline(always)]
    fn add(&mut self, records: &[u8]) {
        self.calls += 1;
        self.bytes += records.len() as u64;
    }
}

/// The names in an answer's records.
fn record_names(mut records: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = [*records.get(LENGTH)?, *records.get(LENGTH + 1)?];
        let (record, rest) = records.split_at_checked(u16::from_ne_bytes(length).into())?;
        records = rest;
        record.get(NAME..)?.split(|byte| *byte == 0).next()
    })
}

/// The index of the file of this name; `None` if no such file was made.
fn index(found: &[u8]) -> Option<usize> {
    let index = std::str::from_utf8(found).ok()?.strip_prefix("name-")?.parse().ok()?;
    (file_name(index).as_bytes() == found).then_some(index)
}
