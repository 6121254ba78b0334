//! The architectures whose kernels can be booted, and the machine that the emulator of each makes.

use std::os::unix::fs::FileExt;
use std::path::Path;
use syscost_platform::plain_file;

/// One architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct Architecture {
    /// As Rust calls it.
    pub name: &'static str,
    /// Rust's target for Linux.
    pub target: &'static str,
    /// The emulator, looked for on PATH.
    pub emulator: &'static str,
    /// Debian's package of it.
    pub package: &'static str,
    /// QEMU's name of the machine.
    pub machine: &'static str,
    /// QEMU's name of the processor where no other is asked for.
    pub processor: &'static str,
    /// The kernel's name of the first serial line.
    pub console: &'static str,
    /// What is added to a kernel's command line.
    pub command_line: &'static str,
    /// `e_machine` of elf(5).
    pub elf_machine: u16,
    /// The bytes 56 to 59 of an image (Documentation/arch/arm64/booting.rst, riscv/boot-image-header.rst), if there is a magic number.
    magic: Option<[u8; 4]>,
}

/// x86-64.
///
/// The command line hides fast string instructions. A kernel that sees them clears and copies memory by these, and each version
/// asks for other features: 6.1 uses them where 6.12 uses loops. Without them both use loops, so that a difference is not one
/// between alternatives. The numbers are `fzrm`, `fsrs` and `fsrc`, of which Linux 6.12 knows no name. An emulated instruction
/// says nothing of the speed of either.
pub static X86_64: Architecture = Architecture {
    name: "x86_64",
    target: "x86_64-unknown-linux-gnu",
    emulator: "qemu-system-x86_64",
    package: "qemu-system-x86",
    machine: "pc",
    processor: "max",
    console: "ttyS0",
    command_line: "reboot=t clearcpuid=rep_good,erms,fsrm,394,395,396",
    elf_machine: 62,
    magic: None,
};

/// The others. Pointer authentication of Arm's own kind takes most of an emulator's time.
static OTHERS: [Architecture; 2] = [
    Architecture {
        name: "aarch64",
        target: "aarch64-unknown-linux-gnu",
        emulator: "qemu-system-aarch64",
        package: "qemu-system-arm",
        machine: "virt",
        processor: "max,pauth-impdef=on",
        console: "ttyAMA0",
        command_line: "",
        elf_machine: 183,
        magic: Some(*b"ARMd"),
    },
    Architecture {
        name: "riscv64",
        target: "riscv64gc-unknown-linux-gnu",
        emulator: "qemu-system-riscv64",
        package: "qemu-system-misc",
        machine: "virt",
        processor: "rv64",
        console: "ttyS0",
        command_line: "",
        elf_machine: 243,
        magic: Some(*b"RSC\x05"),
    },
];

impl Architecture {
    /// That of a kernel's image; x86-64 where the image cannot be read or says nothing.
    pub fn of_image(image: &Path) -> &'static Self {
        let mut head = [0; 64];
        // What is not there stays zero.
        let _ = plain_file::open(image).map(|file| file.read_at(&mut head, 0));
        let is_of = |it: &&Self| {
            let is_program = head.starts_with(b"\x7fELF") && head[18..20] == it.elf_machine.to_le_bytes();
            is_program || it.magic.is_some_and(|magic| head[56..60] == magic)
        };
        OTHERS.iter().find(is_of).unwrap_or(&X86_64)
    }
}

/// A segment of a program: its kind (`p_type`), and the address at which it is loaded.
pub(super) struct Segment {
    pub(super) kind: u64,
    pub(super) address: u64,
}

/// The segments of an ELF program for 64 bits, low byte first (elf(5)), from its first bytes. A segment whose header lies behind
/// these bytes is `None`, and so is what is no such program.
pub(super) fn program_segments(head: &[u8]) -> Option<Vec<Option<Segment>>> {
    let number = |at: u64, bytes: usize| {
        let at = usize::try_from(at).ok()?;
        let field = head.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (begin, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let segment = |n: u64| {
        let at = begin.checked_add(n * size)?;
        Some(Segment { kind: number(at, 4)?, address: number(at.checked_add(16)?, 8)? })
    };
    Some((0..count).map(segment).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_names_its_architecture() {
        let place = tempfile::tempdir().expect("a directory");
        let image = place.path().join("image");
        let of = |head: &[(usize, &[u8])]| {
            let mut bytes = vec![0; 4096];
            head.iter().for_each(|(at, part)| bytes[*at..at + part.len()].copy_from_slice(part));
            std::fs::write(&image, bytes).expect("written");
            Architecture::of_image(&image).name
        };
        assert_eq!(of(&[(0, b"MZ"), (56, b"ARMd")]), "aarch64");
        assert_eq!(of(&[(0, b"MZ"), (56, b"RSC\x05")]), "riscv64");
        assert_eq!(of(&[(0, b"\x7fELF\x02\x01"), (18, b"\xb7\x00")]), "aarch64");
        assert_eq!(of(&[(0, b"\x7fELF\x02\x01"), (18, b"\x3e\x00")]), "x86_64");
        assert_eq!(of(&[(0, b"MZ"), (0x202, b"HdrS")]), "x86_64");
        assert_eq!(Architecture::of_image(Path::new("/no/such/image")).name, "x86_64");
    }
}
