//! A known slowdown of every system call: a seccomp filter of chosen length, which the kernel runs at each entry
//! and which allows everything. It needs no privilege, is inherited by every child, and cannot be removed.
//!
//! Since Linux 5.11 the kernel does not run a filter for a call that it allows with any arguments. This filter
//! loads the first argument, so the kernel must run it.

use crate::error::{Error, Result};
use crate::seccomp;
use libc::sock_filter;

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
    seccomp::install(&filter_program(instructions))
}

fn filter_program(instructions: usize) -> Vec<sock_filter> {
    let mut code = vec![seccomp::load(seccomp::FIRST_ARGUMENT)];
    code.resize(1 + instructions, seccomp::add_one());
    code.push(seccomp::end(libc::SECCOMP_RET_ALLOW));
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
