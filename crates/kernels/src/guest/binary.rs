//! The program that a guest runs: this one, linked statically, since an initramfs has no libraries.

use super::architecture::Architecture;
use std::path::{Path, PathBuf};
use syscost_platform::error::{Error, Result};
use syscost_platform::plain_file;
use syscost_platform::process::own_program_file;

/// Names it where no flag does.
const VARIABLE: &str = "SYSCOST_GUEST_BINARY";
/// The largest program that is taken, bytes.
const LARGEST: u64 = 256 << 20;
/// `PT_INTERP` of elf(5): the segment that names the dynamic linker.
const INTERPRETER: u32 = 3;

/// The program's bytes: that which is given, or named by the environment, or this one if it is static, or what was built
/// beside it.
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
    // Where `scripts/guest` leaves it, below a target directory.
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
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let wide = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let headers = || {
        let (begin, size, count) = (usize::try_from(wide(32)?).ok()?, half(54)?, half(56)?);
        let at = |n: u16| begin.checked_add(usize::from(n) * usize::from(size));
        (0..count).map(|n| word(at(n)?)).collect::<Option<Vec<_>>>()
    };
    bytes.starts_with(b"\x7fELF\x02\x01")
        && half(18) == Some(architecture.elf_machine)
        && headers().is_some_and(|kinds| !kinds.is_empty() && !kinds.contains(&INTERPRETER))
}

#[cfg(test)]
mod tests {
    use super::super::architecture::X86_64;
    use super::*;

    /// A program with one segment of this kind.
    fn elf(kind: u32) -> Vec<u8> {
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
    fn a_program_that_is_named_and_no_static_one_is_refused() {
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
