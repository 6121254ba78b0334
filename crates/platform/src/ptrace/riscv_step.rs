//! Single steps on RISC-V, where Linux has no mode for them: a breakpoint is set at the next instruction, as debuggers do. The
//! functions here decode the address of that instruction.
//!
//! A step is given up where a breakpoint would change the behaviour: between a load-reserved and its store-conditional, which would
//! fail for ever; before a child or a thread is made, which would hit it; and when a signal arrives, whose handler would run unseen.
//!
//! Source: The RISC-V Instruction Set Manual, volume I, chapters "RV32I", "A" and "C".

/// What follows an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The instruction at this address.
    At(u64),
    /// The kernel, and then the instruction to which it returns.
    Kernel,
    /// Not followed: the instruction is a load-reserved, and a breakpoint behind it would lose the reservation.
    Reserved,
}

/// What follows the instruction whose bytes begin with `code` at the address `at`; `x` are the registers, of which the first is zero.
pub(super) fn decode_next(code: u32, at: u64, x: &[u64; 32]) -> Next {
    if code & 3 != 3 {
        return Next::At(decode_compressed(code, at, x));
    }
    const ECALL: u32 = 0x73;
    let register = |shift: u32| x[(code >> shift & 31) as usize];
    match code & 0x7f {
        // jal
        0x6f => {
            let offset = gather(code, &[(21, 10, 1), (20, 1, 11), (12, 8, 12), (31, 1, 20)]);
            Next::At(at.wrapping_add_signed(extend_sign(offset, 21)))
        }
        // jalr
        0x67 => Next::At(register(15).wrapping_add_signed(extend_sign(code >> 20, 12)) & !1),
        0x63 => {
            let offset = gather(code, &[(8, 4, 1), (25, 6, 5), (7, 1, 11), (31, 1, 12)]);
            let is_taken = is_branch_taken(code >> 12 & 7, register(15), register(20));
            Next::At(if is_taken { at.wrapping_add_signed(extend_sign(offset, 13)) } else { at + 4 })
        }
        // lr.w and lr.d
        0x2f if code >> 27 == 2 => Next::Reserved,
        _ if code == ECALL => Next::Kernel,
        _ => Next::At(at + 4),
    }
}

fn decode_compressed(code: u32, at: u64, x: &[u64; 32]) -> u64 {
    let branch = || gather(code, &[(3, 2, 1), (10, 2, 3), (2, 1, 5), (5, 2, 6), (12, 1, 8)]);
    let tested = x[8 + (code >> 7 & 7) as usize];
    let full = (code >> 7 & 31) as usize;
    match (code & 3, code >> 13 & 7) {
        // c.j
        (1, 5) => {
            let parts =
                [(3, 3, 1), (11, 1, 4), (2, 1, 5), (7, 1, 6), (6, 1, 7), (9, 2, 8), (8, 1, 10), (12, 1, 11)];
            at.wrapping_add_signed(extend_sign(gather(code, &parts), 12))
        }
        // c.beqz and c.bnez
        (1, 6) if tested == 0 => at.wrapping_add_signed(extend_sign(branch(), 9)),
        (1, 7) if tested != 0 => at.wrapping_add_signed(extend_sign(branch(), 9)),
        // c.jr and c.jalr
        (2, 4) if code >> 2 & 31 == 0 && full != 0 => x[full] & !1,
        _ => at + 2,
    }
}

/// Whether a branch is taken whose field funct3 is `condition`, for the operands `a` and `b`.
fn is_branch_taken(condition: u32, a: u64, b: u64) -> bool {
    match condition {
        0 => a == b,
        1 => a != b,
        4 => (a as i64) < b as i64,
        5 => a as i64 >= b as i64,
        6 => a < b,
        _ => a >= b,
    }
}

/// Puts fields of an instruction together. A field is its first bit in `code`, its number of bits, and its first bit in the result.
fn gather(code: u32, fields: &[(u32, u32, u32)]) -> u32 {
    fields.iter().map(|(from, bits, to)| (code >> from & ((1 << bits) - 1)) << to).sum()
}

fn extend_sign(value: u32, bits: u32) -> i64 {
    i64::from((value << (32 - bits)) as i32 >> (32 - bits))
}

#[cfg(target_arch = "riscv64")]
mod step {
    use super::super::{Stepped, Stepper, Stop};
    use super::{Next, decode_next};
    use crate::error::{Error, Result};
    use nix::sys::ptrace;
    use nix::sys::signal::Signal;

    /// `c.ebreak`, which is as long as the shortest instruction.
    const BREAKPOINT: i64 = 0x9002;

