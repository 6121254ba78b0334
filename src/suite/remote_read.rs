//! # What is timed
//! Reading one block of a file on another machine. The read bypasses the page cache of this machine (`O_DIRECT`) and is
//! timed from the call to its return. `sequential-by-file` and `random-by-file` read 4 KiB from files of several lengths;
//! `sequential` reads larger blocks from 3 MiB. The files are in the directory that `--dir`, or SYSCOST_DIR, names: on any file
//! system that the kernel mounts from another machine (NFS, SMB, 9P, Ceph, sshfs and others).
//!
//! # What is not
//! Making the file on the other machine, and choosing the random order. The server's own cache is not evicted: it holds a file
//! that was just written.
//!
//! # How we know
//! After every batch the interfaces of this machine must have received at least the bytes that were asked for
//! (`/proc/self/net/dev`). mincore(2) must find no page of what was read last in the page cache of this machine. Every
//! sector of the file begins with its own number, so each block can be recognised. The evidence names the file system
//! that was read by, and its version: `nfs4 (vers=4.2, …)`, `fuse.sshfs`.
//!
//! # What fools it
//! The traffic of other programs is counted too. A server on this same machine is not remote: its bytes pass the
//! loopback interface, which is counted as well. A file system that compresses sends fewer bytes than it delivers,
//! and would fail. A file system in user space adds two switches to its own process for each request. Remote files
//! are usually fast because of read-ahead; reads that bypass the cache have none.
//!
//! # Reading the number
//! A block of 4 KiB costs a round trip and the server's work, so the bandwidth is far below that of the line. With
//! larger blocks `bandwidth` approaches it. Random and sequential should not differ if the server has the file in its
//! memory.
//!
//! # Source
//! CSE 221 project report (NFS over a line of 100 Mbit/s, files of 128 KiB to 3 MiB, sequential and at random, 4 KiB
//! at once).

use crate::kit::blocks::{self, NOT_KEPT, OWN_NUMBER, Pattern};
use crate::kit::contract::*;
use crate::kit::evidence::WithEvidence;
use crate::platform::pattern_file::{PatternFile, Way};
use crate::platform::proc::Source;
use crate::platform::volume::{self, Medium};

pub const GROUP: Group = Group::new("remote_read", include_str!("remote_read.rs"), cases)
    .curves(&[
        Curve::new("remote_read/sequential-by-file/", "sequential", Axis::Bytes("size of the file"))
            .with_figure("bandwidth"),
        Curve::new("remote_read/random-by-file/", "random", Axis::Bytes("size of the file"))
            .with_figure("bandwidth"),
    ])
    .headlines(&[Headline::new(60, "sequential/64KiB", "64 KiB of a remote file")]);

const KIB: u64 = 1 << 10;
/// Lengths of a file: the shortest and the longest of the CSE 221 report, and five between them.
const FILES: [(&str, u64); 7] = [
    ("128KiB", 128 * KIB),
    ("256KiB", 256 * KIB),
    ("512KiB", 512 * KIB),
    ("1MiB", 1024 * KIB),
    ("1536KiB", 1536 * KIB),
    ("2MiB", 2048 * KIB),
    ("3MiB", 3072 * KIB),
];
/// The lengths that only full scale measures.
const BETWEEN: [&str; 3] = ["256KiB", "1MiB", "2MiB"];
const BLOCK: usize = 4 << 10;

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (pattern, name, words) in
        [(Pattern::Sequential, "sequential", "in order"), (Pattern::Random, "random", "at random")]
    {
        cases.extend(FILES.map(|(length, bytes)| {
            let title = format!("4 KiB from another machine, {words} from {length}");
            let case = read_case(format!("{name}-by-file/{length}"), title, pattern, bytes, BLOCK);
            if BETWEEN.contains(&length) { case.need(FULL_SCALE) } else { case }
        }));
    }
    cases.extend([("64KiB", 64 << 10), ("1MiB", 1 << 20)].map(|(length, block)| {
        let title = format!("{length} from another machine, in order from 3 MiB");
        read_case(format!("sequential/{length}"), title, Pattern::Sequential, 3072 * KIB, block)
    }));
    cases
}

fn read_case(name: String, title: String, pattern: Pattern, bytes: u64, block: usize) -> Case {
    let open = move |place: &Place| PatternFile::create_filled(&place.scratch, bytes, Way::Direct);
    let reading = blocks::reads_set_up(open, pattern, block, Source::Network);
    let set_up = set_up(move |place| {
        let told = format!("on {}", volume::describe_filesystem(&place.scratch));
        Ok(WithEvidence::new(reading(place)?, [told]))
    });
    Case::new(name, title, set_up)
        .need(REMOTE)
        .one_by_one()
        .derived_figure("bandwidth", Rule::Bandwidth(block as u64))
        .derived_figure("rate", Rule::Rate)
        .claim(Claim::Checked("at least as many bytes came from the network as were asked for"))
        .claim(Claim::Checked(OWN_NUMBER))
        .claim(Claim::Checked(NOT_KEPT))
        // 8 ns per byte at a gigabit, half a millisecond to a server and back.
        .predict(900_000.0 + 24.0 * block as f64, 600_000.0, "a round trip, the line's bytes, two processes")
}

/// The scratch directory is on another machine.
const REMOTE: Need = Need::new(|place| match volume::filesystem_and_medium(&place.scratch) {
    (_, Medium::Remote) => Ok(()),
    (filesystem, _) => Err(format!(
        "the files would lie in {}, which is on {filesystem} and on this machine: mount one from another and name a \
         directory there, `--dir DIRECTORY` or SYSCOST_DIR (scripts/remote-file-system makes one to try)",
        place.scratch.parent().unwrap_or(&place.scratch).display()
    )),
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_place;
    use crate::platform::testing::print_skipped;

    #[test]
    fn a_directory_of_this_machine_is_not_remote() {
        let directory = tempfile::tempdir().expect("a directory");
        if volume::filesystem_and_medium(directory.path()).1 == Medium::Remote {
            return print_skipped("temporary files are on another machine");
        }
        let sentence = REMOTE.check_place(&test_place(directory.path(), Scale::Smoke)).expect_err("local");
        assert!(sentence.contains("--dir DIRECTORY"), "{sentence}");
    }
}
