//! The archive that a kernel unpacks as its first root file system, in the format `newc` of cpio(5). It contains this program,
//! linked statically, since an initramfs has no libraries.

use super::emulator::{Architecture, program_segments};
use std::path::{Path, PathBuf};
use syscost_platform::error::{Error, Result};
use syscost_platform::plain_file;
use syscost_platform::process::own_program_file;

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
    /// The root of a guest: this program as `/init`, the questions, a console, and the directories for the mounts.
    pub fn build_guest_root(program: &[u8], questions: &[u8]) -> Vec<u8> {
        let mut archive = Self::default();
        for directory in ["dev", "proc", "sys", "tmp"] {
            archive.add_entry(directory, DIRECTORY, (0, 0), &[]);
        }
        // The kernel opens the console for the first process before anything is mounted.
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

    /// Fills the archive with zeros up to a multiple of four bytes, where the next name or content begins.
    fn pad_to_four(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add_entry(TRAILER, 0, (0, 0), &[]);
        self.bytes
    }
}

/// Writes an archive with this program and these questions to the file `name` in `scratch`, and returns its path.
///
/// # Errors
/// It cannot be written.
pub fn write(scratch: &Path, name: &str, program: &[u8], questions: &[u8]) -> Result<PathBuf> {
    let path = scratch.join(name);
    let written = std::fs::write(&path, Archive::build_guest_root(program, questions));
    written.map_err(|e| Error::file(&path, "writing", e))?;
    Ok(path)
}

/// The environment variable that names the program if no flag does.
const VARIABLE: &str = "SYSCOST_GUEST_BINARY";
/// The largest program that is taken, bytes.
const LARGEST: u64 = 256 << 20;
/// `PT_INTERP` of elf(5): the segment that names the dynamic linker.
const INTERPRETER: u64 = 3;

/// The bytes of the guest's program, the first that exists of: the given one, the one that the environment names, this one if it is
/// static, the one that was built beside it.
///
/// # Errors
/// There is none, or it is not static.
pub fn load_program(given: Option<&Path>, architecture: &Architecture) -> Result<Vec<u8>> {
    let named = given.map(Path::to_path_buf).or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from));
    if let Some(path) = named {
        return read(&path, architecture)?.ok_or_else(|| not_static_error(&path, architecture));
    }
    let own = own_program_file().map_err(|e| Error::file("/proc/self/exe", "reading", e))?;
    let Architecture { name, target, .. } = architecture;
    // The place of the program that `scripts/guest` builds, below a target directory.
    let built = format!("guest/{target}/release/syscost-kernels");
    let beside = own.ancestors().map(|directory| directory.join(&built)).find(|path| path.is_file());
    for path in [Some(own), beside].into_iter().flatten() {
        if let Some(program) = read(&path, architecture)? {
            return Ok(program);
        }
    }
    Err(Error::Missing(format!(
        "a guest needs a static build of syscost-kernels: `scripts/guest syscost-kernels {name}` makes one, or name it by \
         --guest-binary or {VARIABLE} (RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --bin \
         syscost-kernels --target {target})"
    )))
}

fn not_static_error(path: &Path, architecture: &Architecture) -> Error {
    Error::Usage(format!(
        "{}: it needs a dynamic linker, or is no program for {}: `scripts/guest` builds a static one",
        path.display(),
        architecture.name
    ))
}

/// The bytes of a plain file, if it is a static program.
fn read(path: &Path, architecture: &Architecture) -> Result<Option<Vec<u8>>> {
    let bytes = plain_file::read(path, LARGEST)?;
    Ok(is_static(&bytes, architecture).then_some(bytes))
}

/// Whether these are the bytes of a program for this architecture that needs no dynamic linker.
fn is_static(bytes: &[u8], architecture: &Architecture) -> bool {
    let kinds = || program_segments(bytes)?.into_iter().map(|it| Some(it?.kind)).collect::<Option<Vec<_>>>();
    bytes.get(18..20) == Some(&architecture.elf_machine.to_le_bytes())
        && kinds().is_some_and(|kinds| !kinds.is_empty() && !kinds.contains(&INTERPRETER))
}

#[cfg(test)]
mod tests {
    use super::super::emulator::X86_64;
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use syscost_platform::testing::print_skipped;

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
    fn entries_of_an_archive_are_read_back() {
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
    fn cpio_reads_the_archive() {
        let cpio =
            Command::new("cpio").args(["-t", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut cpio) = cpio else {
            print_skipped("no cpio");
            return;
        };
        cpio.stdin.take().expect("a pipe").write_all(&archive()).expect("written");
        let output = cpio.wait_with_output().expect("waited for");
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(names.lines().count(), 7, "{names}");
    }

    /// A program with one segment of this kind.
    fn elf(kind: u64) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        bytes[18] = 62;
        bytes[32] = 64; // where the segments are described
        bytes[54] = 56; // bytes of a description
        bytes[56] = 1;
        bytes.extend_from_slice(&kind.to_le_bytes()[..4]);
        bytes.resize(120, 0);
        bytes
    }

    #[test]
    fn a_static_program_names_no_dynamic_linker() {
        assert!(is_static(&elf(1), &X86_64));
        assert!(!is_static(&elf(INTERPRETER), &X86_64));
        for wrong in [&b"#!/bin/sh"[..], b"", &elf(1)[..66]] {
            assert!(!is_static(wrong, &X86_64));
        }
        let mut other = elf(1);
        other[18] = 183; // AArch64
        assert!(!is_static(&other, &X86_64));
    }

    #[test]
    fn a_named_program_that_is_not_static_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("program");
        std::fs::write(&path, elf(INTERPRETER)).expect("written");
        assert!(
            load_program(Some(&path), &X86_64).expect_err("dynamic").to_string().contains("scripts/guest")
        );
        std::fs::write(&path, elf(1)).expect("written");
        assert_eq!(load_program(Some(&path), &X86_64).expect("static").len(), 120);
        assert!(
            load_program(Some(Path::new("/dev/zero")), &X86_64)
                .expect_err("no file")
                .to_string()
                .contains("plain file")
        );
    }
}
