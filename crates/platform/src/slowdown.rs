//! A known slowdown of every system call: a seccomp filter of chosen length, which the kernel runs at each entry
//! and which allows everything. It needs no privilege, is inherited by every child, and cannot be removed.
//!
//! Since Linux 5.11 the kernel does not run a filter for a call that it allows with any arguments. This filter
//! loads the first argument, so the kernel must run it.
//!
//! # Invariants
//!
//! * **FILTER**: the program and its length are those of one vector that lives across the call; the kernel
//!   copies it and refuses a program that does not end.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use libc::{sock_filter, sock_fprog};

/// The longest filter that the kernel takes, in instructions (`BPF_MAXINSNS`).
pub const LONGEST: usize = 4096;
/// Instructions around the additions: the load and the return.
const FRAME: usize = 2;

/// Installs a filter that executes `instructions` additions at every system call of this process and of its children.
/// It cannot be removed.
///
/// # Errors
/// [`Error::Usage`] if it is too long; the kernel refuses seccomp.
pub fn install_filter(instructions: usize) -> Result<()> {
    if instructions > LONGEST - FRAME {
        return Err(Error::Usage(format!(
            "a filter of {instructions} additions is too long: the kernel takes {}",
            LONGEST - FRAME
        )));
    }
    let mut code = filter_program(instructions);
    let program = sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    // Without a privilege the kernel takes a filter only from a process that can never gain one.
    nix::sys::prctl::set_no_new_privs().map_err(|e| Error::from_errno("prctl PR_SET_NO_NEW_PRIVS", e))?;
    // SAFETY: FILTER. Without the flag older kernels switch off speculative stores for a filtered process,
    // which would slow down more than its calls.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        )
    };
    if answer == 0 { Ok(()) } else { Err(Error::from_last_errno("seccomp SECCOMP_SET_MODE_FILTER")) }
}

fn filter_program(instructions: usize) -> Vec<sock_filter> {
    const FIRST_ARGUMENT: u32 = 16; // struct seccomp_data: number, architecture, instruction pointer, arguments
    let instruction = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let load = instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, FIRST_ARGUMENT);
    let add = instruction(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K, 1);
    let allow = instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
    let mut code = vec![load];
    code.resize(1 + instructions, add);
    code.push(allow);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_loads_adds_and_allows() {
        let code = filter_program(3);
        assert_eq!(code.len(), 3 + FRAME);
        assert_eq!((code[0].k, code[4].k), (16, libc::SECCOMP_RET_ALLOW));
    }

    #[test]
    fn a_filter_that_is_too_long_is_refused_before_a_change() {
        assert!(install_filter(LONGEST).expect_err("too long").to_string().contains("4094"));
    }
}
