//! Creating processes and waiting for their end, each way with as few instructions as it allows.
//!
//! A child does one small part or calls `execve`, and then exits. Where it shares the parent's memory, its part is written in
//! assembly, so that no compiled code runs in two tasks at once: it uses registers only.
//!
//! Every function that creates a task returns the child's process id, or a negative error number.
//!
//! # Invariants
//!
//! * **ENDS**: what a child executes ends in `_exit` or in another program: it never returns, unwinds, runs an
//!   exit handler or flushes a buffer. The C library's `fork` leaves its locks usable in a child of one thread.
//! * **REGISTERS**: a child in the parent's memory reads only memory that outlives it, and writes none. A signal
//!   handler that runs in it has a stack of its own, or that of a parent which is suspended until the child ends.
//! * **OWN-ARGUMENTS**: the pointers lead to strings that live as long as the value, and end in a null pointer.
//! * **OWN-STATUS**: waitpid(2) writes one integer, to the reference that it is given.
#![allow(unsafe_code)]

use super::kernel_call;
use crate::error::{Error, Result};
use crate::platform::limit;
use memmap2::MmapMut;
use nix::errno::Errno;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
use std::arch::asm;
use std::ffi::{CString, c_char};
use std::ptr::null;

/// The exit code of a child whose program could not be executed, as of a shell.
pub const NOT_EXECUTED: i32 = 127;
/// The answer on a processor for which the child's assembly is not written.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const NOT_WRITTEN: i64 = -(libc::ENOSYS as i64);

/// Checks what a call that creates a task has returned.
///
/// # Errors
/// A negative answer: [`Error::Missing`] with the limits on tasks for `EAGAIN`, else that of [`kernel_call::check_granted`].
pub fn check_created(call: &str, answer: i64) -> Result<()> {
    if answer == -i64::from(libc::EAGAIN) {
        return Err(Error::Missing(limit::refused_task_message(call, Errno::EAGAIN.into())));
    }
    kernel_call::check_granted(call, answer)
}

/// fork(2) by the C library; the child exits at once.
#[inline(always)]
pub fn fork_exit() -> i64 {
    fork_do_exit(|| ())
}

/// fork(2) by the C library; the child runs `part`, which must not panic, and exits.
#[inline(always)]
pub fn fork_do_exit(part: impl FnOnce()) -> i64 {
    // SAFETY: ENDS.
    match unsafe { libc::fork() } {
        0 => {
            part();
            // SAFETY: ENDS.
            unsafe { libc::_exit(0) }
        }
        -1 => negative_errno(),
        child => i64::from(child),
    }
}

/// vfork(2): the child shares the parent's memory and stack and exits at once; the parent is suspended until then.
#[inline(always)]
pub fn vfork_exit() -> i64 {
    // SAFETY: ENDS, REGISTERS.
    unsafe { clone_exit(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD, 0, null()) }
}

/// A stack for a task in the parent's memory, which only a signal handler would use.
pub struct Stack(MmapMut);

impl Stack {
    const BYTES: usize = 256 << 10;

    /// Maps the memory.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel refuses the mapping.
    pub fn new() -> Result<Self> {
        let refused = |cause| Error::Kernel { call: "mmap of a stack".into(), cause };
        Ok(Self(MmapMut::map_anon(Self::BYTES).map_err(refused)?))
    }

    /// Address of the stack's upper end, page-aligned as the architectures require.
    pub fn top(&mut self) -> usize {
        self.0.as_mut_ptr_range().end as usize
    }
}

/// clone(2) of a process that shares the parent's memory and exits at once; the parent is not suspended.
#[inline(always)]
pub fn clone_vm_exit(stack: &mut Stack) -> i64 {
    // SAFETY: ENDS, REGISTERS.
    unsafe { clone_exit(libc::CLONE_VM | libc::SIGCHLD, stack.top(), null()) }
}

