//! The program that a guest runs: this one, linked statically, since an initramfs has no libraries.

use crate::error::{Error, Result};
use crate::platform::plain_file;
use std::path::{Path, PathBuf};

/// Names it where no flag does.
const VARIABLE: &str = "SYSCOST_GUEST_BINARY";
/// Where `scripts/guest` leaves it, below a target directory.
const BUILT: &str = "guest/x86_64-unknown-linux-gnu/release/syscost";
/// The largest program that is taken, bytes.
const LARGEST: u64 = 256 << 20;
/// `PT_INTERP` of elf(5): the segment that names the dynamic linker.
const INTERPRETER: u64 = 3;

/// The program's bytes: that which is given, or named by the environment, or this one if it is static, or what was built
/// beside it.
///
/// # Errors
/// There is none, or it is not static.
pub fn program(given: Option<&Path>) -> Result<Vec<u8>> {
    let named = given.map(Path::to_path_buf).or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from));
    if let Some(path) = named {
        return read(&path)?.ok_or_else(|| not_static(&path));
    }
    let own = std::env::current_exe().map_err(|e| Error::file("/proc/self/exe", "reading", e))?;
    let beside = own.ancestors().map(|directory| directory.join(BUILT)).find(|path| path.is_file());
    for path in [Some(own), beside].into_iter().flatten() {
        if let Some(program) = read(&path)? {
            return Ok(program);
        }
    }
    Err(Error::Missing(format!(
        "a guest needs a static build of syscost: `scripts/guest` makes one, or name it by --guest-binary or {VARIABLE} \
         (RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu)"
    )))
}

fn not_static(path: &Path) -> Error {
    Error::Usage(format!(
        "{}: it needs a dynamic linker, or is no program for x86-64: `scripts/guest` builds a static syscost",
        path.display()
    ))
}

/// The bytes of a plain file, if it is a static program.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let bytes = plain_file::read(path, LARGEST)?;
    Ok(is_static(&bytes).then_some(bytes))
}

/// Whether these are the bytes of a program for x86-64 that needs no dynamic linker.
fn is_static(bytes: &[u8]) -> bool {
    const X86_64: u64 = 62;
    let segments = segments(bytes);
    let is_no_interpreter =
        |segment: &Option<Segment>| segment.is_some_and(|segment| segment.kind != INTERPRETER);
    number(bytes, 18, 2) == Some(X86_64) && !segments.is_empty() && segments.iter().all(is_no_interpreter)
}

/// A segment of a program.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub kind: u64,
    /// Where it is loaded.
    pub address: u64,
}

/// The segments of an ELF program for 64 bits (elf(5)), `None` where one is described beyond these bytes. What is no such
/// program has none.
pub(super) fn segments(bytes: &[u8]) -> Vec<Option<Segment>> {
    let described = || {
        let (begin, size, count) = (number(bytes, 32, 8)?, number(bytes, 54, 2)?, number(bytes, 56, 2)?);
        let segment = |n: u64| {
            let at = usize::try_from(begin.checked_add(n * size)?).ok()?;
            Some(Segment { kind: number(bytes, at, 4)?, address: number(bytes, at.checked_add(16)?, 8)? })
        };
        Some((0..count).map(segment).collect())
    };
    described().filter(|_| bytes.starts_with(b"\x7fELF\x02\x01")).unwrap_or_default()
}

/// A number of so many bytes, the lowest first.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(length)?)?;
    Some(field.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with one segment of this kind.
    fn elf(kind: u64) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        bytes[18] = 62;
        bytes[32] = 64; // where the segments are described
        bytes[54] = 56; // bytes of a description
        bytes[56] = 1;
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.resize(120, 0);
        bytes
    }

    #[test]
    fn a_static_program_names_no_dynamic_linker() {
        assert!(is_static(&elf(1)));
        assert!(!is_static(&elf(INTERPRETER)));
        for wrong in [&b"#!/bin/sh"[..], b"", &elf(1)[..66]] {
            assert!(!is_static(wrong));
        }
        let mut other = elf(1);
        other[18] = 183; // AArch64
        assert!(!is_static(&other));
    }

    #[test]
    fn a_program_that_is_named_and_no_static_one_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("program");
        std::fs::write(&path, elf(INTERPRETER)).expect("written");
        assert!(program(Some(&path)).expect_err("dynamic").to_string().contains("scripts/guest"));
        std::fs::write(&path, elf(1)).expect("written");
        assert_eq!(program(Some(&path)).expect("static").len(), 120);
        assert!(
            program(Some(Path::new("/dev/zero"))).expect_err("no file").to_string().contains("plain file")
        );
    }
}
