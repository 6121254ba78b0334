//! Requests to Valgrind's tool callgrind, if this process runs under it: to begin and end counting, and to write the counts.
//! Without Valgrind a request does nothing. On processors other than x86-64 this crate makes no request.
//!
//! # Invariants
//!
//! * **REQUEST**: the code is the sequence that `valgrind.h` publishes: rotations that leave their register as it was, and an
//!   exchange of a register with itself. Valgrind reads six words at the address in `rax` and writes `rdx`.
#![allow(unsafe_code)]

use super::process::find_on_path;
use crate::error::{Error, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// `RUNNING_ON_VALGRIND` of `valgrind.h`.
const IS_RUNNING: u64 = 0x1001;
/// The first request of the tool, whose letters are `CT`: `callgrind.h` numbers the others from here.
const FIRST: u64 = 0x4354_0000;
const ZERO_STATISTICS: u64 = FIRST + 1;
const TOGGLE_COLLECTION: u64 = FIRST + 2;
const DUMP_STATISTICS_AT: u64 = FIRST + 3;
const START_INSTRUMENTATION: u64 = FIRST + 4;

static BRACKETS: AtomicU64 = AtomicU64::new(0);
/// Files that were written.
static DUMPS: AtomicU64 = AtomicU64::new(0);

#[cfg(target_arch = "x86_64")]
fn request(number: u64, argument: u64) -> u64 {
    let words = [number, argument, 0, 0, 0, 0];
    let mut answer = 0;
    // SAFETY: REQUEST.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") words.as_ptr(), inout("rdx") answer,
        );
    }
    answer
}

#[cfg(not(target_arch = "x86_64"))]
fn request(_: u64, _: u64) -> u64 {
    0
}

/// Whether this process runs under Valgrind.
pub fn is_running() -> bool {
    request(IS_RUNNING, 0) > 0
}

/// Valgrind in the directories of PATH.
///
/// # Errors
/// It is not installed, or counts nothing on this processor.
pub fn find() -> Result<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Error::Usage(
            "callgrind is used on x86-64 only: --instructions counts by single steps".into(),
        ));
    }
    find_on_path("valgrind").ok_or_else(|| {
        Error::Usage(
            "valgrind is not installed: install the package `valgrind`, or count by single steps (--instructions)".into(),
        )
    })
}

/// A command that starts the running program once more under callgrind. Callgrind counts nothing before a request, and names
/// its files by the path `counts`, a dot and a number.
///
/// # Errors
/// As of [`find`].
pub fn own_program_under(counts: &Path) -> Result<Command> {
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(counts);
    let mut command = Command::new(find()?);
    command.args(["--tool=callgrind", "-q", "--collect-atstart=no", "--instr-atstart=no"]).arg(file);
    // The kernel's link to the program, as for every measuring process; `/proc/self/exe` would be Valgrind.
    command.arg(format!("/proc/{}/exe", std::process::id()));
    Ok(command)
}

/// Begins or ends a bracket, in which instructions are counted.
#[inline(never)]
pub fn toggle() {
    BRACKETS.fetch_add(1, Relaxed);
    request(TOGGLE_COLLECTION, 0);
}

/// What was counted in brackets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of brackets.
    pub brackets: u64,
    /// Instructions in them.
    pub instructions: u64,
}

/// Runs `body` and counts the instructions between its calls of [`toggle`]. `counts` is the path of [`own_program_under`].
///
/// # Errors
/// Those of `body`; Valgrind writes no file, or one without a sum.
pub fn count(body: impl FnOnce() -> Result<()>, counts: &Path) -> Result<Counts> {
    request(START_INSTRUMENTATION, 0);
    request(ZERO_STATISTICS, 0);
    BRACKETS.store(0, Relaxed);
    body()?;
    let number = 1 + DUMPS.fetch_add(1, Relaxed);
    request(DUMP_STATISTICS_AT, c"syscost".as_ptr() as u64);
    let mut name = counts.as_os_str().to_owned();
    name.push(format!(".{number}"));
    let file = PathBuf::from(name);
    let text = std::fs::read_to_string(&file).map_err(|e| Error::file(&file, "reading", e))?;
    // A dump is of no further use, and a long run writes one for each call.
    let _ = std::fs::remove_file(&file);
    let instructions = read_sum(&text).ok_or_else(|| {
        Error::Missing(format!(
            "{}: callgrind wrote no `summary:` or `totals:`, as its format has it",
            file.display()
        ))
    })?;
    Ok(Counts { brackets: BRACKETS.load(Relaxed) / 2, instructions })
}

/// The number of instructions in the text of a callgrind file; `None` unless `Ir` is its first event.
fn read_sum(text: &str) -> Option<u64> {
    let words = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    words("events: ").filter(|events| events.split_whitespace().next() == Some("Ir"))?;
    words("summary: ").or_else(|| words("totals: "))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_valgrind_a_request_does_nothing() {
        assert!(!is_running());
        toggle();
        assert_eq!(request(ZERO_STATISTICS, 0), 0);
    }

    #[test]
    fn the_sum_of_a_file_is_its_first_event() {
        let text = "version: 1\nevents: Ir Dr\nsummary: 42 7\n\nfn=x\n1 42 7\n\ntotals: 42 7\n";
        assert_eq!(read_sum(text), Some(42));
        assert_eq!(read_sum(&text.replace("summary: 42 7\n", "")), Some(42));
        assert_eq!(read_sum(&text.replace("Ir Dr", "Dr Ir")), None, "another order of events");
        assert_eq!(read_sum(""), None);
    }
}
