//! The running program: its file, and starting it once more.
//!
//! # Invariants
//!
//! * **EXECFN**: the auxiliary vector's entry is null, or points to a text that ends in a zero byte and stays as long as the
//!   process does (getauxval(3)).
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernel's link to the file of this program. QEMU's user mode answers in the kernel's place, and names the program that it
/// runs; to the kernel this is the emulator itself, and so it is when the link is executed.
const OWN: &str = "/proc/self/exe";
/// The same link by a name that QEMU does not answer for.
const EXECUTED: &str = "/proc/thread-self/exe";
/// The words by which [`EXECUTED`] was started.
const EXECUTED_WORDS: &str = "/proc/thread-self/cmdline";

/// The file of the running program. Without `/proc` it is that by which the program was started.
///
/// # Errors
/// Neither tells.
pub fn own_program_file() -> io::Result<PathBuf> {
    std::env::current_exe().or_else(|error| std::path::absolute(started_file().ok_or(error)?))
}

/// The running program, to be started once more. By the kernel's own link: its file may have been replaced meanwhile, as by
/// a build beside a run, and then its path leads nowhere or to another program. Where an emulator runs the program, the emulator
/// is started with it: the kernel cannot execute a program of another processor.
pub fn own_program_command() -> Command {
    let own = own_program_file().unwrap_or_else(|_| OWN.into());
    let mut command = match emulator_options(&own) {
        Some(options) => {
            let mut command = Command::new(EXECUTED);
            command.args(options).arg(&own);
            command
        }
        None if Path::new(OWN).symlink_metadata().is_ok() => Command::new(OWN),
        None => Command::new(&own),
    };
    command.arg0(std::env::args_os().next().unwrap_or_default());
    command
}

/// The path by which the kernel started this program.
fn started_file() -> Option<PathBuf> {
    // SAFETY: EXECFN.
    let text = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const libc::c_char;
    // SAFETY: EXECFN.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })?;
    Some(PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

/// The options of the emulator that runs this program; `None` if none does.
fn emulator_options(own: &Path) -> Option<Vec<OsString>> {
    let executed = std::fs::read_link(EXECUTED).ok()?;
    let is_emulator = executed != own && executed.file_name()?.as_bytes().starts_with(b"qemu-");
    let line = is_emulator.then(|| std::fs::read(EXECUTED_WORDS).ok())??;
    Some(options_before(&line, std::env::args_os().count()))
}

/// The options in the words of an emulator's start, each with a zero byte behind it. The last `own` words are the program and
/// its arguments. If the kernel started the emulator (binfmt_misc), there are no options, and the program may stand there twice.
fn options_before(line: &[u8], own: usize) -> Vec<OsString> {
    let words: Vec<_> = line.strip_suffix(b"\0").unwrap_or(line).split(|byte| *byte == 0).collect();
    let options = words.get(1..words.len().saturating_sub(own)).unwrap_or_default();
    let are_options = options.first().is_some_and(|first| first.starts_with(b"-"));
    options.iter().filter(|_| are_options).map(|word| OsString::from_vec(word.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_was_started_is_the_one_that_runs() {
        let started = started_file().expect("the kernel tells").canonicalize().expect("a file");
        assert_eq!(started, std::env::current_exe().expect("/proc").canonicalize().expect("a file"));
    }

    #[test]
    fn options_of_an_emulator_stand_before_the_program() {
        let options = |line: &str, own| options_before(line.replace(' ', "\0").as_bytes(), own);
        assert_eq!(options("qemu-aarch64 -L /lib ./a run x ", 3), ["-L", "/lib"]);
        assert_eq!(options("qemu-aarch64 ./a run x ", 3), [""; 0]);
        assert_eq!(options("/usr/bin/qemu-aarch64-static /a ./a run ", 2), [""; 0], "binfmt_misc, flag P");
        assert_eq!(options("", 3), [""; 0]);
    }

    #[test]
    fn a_program_that_no_emulator_runs_is_started_by_its_link() {
        assert_eq!(own_program_command().get_program(), OWN);
    }
}
