//! How often each instruction of a program is executed, counted by a trap after every instruction.
//!
//! This is the software method: exact, without special hardware, and some ten thousand times slower than the program.
//! The hardware method uses a performance counter; the hybrid method sends each instruction to another CPU
//! ([`super::hybrid`]).
//!
//! Instructions are distinguished by opcode, without prefixes. If several instructions share an opcode, the three extension
//! bits distinguish them. On AArch64 the opcode is the upper byte of the instruction. [`count_kinds`] counts instructions by
//! [kind](InstructionKind) instead: branches, loads and stores, arithmetic, vectors, system calls.
//!
//! Source: Kraemer, slides 59 to 62; Intel SDM vol. 2A, appendix A; Arm ARM, *A64 instruction set encoding*.

mod kind;

pub use kind::InstructionKind;

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use syscost_platform::error::{Error, Result};
use syscost_platform::ptrace::{Step, step_each};

/// The opcode of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode {
    /// The opcode map: 0 for one byte, 1 after `0f`, 2 after `0f 38`, 3 after `0f 3a`.
    pub map: u8,
    /// The byte that selects the instruction in that map.
    pub byte: u8,
    /// The extension bits, if several instructions share the byte.
    pub extension: Option<u8>,
}

impl Display for Opcode {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let escape = ["", "0f ", "0f 38 ", "0f 3a "].get(self.map as usize).copied().unwrap_or("? ");
        write!(f, "{escape}{:02x}", self.byte)?;
        self.extension.map_or(Ok(()), |bits| write!(f, " /{bits}"))
    }
}

/// The parts of an instruction that determine its kind.
#[cfg(target_arch = "x86_64")]
struct Decoded {
    opcode: Opcode,
    /// The byte behind the opcode, which names the operands if there are any (ModRM).
    operands: u8,
    /// Whether the encoding is one of vector instructions: VEX or EVEX.
    is_vector: bool,
}

#[cfg(target_arch = "x86_64")]
impl Decoded {
    /// The instruction at the beginning of these bytes.
    fn from_code(code: [u8; 8]) -> Self {
        const PREFIXES: [u8; 11] = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3];
        let mut at = code.iter().take_while(|byte| PREFIXES.contains(byte)).count().min(3);
        at += usize::from(code[at] & 0xf0 == 0x40); // REX
        let is_vector = matches!(code[at], 0xc4 | 0xc5 | 0x62);
        let (map, at) = match code[at..] {
            [0xc5, ..] => (1, at + 2),              // VEX of two bytes
            [0xc4, bits, ..] => (bits & 3, at + 3), // VEX of three
            [0x62, bits, ..] => (bits & 3, at + 4), // EVEX
            [0x0f, 0x38, ..] => (2, at + 2),
            [0x0f, 0x3a, ..] => (3, at + 2),
            [0x0f, ..] => (1, at + 1),
            _ => (0, at),
        };
        let [byte, operands] = [at, at + 1].map(|at| code.get(at).copied().unwrap_or(0));
        let shared =
            map == 0 && matches!(byte, 0x80..=0x83 | 0xc0 | 0xc1 | 0xd0..=0xd3 | 0xf6 | 0xf7 | 0xfe | 0xff);
        let extension = shared.then_some(operands >> 3 & 7);
        Self { opcode: Opcode { map, byte, extension }, operands, is_vector }
    }

    /// The first kind if an operand is in memory, the second if all are in registers.
    fn by_operand(&self, in_memory: InstructionKind, in_registers: InstructionKind) -> InstructionKind {
        if self.operands >> 6 == 0b11 { in_registers } else { in_memory }
    }
}

/// The opcode at the beginning of these bytes.
#[cfg(target_arch = "x86_64")]
fn opcode(code: [u8; 8]) -> Opcode {
    Decoded::from_code(code).opcode
}

/// The opcode of this instruction: on RISC-V the major opcode, on other processors the first byte.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn opcode(code: [u8; 8]) -> Opcode {
    Opcode {
        map: 0,
        byte: if cfg!(target_arch = "riscv64") { code[0] & 0x7f } else { code[0] },
        extension: None,
    }
}

/// The opcode of this instruction.
#[cfg(target_arch = "aarch64")]
fn opcode(code: [u8; 8]) -> Opcode {
    Opcode { map: 0, byte: code[3], extension: None }
}

/// The number of executions of each instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frequencies {
    counts: BTreeMap<Opcode, u64>,
}

impl Frequencies {
    /// The number of executions of all instructions.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The number of executions of one instruction.
    pub fn count(&self, opcode: Opcode) -> u64 {
        self.counts.get(&opcode).copied().unwrap_or(0)
    }

    /// Each instruction with its count and its share of all executions, the most frequent first.
    pub fn sorted_by_count(&self) -> Vec<(Opcode, u64, f64)> {
        let all = self.total() as f64;
        let mut rows: Vec<_> =
            self.counts.iter().map(|(&opcode, &count)| (opcode, count, count as f64 / all)).collect();
        rows.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        rows
    }
}

/// The number of instructions after which stepping gives up. A step takes some 4 µs, and some 20 µs in a guest.
const LIMIT: u64 = 100_000;

