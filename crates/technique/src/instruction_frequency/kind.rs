//! The kinds of instructions.

#[cfg(target_arch = "x86_64")]
use super::Decoded;

/// The purpose of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstructionKind {
    /// A jump, a call or a return.
    Branch,
    /// It moves a value between memory and a register of any class, and does nothing else with it. Push and pop belong here.
    LoadStore,
    /// It computes with integers, in registers or in memory. Address computations (`lea`) and comparisons belong here.
    Arithmetic,
    /// It computes with vectors or floating-point numbers, or moves them between registers.
    Vector,
    /// It enters the kernel.
    SystemCall,
    /// All other instructions: moves of integers between registers, constants, no operation, readings of the clock.
    Other,
}

use InstructionKind::{Arithmetic, Branch, LoadStore, Other, SystemCall, Vector};

impl InstructionKind {
    /// All kinds, in order.
    pub const ALL: [Self; 6] = [Branch, LoadStore, Arithmetic, Vector, SystemCall, Other];

    /// The kind of the instruction at the beginning of these bytes.
    #[cfg(target_arch = "x86_64")]
    pub fn from_code(code: [u8; 8]) -> Self {
        let decoded = Decoded::from_code(code);
        match decoded.opcode.map {
            0 => one_byte_kind(&decoded),
            1 => two_byte_kind(&decoded),
            // BMI: integer instructions in the encoding of vectors; and `adcx`, `crc32`.
            2 if matches!(decoded.opcode.byte, 0xf2 | 0xf3 | 0xf5..=0xf7) => Arithmetic,
            2 if matches!(decoded.opcode.byte, 0xf0 | 0xf1) => decoded.by_operand(LoadStore, Arithmetic),
            2 if decoded.opcode.byte == 0x2a => LoadStore,
            3 if decoded.is_vector && decoded.opcode.byte == 0xf0 => Arithmetic,
            _ => Vector,
        }
    }

    /// Always `Other`: kinds are not known of other processors, where instructions cannot be stepped either.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn from_code(code: [u8; 8]) -> Self {
        let _ = code;
        Other
    }

    /// The kind of this instruction, by the encoding groups of the A64 instruction set.
    #[cfg(target_arch = "aarch64")]
    pub fn from_code(code: [u8; 8]) -> Self {
        let word = u32::from_le_bytes([code[0], code[1], code[2], code[3]]);
        if word & 0xffe0_001f == 0xd400_0001 {
            return SystemCall;
        }
        match word >> 25 & 0b1111 {
            // A constant that is put into a register.
            0b1001 if word >> 23 & 0b11_1111 == 0b10_0101 => Other,
            0b1000 | 0b1001 | 0b0101 | 0b1101 => Arithmetic,
            // Exceptions and system registers.
            0b1010 if matches!(code[3], 0xd4 | 0xd5) => Other,
            0b1010 | 0b1011 => Branch,
            0b0100 | 0b0110 | 0b1100 | 0b1110 => LoadStore,
            0b0010 | 0b0111 | 0b1111 => Vector,
            _ => Other,
        }
    }
}

/// The kind of an opcode of one byte (Intel SDM vol. 2D, table A-2).
#[cfg(target_arch = "x86_64")]
fn one_byte_kind(decoded: &Decoded) -> InstructionKind {
    match (decoded.opcode.byte, decoded.opcode.extension) {
        (0x70..=0x7f | 0xc2 | 0xc3 | 0xca | 0xcb | 0xcf | 0xe0..=0xe3 | 0xe8 | 0xe9 | 0xeb, _)
        | (0xff, Some(2..=5)) => Branch,
        (0xcd, _) => SystemCall,
        (0x50..=0x5f | 0x68 | 0x6a | 0x8f | 0x9c | 0x9d | 0xa0..=0xa5 | 0xaa..=0xad | 0xc8 | 0xc9, _)
        | (0xff, Some(6)) => LoadStore,
        (0x63 | 0x86..=0x8b | 0xc6 | 0xc7, _) => decoded.by_operand(LoadStore, Other),
        (0x00..=0x3f, _) if decoded.opcode.byte & 7 < 6 => Arithmetic,
        (0x69 | 0x6b | 0x80..=0x85 | 0x8d | 0x98 | 0x99 | 0xa6..=0xa9 | 0xae | 0xaf, _)
        | (0xc0 | 0xc1 | 0xd0..=0xd3 | 0xf6 | 0xf7 | 0xfe | 0xff, _) => Arithmetic,
        (0xd8..=0xdf, _) => Vector,
        _ => Other,
    }
}

