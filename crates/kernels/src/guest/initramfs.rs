//! Archives of the format `newc` of cpio(5), which a kernel unpacks as its first root file system.

/// The mode bits of a directory, a plain file and a character device (inode(7)).
const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CONSOLE: u32 = 0o020_600;
/// Name of the last entry.
const TRAILER: &str = "TRAILER!!!";

/// An archive while it is written.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// The root of a guest: this program as `/init`, the questions, a console, and the directories that are mounted over.
    pub fn build_guest_root(program: &[u8], questions: &[u8]) -> Vec<u8> {
        let mut archive = Self::default();
        for directory in ["dev", "proc", "sys", "tmp"] {
            archive.add_entry(directory, DIRECTORY, (0, 0), &[]);
        }
        // The kernel opens it for the first process before anything is mounted.
        archive.add_entry("dev/console", CONSOLE, (5, 1), &[]);
        archive.add_entry("init", PROGRAM, (0, 0), program);
        archive.add_entry("questions", PROGRAM, (0, 0), questions);
        archive.finish()
    }

    fn add_entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let fields = [
            self.entries, // number of the inode
            mode,
            0, // user
            0, // group
            1, // links
            0, // time of modification
            length,
            0, // number of the device it lies on
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0, // checksum, which this format does not use
        ];
        self.bytes.extend_from_slice(b"070701");
        fields.iter().for_each(|field| self.bytes.extend_from_slice(format!("{field:08x}").as_bytes()));
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad_to_four();
        self.bytes.extend_from_slice(content);
        self.pad_to_four();
    }

    /// Names and contents begin at multiples of four bytes.
    fn pad_to_four(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add_entry(TRAILER, 0, (0, 0), &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Length of a header: the magic number and 13 fields of eight hexadecimal digits.
    const HEADER: usize = 110;

    /// Names and contents of an archive's entries, up to the trailer.
    fn entries(bytes: &[u8]) -> Vec<(String, &[u8])> {
        assert!(bytes.starts_with(b"070701"));
        let field = |at: usize| {
            let digits = std::str::from_utf8(&bytes[6 + 8 * at..14 + 8 * at]).expect("digits");
            usize::from_str_radix(digits, 16).expect("a number")
        };
        let (length, named) = (field(6), field(11));
        let name = String::from_utf8_lossy(&bytes[HEADER..HEADER + named - 1]).into_owned();
        let begin = (HEADER + named).next_multiple_of(4);
        if name == TRAILER {
            return Vec::new();
        }
        let rest = entries(&bytes[(begin + length).next_multiple_of(4)..]);
        [vec![(name, &bytes[begin..begin + length])], rest].concat()
    }

    fn archive() -> Vec<u8> {
        Archive::build_guest_root(b"\x7fELF program", b"{}")
    }

    #[test]
    fn what_is_written_is_read_back() {
        let archive = archive();
        let entries = entries(&archive);
        let names: Vec<_> = entries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["dev", "proc", "sys", "tmp", "dev/console", "init", "questions"]);
        assert_eq!(entries[5].1, b"\x7fELF program");
        assert_eq!(entries[6].1, b"{}");
    }

    #[test]
    fn every_part_begins_at_a_multiple_of_four() {
        let archive = archive();
        assert_eq!(archive.len() % 4, 0);
        let magics = archive.windows(6).enumerate().filter(|(_, bytes)| bytes == b"070701");
        assert!(magics.map(|(at, _)| at).all(|at| at % 4 == 0));
    }

    #[test]
    fn the_program_that_made_the_format_reads_it() {
        let cpio =
            Command::new("cpio").args(["-t", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut cpio) = cpio else {
            println!("skipped: no cpio");
            return;
        };
        cpio.stdin.take().expect("a pipe").write_all(&archive()).expect("written");
        let output = cpio.wait_with_output().expect("waited for");
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(names.lines().count(), 7, "{names}");
    }
}
