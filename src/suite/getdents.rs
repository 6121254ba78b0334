//! # What is timed
//! Listing a whole directory by the raw system call. It has 10, 1000 or 100 000 names (`list/…`). One iteration is
//! `lseek` to 0, and then `getdents64` with a buffer of 32 KiB until it returns 0.
//!
//! # What is not
//! Opening and closing the directory, making the files, and looking at what was listed: no record is parsed, no
//! name is sorted, and no file is asked for its status. The control is the same loop around a constant. Adding up
//! the answers stays in the number; it costs a few instructions a call.
//!
//! # How we know
//! After every batch the directory is listed once more, untimed, and its records are read: each name that was made
//! must be there exactly once, and no other except `.` and `..`. For n iterations, the listings of the batch
//! together must have returned n times the bytes of this one, by n times its calls. A witness counts the entries of some
//! iterations where their number is known beforehand: up to 1000 names fit into the buffer (a record has 32 bytes),
//! so that an iteration is `lseek` and two `getdents64`, of which the second returns 0. A file system that needs
//! more calls for so few names skips these cases. With 100 000 names the number of entries depends on how the file
//! system fills the buffer: it should be about 100, and is checked to be the same in each iteration. Time grows in proportion to
//! the iterations.
//!
//! # What fools it
//! The directory's blocks are in the page cache after the first listing: this is no measurement of a disk. File
//! systems differ: ext4 goes back to the beginning by forgetting what it had sorted, and reads and hashes every
//! name again; tmpfs keeps its names in a list or a tree in memory; a network's or a user-space file system may ask
//! a server, or remember the answer. The record says on which one the scratch directory was. All names are
//! equally long (11 bytes) and were made in ascending order, by one process: a directory that has grown and shrunk
//! for years is larger than its names. The files are empty. Making 100 000 files takes seconds, and so does
//! removing them: full scale only.
//!
//! # Reading the number
//! `name` is the net cost divided by the number of names. With 10 names it is mostly the three entries into the
//! kernel; with 1000 and more it should be nearly constant, on the curve a line of slope one. If it rises from 1000
//! to 100 000 names, sorting or the caches show: 100 000 records are 3 MiB. A program that lists by `readdir` pays
//! this and its own parsing; `ls -l` also pays one call for each name, which the group does not measure.
//!
//! # Source
//! getdents64(2) in Linux Documentation. Readers who compare the listing of directories between kernels and
//! file systems asked for this group. glibc's `readdir` uses a buffer of 32 KiB, too, where the file system asks for no
//! larger one.

mod operation;

use crate::kit::contract::*;
use crate::kit::kernel_call;
use operation::Listing;

pub const GROUP: Group = Group::new("getdents", include_str!("getdents.rs"), cases)
    .curves(&[Curve::new("getdents/list/", "a listing", Axis::Count("names in the directory"))])
    .headlines(&[Headline::new(127, "list/1000", "1000 names listed")]);

/// The most names that one call returns all at once.
const ONE_BUFFER: usize = 1000;

fn cases() -> Vec<Case> {
    let few = "three entries and exits; each name read from a cached block, hashed, sorted and copied out";
    let many =
        "100 entries and exits; each name hashed, sorted in a tree beyond the second cache, copied out";
    vec![
        with_known_entries(listing_case("list/10", 10)).predict(300.0, 450.0 + 10.0 * 150.0, few),
        with_known_entries(listing_case("list/1000", 1000)).predict(300.0, 450.0 + 1000.0 * 150.0, few),
        listing_case("list/100000", 100_000).need(TAKES_SECONDS).predict(
            10_000.0 + 100_000.0 * 50.0,
            15_000.0 + 100_000.0 * 200.0,
            many,
        ),
    ]
}

fn listing_case(name: &'static str, names: usize) -> Case {
    let list = set_up(move |place| {
        let listing = Listing::create(&place.scratch, names)?;
        if names <= ONE_BUFFER {
            listing.check_one_buffer()?;
        }
        Ok(listing)
    });
    kernel_call::call_case(name, format!("listing a directory of {names} names"), list)
        .claim(Claim::Checked(operation::WHOLE))
        .derived_figure("name", Rule::OfNet(1.0 / names as f64))
}

/// Claims the system calls of a listing that gets all names by one call; a second call shows that there are no more.
fn with_known_entries(case: Case) -> Case {
    let [list, end] = [("getdents64", libc::SYS_getdents64); 2];
    case.claim(Claim::Enters(vec![("lseek", libc::SYS_lseek), list, end]))
}

#[cfg(test)]
mod tests;