/// clone(2); the new task exits at once.
///
/// # Safety
/// ENDS and REGISTERS must hold for the flags: a task that shares the memory of a parent that is not suspended needs a
/// stack of its own. `id` is null, or a word that the kernel may write as long as the task lives.
#[inline(always)]
pub unsafe fn clone_exit(flags: i32, stack: usize, id: *const u32) -> i64 {
    let answer: i64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: ENDS, REGISTERS, promised by the caller.
    unsafe {
        asm!("syscall", "test rax, rax", "jnz 2f", "xor edi, edi", "mov eax, {exit}", "syscall", "ud2", "2:",
            exit = const libc::SYS_exit, inlateout("rax") libc::SYS_clone => answer, in("rdi") flags as i64,
            in("rsi") stack, in("rdx") id, in("r10") id, in("r8") 0, out("rcx") _, out("r11") _,
            options(nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: ENDS, REGISTERS, promised by the caller. Here the thread area precedes the child's id.
    unsafe {
        asm!("svc #0", "cbnz x0, 2f", "mov x8, #{exit}", "svc #0", "brk #1", "2:",
            exit = const libc::SYS_exit, in("x8") libc::SYS_clone, inlateout("x0") flags as i64 => answer,
            in("x1") stack, in("x2") id, in("x3") 0, in("x4") id, options(nostack));
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: ENDS, REGISTERS, promised by the caller. Here the thread area precedes the child's id.
    unsafe {
        asm!("ecall", "bnez a0, 2f", "li a7, {exit}", "ecall", "unimp", "2:",
            exit = const libc::SYS_exit, inlateout("a7") libc::SYS_clone => _, inlateout("a0") flags as i64 => answer,
            in("a1") stack, in("a2") id, in("a3") 0, in("a4") id, options(nostack));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    {
        let _ = (flags, stack, id);
        answer = NOT_WRITTEN;
    }
    answer
}

/// A program with its arguments, and nothing in its environment.
pub struct Program {
    path: CString,
    /// Owns the strings that `pointers` lead to.
    _arguments: Vec<CString>,
    pointers: Vec<*const c_char>,
}

/// The end of an empty environment.
const NO_ENVIRONMENT: [*const c_char; 1] = [null()];

impl Program {
    /// `path` is executed without a search; it is also the first argument.
    ///
    /// # Errors
    /// [`Error::Usage`] if a string holds a zero byte.
    pub fn new(path: &str, arguments: &[&str]) -> Result<Self> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| Error::Usage(format!("{text:?}: an argument holds a zero byte")))
        };
        let all: Result<Vec<_>> = std::iter::once(&path).chain(arguments).map(|word| text(word)).collect();
        let arguments = all?;
        let pointers = arguments.iter().map(|word| word.as_ptr()).chain([null()]).collect();
        Ok(Self { path: text(path)?, _arguments: arguments, pointers })
    }

    /// fork(2) by the C library, then execve(2).
    #[inline(always)]
    pub fn fork_exec(&self) -> i64 {
        // SAFETY: ENDS, OWN-ARGUMENTS.
        fork_do_exit(|| unsafe {
            libc::execve(self.path.as_ptr(), self.pointers.as_ptr(), NO_ENVIRONMENT.as_ptr());
            libc::_exit(NOT_EXECUTED)
        })
    }

    /// vfork(2), then execve(2): the parent is suspended until the new program has started.
    #[inline(always)]
    pub fn vfork_exec(&self) -> i64 {
        let (path, arguments) = (self.path.as_ptr(), self.pointers.as_ptr());
        // SAFETY: ENDS, REGISTERS, OWN-ARGUMENTS.
        unsafe { clone_exec(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD, path, arguments) }
    }

    /// posix_spawn(3).
    #[inline(always)]
    pub fn spawn(&self) -> i64 {
        let mut child = 0;
        let path = self.path.as_ptr();
        let (arguments, environment) = (self.pointers.as_ptr().cast(), NO_ENVIRONMENT.as_ptr().cast());
        // SAFETY: OWN-ARGUMENTS; the library writes the id into a local variable, and neither keeps the pointers
        // nor writes through them.
        let errno =
            unsafe { libc::posix_spawn(&raw mut child, path, null(), null(), arguments, environment) };
        if errno == 0 { i64::from(child) } else { -i64::from(errno) }
    }
}

/// clone(2); the new task executes a program, or ends with [`NOT_EXECUTED`].
///
/// # Safety
/// That of [`clone_exit`], with flags that suspend the parent; OWN-ARGUMENTS.
#[inline(always)]
unsafe fn clone_exec(flags: i32, path: *const c_char, arguments: *const *const c_char) -> i64 {
    let answer: i64;
    let environment = NO_ENVIRONMENT.as_ptr();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: ENDS, REGISTERS, promised by the caller.
    unsafe {
        asm!("syscall", "test rax, rax", "jnz 2f",
            "mov rdi, r12", "mov rsi, r13", "mov rdx, r14", "mov eax, {execve}", "syscall",
            "mov edi, {failed}", "mov eax, {exit}", "syscall", "ud2", "2:",
            execve = const libc::SYS_execve, exit = const libc::SYS_exit, failed = const NOT_EXECUTED,
            inlateout("rax") libc::SYS_clone => answer, in("rdi") flags as i64, in("rsi") 0, in("rdx") 0, in("r10") 0,
            in("r8") 0, in("r12") path, in("r13") arguments, in("r14") environment,
            out("rcx") _, out("r11") _, options(nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: ENDS, REGISTERS, promised by the caller.
    unsafe {
        asm!("svc #0", "cbnz x0, 2f",
            "mov x0, x9", "mov x1, x10", "mov x2, x11", "mov x8, #{execve}", "svc #0",
            "mov x0, #{failed}", "mov x8, #{exit}", "svc #0", "brk #1", "2:",
            execve = const libc::SYS_execve, exit = const libc::SYS_exit, failed = const NOT_EXECUTED,
            in("x8") libc::SYS_clone, inlateout("x0") flags as i64 => answer, in("x1") 0, in("x2") 0, in("x3") 0,
            in("x4") 0, in("x9") path, in("x10") arguments, in("x11") environment, options(nostack));
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: ENDS, REGISTERS, promised by the caller.
    unsafe {
        asm!("ecall", "bnez a0, 2f",
            "mv a0, t1", "mv a1, t2", "mv a2, t3", "li a7, {execve}", "ecall",
            "li a0, {failed}", "li a7, {exit}", "ecall", "unimp", "2:",
            execve = const libc::SYS_execve, exit = const libc::SYS_exit, failed = const NOT_EXECUTED,
            inlateout("a7") libc::SYS_clone => _, inlateout("a0") flags as i64 => answer, in("a1") 0, in("a2") 0,
            in("a3") 0, in("a4") 0, in("t1") path, in("t2") arguments, in("t3") environment, options(nostack));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    {
        let _ = (flags, path, arguments, environment);
        answer = NOT_WRITTEN;
    }
    answer
}

/// Waits for a child and reaps it. Returns its id and sets `status`, or returns a negative error number. An interrupted
/// wait is continued.
#[inline(always)]
pub fn reap(child: i32, status: &mut i32) -> i64 {
    loop {
        // SAFETY: OWN-STATUS.
        match unsafe { libc::waitpid(child, status, 0) } {
            -1 if Errno::last() == Errno::EINTR => {}
            -1 => return negative_errno(),
            reaped => return i64::from(reaped),
        }
    }
}

fn negative_errno() -> i64 {
    -i64::from(Errno::last_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::child::describe_raw_status;

    fn end_of(child: i64) -> Option<String> {
        let child = i32::try_from(child).expect("a number");
        assert!(child > 0, "refused: {child}");
        let mut status = -1;
        assert_eq!(reap(child, &mut status), i64::from(child));
        describe_raw_status(status)
    }

    #[test]
    fn each_way_makes_a_child_that_ends_well() {
        let here = std::process::id();
        let mut stack = Stack::new().expect("memory");
        for _ in 0..10 {
            for child in [fork_exit(), vfork_exit(), clone_vm_exit(&mut stack)] {
                assert!(child != i64::from(here));
                assert_eq!(end_of(child), None);
            }
        }
        assert_eq!(here, std::process::id());
    }

    #[test]
    fn each_way_executes_a_program() {
        let good = Program::new("/bin/sh", &["-c", "exit 0"]).expect("no zero byte");
        let bad = Program::new("/bin/sh", &["-c", "exit 3"]).expect("no zero byte");
        let ways: [fn(&Program) -> i64; 3] = [Program::fork_exec, Program::vfork_exec, Program::spawn];
        for way in ways {
            assert_eq!(end_of(way(&good)), None);
            assert!(end_of(way(&bad)).expect("a bad end").contains("code 3"));
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_no_success() {
        let missing = Program::new("/there/is/no/such/program", &[]).expect("no zero byte");
        for child in [missing.fork_exec(), missing.vfork_exec()] {
            assert!(end_of(child).expect("a bad end").contains("code 127"));
        }
        assert_eq!(missing.spawn(), -i64::from(libc::ENOENT));
    }
}
