//! The smallest program: an ELF file of one segment with three instructions, which exit with code 0.
//!
//! Executing it takes the kernel's part of starting a program and nothing else: no interpreter, library or relocation, and
//! one page.

use crate::error::{Error, Result};
use nix::sys::statvfs::{FsFlags, statvfs};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Load address: the usual one of an executable that is not position-independent.
const ADDRESS: u64 = 0x40_0000;
/// Size of the ELF header and of one program header (elf(5)).
const HEADERS: u64 = 64 + 56;
/// Alignment of the segment: the largest base page of a Linux kernel.
const ALIGNMENT: u64 = 64 << 10;

/// `xor edi, edi; mov eax, 60; syscall`.
#[cfg(target_arch = "x86_64")]
const EXIT: &[u8] = &[0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62; // EM_X86_64
/// `mov x0, #0; mov x8, #93; svc #0`.
#[cfg(target_arch = "aarch64")]
const EXIT: &[u8] = &[0x00, 0x00, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183; // EM_AARCH64
/// `li a0, 0; li a7, 93; ecall`.
#[cfg(target_arch = "riscv64")]
const EXIT: &[u8] = &[0x13, 0x05, 0, 0, 0x93, 0x08, 0xd0, 0x05, 0x73, 0, 0, 0];
#[cfg(target_arch = "riscv64")]
const MACHINE: u16 = 243; // EM_RISCV
/// Not written for other processors: no machine has the number 0.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const EXIT: &[u8] = &[];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const MACHINE: u16 = 0;

/// Contents of the file.
fn smallest_elf() -> Vec<u8> {
    let size = HEADERS + EXIT.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(); // 64 bits, little-endian, version 1
    let mut put = |bytes: &[u8]| file.extend_from_slice(bytes);
    put(&2u16.to_le_bytes()); // an executable that is not position-independent
    put(&MACHINE.to_le_bytes());
    put(&1u32.to_le_bytes()); // version
    put(&(ADDRESS + HEADERS).to_le_bytes()); // entry
    put(&64u64.to_le_bytes()); // offset of the program header
    put(&0u64.to_le_bytes()); // no section headers
    put(&0u32.to_le_bytes()); // flags
    [64u16, 56, 1, 0, 0, 0].iter().for_each(|size| put(&size.to_le_bytes())); // sizes and numbers of headers
    put(&1u32.to_le_bytes()); // a segment to load
    put(&5u32.to_le_bytes()); // read, execute
    [0, ADDRESS, ADDRESS, size, size, ALIGNMENT].iter().for_each(|word: &u64| put(&word.to_le_bytes()));
    put(EXIT);
    file
}

/// Writes the program into a directory where programs may be executed. The file is closed when this returns, because the kernel
/// executes no file that is open for writing.
///
/// # Errors
/// [`Error::File`] if it cannot be written; [`Error::Missing`] where it is not written for the processor, or the directory's file
/// system is mounted `noexec`.
pub fn write_runnable_elf(directory: &Path) -> Result<String> {
    let missing = |why: String| Err(Error::Missing(why));
    let refused = |e| Error::from_errno("statvfs of the scratch directory", e);
    if statvfs(directory).map_err(refused)?.flags().contains(FsFlags::ST_NOEXEC) {
        return missing(format!(
            "no program may be executed in {} (mounted noexec): set TMPDIR to another directory",
            directory.display()
        ));
    }
    if EXIT.is_empty() {
        return missing("the smallest program is machine code, and not written for this processor".into());
    }
    let path = directory.join("exit-0");
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o755).open(&path);
    let written = file.and_then(|mut file| file.write_all(&smallest_elf()));
    written.map_err(|e| Error::file(&path, "writing", e))?;
    Ok(path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn it_runs_and_exits_with_0() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = write_runnable_elf(directory.path()).expect("written");
        // Another test may fork while the file is open for writing, which keeps it busy for a moment.
        for attempt in 0.. {
            match Command::new(&path).status() {
                Ok(status) => return assert_eq!(status.code(), Some(0)),
                Err(error) if attempt < 100 => assert_eq!(error.raw_os_error(), Some(libc::ETXTBSY)),
                Err(error) => panic!("{error}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    #[test]
    fn its_headers_say_how_long_it_is() {
        let file = smallest_elf();
        assert_eq!(file.len() as u64, HEADERS + EXIT.len() as u64);
        let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("eight bytes"));
        assert_eq!((word(24), word(96)), (ADDRESS + HEADERS, file.len() as u64));
    }
}