/// Counts the instructions of `turns` iterations of `run`. The count is the difference between a run of `turns` iterations
/// and a run of twice as many, each in a forked child. `None` if a run has more than a hundred thousand instructions.
///
/// # Errors
/// An error where the kernel or a sandbox refuses `ptrace`.
pub fn count_instructions(run: impl FnMut(u64), turns: u64) -> Result<Option<Frequencies>> {
    Ok(count_by(opcode, run, turns)?.map(|counts| Frequencies { counts }))
}

/// Like [`count_instructions`], but counts by kind. Kinds without an instruction are left out.
///
/// ```
/// use syscost_technique::instruction_frequency::{InstructionKind, count_kinds};
///
/// # fn main() -> syscost_technique::Result<()> {
/// let mut words = [0u64; 64];
/// let counts = count_kinds(|turns| (0..turns).for_each(|n| words[n as usize % 64] += n), 100)?;
/// println!("{:?} branches", counts.and_then(|counts| counts.get(&InstructionKind::Branch).copied()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`count_instructions`].
pub fn count_kinds(run: impl FnMut(u64), turns: u64) -> Result<Option<BTreeMap<InstructionKind, u64>>> {
    count_by(InstructionKind::from_code, run, turns)
}

/// Counts instructions by the key that `key` computes from their code.
fn count_by<K: Ord>(
    key: fn([u8; 8]) -> K,
    mut run: impl FnMut(u64),
    turns: u64,
) -> Result<Option<BTreeMap<K, u64>>> {
    let mut step = |turns| {
        let mut counts = BTreeMap::new();
        let look = |step: &Step| *counts.entry(key(step.code)).or_default() += 1;
        let ended = step_each(|| run(turns), LIMIT, look)?;
        Ok::<_, Error>(ended.then_some(counts))
    };
    let (Some(few), Some(many)) = (step(turns)?, step(2 * turns)?) else { return Ok(None) };
    let beyond = |(key, count): (K, u64)| {
        let less = few.get(&key).copied().unwrap_or(0).min(count);
        (key, count - less)
    };
    Ok(Some(many.into_iter().map(beyond).filter(|(_, count)| *count > 0).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_platform::arch;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn opcodes_are_found_behind_their_prefixes() {
        let opcode_of = |code: &[u8]| {
            let mut bytes = [0; 8];
            bytes[..code.len()].copy_from_slice(code);
            opcode(bytes).to_string()
        };
        assert_eq!(opcode_of(&[0x48, 0xff, 0xc8]), "ff /1", "dec rax");
        assert_eq!(opcode_of(&[0x48, 0x01, 0xd8]), "01", "add rax, rbx");
        assert_eq!(opcode_of(&[0x75, 0xfb]), "75", "jnz");
        assert_eq!(opcode_of(&[0x48, 0x0f, 0xaf, 0xc3]), "0f af", "imul rax, rbx");
        assert_eq!(opcode_of(&[0xf3, 0x48, 0x0f, 0xb8, 0xc3]), "0f b8", "popcnt");
        assert_eq!(opcode_of(&[0x66, 0x0f, 0x38, 0x00, 0xc1]), "0f 38 00", "pshufb");
        assert_eq!(opcode_of(&[0xc5, 0xf8, 0x77]), "0f 77", "vzeroupper");
        assert_eq!(opcode_of(&[0xc4, 0xe2, 0x71, 0x00, 0xc2]), "0f 38 00", "vpshufb");
        assert_eq!(opcode_of(&[0x48, 0x83, 0x00, 0x01]), "83 /0", "add qword ptr [rax], 1");
        assert_eq!(
            opcode_of(&[0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90]).len(),
            2,
            "nothing but prefixes"
        );
    }

    /// The assembly has two instructions per turn, one of each opcode.
    #[test]
    fn stepping_counts_the_instructions_of_the_assembly() {
        let seen = count_instructions(arch::register_loop, 100).expect("traced").expect("short");
        assert_eq!(seen.total(), 200);
        let counts: Vec<_> =
            seen.sorted_by_count().into_iter().map(|(_, count, share)| (count, share)).collect();
        assert_eq!(counts, [(100, 0.5); 2]);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_chain_of_multiplications_is_counted_as_multiplications() {
        let seen = count_instructions(|n| _ = arch::multiply_chain(n), 640).expect("traced").expect("short");
        let imul = Opcode { map: 1, byte: 0xaf, extension: None };
        assert_eq!((seen.count(imul), seen.total()), (640, 660));
    }

    /// The counts follow the mix of the assembly, turn by turn.
    #[test]
    fn the_kinds_of_a_known_loop_are_those_of_its_assembly() {
        use InstructionKind::{Arithmetic, Branch, LoadStore, Other, SystemCall, Vector};
        let seen = count_kinds(|n| _ = arch::mixed_loop(n), 50).expect("traced").expect("short");
        let per_turn =
            [(Branch, 1), (LoadStore, 2), (Arithmetic, 2), (Vector, 1), (SystemCall, 1), (Other, 1)];
        assert_eq!(seen, per_turn.map(|(kind, count)| (kind, 50 * count)).into());
        let chain = count_kinds(|n| _ = arch::add_chain(n), 640).expect("traced").expect("short");
        assert_eq!(chain, [(Branch, 10), (Arithmetic, 650)].into());
    }

    #[test]
    fn a_run_beyond_the_limit_has_no_count() {
        assert_eq!(count_instructions(arch::register_loop, 1 << 30).expect("traced"), None);
    }
}