/// The kind of an opcode behind `0f`, also in the encoding of vectors (table A-3).
#[cfg(target_arch = "x86_64")]
fn two_byte_kind(decoded: &Decoded) -> InstructionKind {
    match decoded.opcode.byte {
        // Moves of vectors, whose operands are either in memory or all in registers.
        0x10..=0x13 | 0x16 | 0x17 | 0x28 | 0x29 | 0x2b | 0x6e | 0x6f | 0x7e | 0x7f | 0xd6 | 0xe7 | 0xf0 => {
            decoded.by_operand(LoadStore, Vector)
        }
        _ if decoded.is_vector => Vector,
        0x05 | 0x34 => SystemCall,
        0x80..=0x8f => Branch,
        0x40..=0x4f | 0xb6 | 0xb7 | 0xbe | 0xbf | 0xc3 => decoded.by_operand(LoadStore, Other),
        0x90..=0x9f | 0xa3..=0xa5 | 0xab..=0xad | 0xaf..=0xb1 | 0xb3 | 0xb8 | 0xba..=0xbd => Arithmetic,
        0xc0 | 0xc1 | 0xc8..=0xcf => Arithmetic,
        0x14 | 0x15 | 0x2a | 0x2c..=0x2f | 0x50..=0x7f | 0xc2 | 0xc4..=0xc6 | 0xd0..=0xfe => Vector,
        _ => Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    fn kind_of(code: &[u8]) -> InstructionKind {
        let mut bytes = [0; 8];
        bytes[..code.len()].copy_from_slice(code);
        InstructionKind::from_code(bytes)
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn instructions_of_x86_have_the_expected_kinds() {
        let expected: [(&[u8], InstructionKind, &str); 33] = [
            (&[0x75, 0xfb], Branch, "jnz"),
            (&[0x0f, 0x84, 0, 0, 0, 0], Branch, "jz"),
            (&[0xe8, 0, 0, 0, 0], Branch, "call"),
            (&[0xff, 0xd0], Branch, "call rax"),
            (&[0x41, 0xff, 0x24, 0xc0], Branch, "jmp [r8+rax*8]"),
            (&[0xf3, 0xc3], Branch, "rep ret"),
            (&[0x48, 0x8b, 0x07], LoadStore, "mov rax, [rdi]"),
            (&[0x48, 0x89, 0x07], LoadStore, "mov [rdi], rax"),
            (&[0x48, 0xc7, 0x07, 1, 0, 0, 0], LoadStore, "mov qword ptr [rdi], 1"),
            (&[0x41, 0x57], LoadStore, "push r15"),
            (&[0xff, 0x37], LoadStore, "push [rdi]"),
            (&[0x0f, 0xb6, 0x07], LoadStore, "movzx eax, byte ptr [rdi]"),
            (&[0x0f, 0x29, 0x07], LoadStore, "movaps [rdi], xmm0"),
            (&[0xc5, 0xfe, 0x6f, 0x07], LoadStore, "vmovdqu ymm0, [rdi]"),
            (&[0x48, 0x01, 0xd8], Arithmetic, "add rax, rbx"),
            (&[0x48, 0x83, 0x07, 1], Arithmetic, "add qword ptr [rdi], 1"),
            (&[0x48, 0xff, 0xc8], Arithmetic, "dec rax"),
            (&[0x48, 0x0f, 0xaf, 0xc3], Arithmetic, "imul rax, rbx"),
            (&[0x48, 0x8d, 0x04, 0x07], Arithmetic, "lea rax, [rdi+rax]"),
            (&[0xf3, 0x48, 0x0f, 0xb8, 0xc3], Arithmetic, "popcnt rax, rbx"),
            (&[0xc4, 0xe2, 0xfb, 0xf6, 0xc3], Arithmetic, "mulx rax, rax, rbx"),
            (&[0x66, 0x0f, 0xfe, 0xc0], Vector, "paddd xmm0, xmm0"),
            (&[0x0f, 0x28, 0xc1], Vector, "movaps xmm0, xmm1"),
            (&[0xf2, 0x0f, 0x58, 0xc1], Vector, "addsd xmm0, xmm1"),
            (&[0xc5, 0xf5, 0xfe, 0xc2], Vector, "vpaddd ymm0, ymm1, ymm2"),
            (&[0x62, 0xf1, 0x75, 0x48, 0xfe, 0xc2], Vector, "vpaddd zmm0, zmm1, zmm2"),
            (&[0xd8, 0xc1], Vector, "fadd st(1)"),
            (&[0x0f, 0x05], SystemCall, "syscall"),
            (&[0xcd, 0x80], SystemCall, "int 0x80"),
            (&[0x48, 0x89, 0xd8], Other, "mov rax, rbx"),
            (&[0xb8, 1, 0, 0, 0], Other, "mov eax, 1"),
            (&[0xf3, 0x0f, 0x1e, 0xfa], Other, "endbr64"),
            (&[0x0f, 0x31], Other, "rdtsc"),
        ];
        for (code, kind, name) in expected {
            assert_eq!(kind_of(code), kind, "{name}");
        }
    }

    #[test]
    #[cfg(target_arch = "aarch64")]
    fn instructions_of_a64_have_the_expected_kinds() {
        let expected: [(u32, InstructionKind, &str); 13] = [
            (0x54ff_ffe1, Branch, "b.ne"),
            (0x9400_0000, Branch, "bl"),
            (0xd65f_03c0, Branch, "ret"),
            (0xf940_0001, LoadStore, "ldr x1, [x0]"),
            (0xf900_0001, LoadStore, "str x1, [x0]"),
            (0xa9bf_7bfd, LoadStore, "stp x29, x30, [sp, #-16]!"),
            (0xf100_0400, Arithmetic, "subs x0, x0, #1"),
            (0x8b01_0000, Arithmetic, "add x0, x0, x1"),
            (0x9b01_7c00, Arithmetic, "mul x0, x0, x1"),
            (0x4ea0_8400, Vector, "add v0.4s, v0.4s, v0.4s"),
            (0xd400_0001, SystemCall, "svc #0"),
            (0xd280_0588, Other, "mov x8, #44"),
            (0xd503_201f, Other, "nop"),
        ];
        for (word, kind, name) in expected {
            let [a, b, c, d] = word.to_le_bytes();
            assert_eq!(InstructionKind::from_code([a, b, c, d, 0, 0, 0, 0]), kind, "{name}");
        }
    }
}