    impl Stepper {
        /// Executes the next instruction.
        ///
        /// # Errors
        /// [`Error::Died`] if the child does not end with code 0.
        pub fn execute_instruction(&mut self) -> Result<Stepped> {
            let refused = |call: &'static str| move |errno| Error::from_errno(call, errno);
            let r = ptrace::getregs(self.child.pid).map_err(refused("ptrace getregs"))?;
            let x = [
                0, r.ra, r.sp, r.gp, r.tp, r.t0, r.t1, r.t2, r.s0, r.s1, r.a0, r.a1, r.a2, r.a3, r.a4, r.a5,
                r.a6, r.a7, r.s2, r.s3, r.s4, r.s5, r.s6, r.s7, r.s8, r.s9, r.s10, r.s11, r.t3, r.t4, r.t5,
                r.t6,
            ];
            let [a, b, c, d, ..] = self.code_at(r.pc as usize)?;
            match decode_next(u32::from_le_bytes([a, b, c, d]), r.pc, &x) {
                Next::Kernel if [libc::SYS_clone, libc::SYS_clone3].contains(&(r.a7 as i64)) => {
                    Ok(Stepped::Lost)
                }
                Next::Kernel => self.pass_through_kernel(),
                Next::At(next) if next != r.pc => self.run_to(next),
                _ => Ok(Stepped::Lost),
            }
        }

        fn pass_through_kernel(&mut self) -> Result<Stepped> {
            for _ in ["entry", "exit"] {
                ptrace::syscall(self.child.pid, None).map_err(|e| Error::from_errno("ptrace syscall", e))?;
                match self.child.wait_for_stop()? {
                    Stop::Entry => {}
                    Stop::Ended => return Ok(Stepped::Ended),
                    Stop::Signal(_) => return Ok(Stepped::Lost),
                }
            }
            Ok(Stepped::On)
        }

        fn run_to(&mut self, next: u64) -> Result<Stepped> {
            let pid = self.child.pid;
            let (word, shift) = (next & !7, 8 * (next & 7));
            let refused = |errno| Error::from_errno("ptrace of a breakpoint", errno);
            let code = ptrace::read(pid, word as ptrace::AddressType).map_err(refused)?;
            let broken = code & !(0xffff << shift) | BREAKPOINT << shift;
            ptrace::write(pid, word as ptrace::AddressType, broken).map_err(refused)?;
            ptrace::cont(pid, None).map_err(refused)?;
            match self.child.wait_for_stop()? {
                Stop::Ended => return Ok(Stepped::Ended),
                Stop::Signal(Signal::SIGTRAP) => {}
                // The child must not continue, as the breakpoint is still there. Dropping this value kills the child.
                _ => return Ok(Stepped::Lost),
            }
            ptrace::write(pid, word as ptrace::AddressType, code).map_err(refused)?;
            let arrived = ptrace::getregs(pid).map_err(refused)?.pc == next;
            Ok(if arrived { Stepped::On } else { Stepped::Lost })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instruction, its text by binutils 2.40, and what follows it at 0x10000 if a0 is 5, a1 is -1, and ra is 0x20001.
    const DECODED: [(u32, &str, Next); 22] = [
        (0x7fe0_006f, "jal x0, +0x7fe", Next::At(0x1_07fe)),
        (0x800f_f0ef, "jal ra, -0x1000", Next::At(0xf000)),
        (0x0040_8067, "jalr x0, 4(ra)", Next::At(0x2_0004)),
        (0xff00_80e7, "jalr ra, -16(ra)", Next::At(0x1_fff0)),
        (0x10b5_0063, "beq a0, a1, +0x100", Next::At(0x1_0004)),
        (0x10b5_1063, "bne a0, a1, +0x100", Next::At(0x1_0100)),
        (0xf8a5_c0e3, "blt a1, a0, -0x80", Next::At(0xff80)),
        (0x10a5_d063, "bge a1, a0, +0x100", Next::At(0x1_0004)),
        (0x00b5_60e3, "bltu a0, a1, +0x800", Next::At(0x1_0800)),
        (0x10b5_7063, "bgeu a0, a1, +0x100", Next::At(0x1_0004)),
        (0x1005_b52f, "lr.d a0, (a1)", Next::Reserved),
        (0x18a5_b52f, "sc.d a0, a0, (a1)", Next::At(0x1_0004)),
        (0x00a5_b52f, "amoadd.d a0, a0, (a1)", Next::At(0x1_0004)),
        (0x0000_0073, "ecall", Next::Kernel),
        (0x00b5_0533, "add a0, a0, a1", Next::At(0x1_0004)),
        (0xaafd, "c.j +0x1fe", Next::At(0x1_01fe)),
        (0xb101, "c.j -0x400", Next::At(0xfc00)),
        (0xc121, "c.beqz a0, +0x40", Next::At(0x1_0002)),
        (0xfd3d, "c.bnez a0, -0x82", Next::At(0xff7e)),
        (0x8082, "c.jr ra", Next::At(0x2_0000)),
        (0x9082, "c.jalr ra", Next::At(0x2_0000)),
        (0x8506, "c.mv a0, ra", Next::At(0x1_0002)),
    ];

    #[test]
    fn the_address_of_the_next_instruction_is_decoded() {
        let mut x = [0; 32];
        (x[1], x[10], x[11]) = (0x2_0001, 5, u64::MAX);
        for (code, instruction, next) in DECODED {
            assert_eq!(decode_next(code, 0x1_0000, &x), next, "{instruction}");
        }
    }
}
