//! The system call at whose entry or exit a traced process has stopped.
//!
//! x86-64 and AArch64 have it in their registers. Elsewhere the kernel returns it (Linux 5.3), as on RISC-V the return value
//! overwrites the first argument before the first of the two stops.
//!
//! # Invariants
//!
//! * **NAMED-MEMBER**: only the member that `op` names is read of the union that the kernel fills (ptrace(2)).
#![allow(unsafe_code)]

use super::Call;
use crate::error::{Error, Result};
use nix::sys::ptrace;
use nix::unistd::Pid;

/// The call: its number and first argument are known at the entry, its return value at the exit.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn read_call(child: Pid) -> Result<Call> {
    let r = ptrace::getregs(child).map_err(|e| Error::from_errno("ptrace getregs", e))?;
    #[cfg(target_arch = "x86_64")]
    let (number, argument, answer) = (r.orig_rax, r.rdi, r.rax);
    #[cfg(target_arch = "aarch64")]
    let (number, argument, answer) = (r.regs[8], r.regs[0], r.regs[0]);
    Ok(Call { number: number as i64, argument: argument as i64, answer: answer as i64 })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn read_call(child: Pid) -> Result<Call> {
    let info = ptrace::syscall_info(child).map_err(|e| Error::from_errno("ptrace syscall_info", e))?;
    Ok(match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: NAMED-MEMBER.
            let entry = unsafe { info.u.entry };
            Call { number: entry.nr as i64, argument: entry.args[0] as i64, answer: 0 }
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: NAMED-MEMBER.
            let exit = unsafe { info.u.exit };
            Call { answer: exit.sval, ..Call::default() }
        }
        _ => Call::default(),
    })
}
