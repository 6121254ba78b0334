//! One boot of a guest under the instruction clock, from its start to its regular end, its failure or its timeout.

use super::console::explain_last_words;
use super::console::{Transcript, parse_transcript, version_mismatch};
use super::emulator;
use super::emulator::Architecture;
use super::emulator::Plugin;
use super::kernel::Kernel;
use crate::executed::execution_log::{ExecutionLog, order_path};
use crate::instruction_counts::CountOutcome;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use syscost_platform::error::{Error, Result};
use syscost_platform::{process, signal};

/// The most bytes that are read of a console; a guest that writes more is killed.
const LONGEST_CONSOLE: usize = 16 << 20;
/// Time between two checks for a signal to this process, ms.
const LOOK: u16 = 100;
/// The longest wait for an emulator to end after it has closed its console.
const GRACE: Duration = Duration::from_secs(10);
/// The most bytes of the emulator's own errors that are quoted.
const QUOTED: u64 = 400;

/// How guests are booted.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Memory of a guest, MiB.
    pub memory_mib: u32,
    /// QEMU's name of the emulated processor; `None` for the architecture's default.
    pub model: Option<String>,
    /// The longest time a guest may run; then it is killed.
    pub patience: Duration,
    /// The file with the guest's initial file system.
    pub initramfs: PathBuf,
    /// The plugin that counts executed instructions; without it the emulator's clock counts them.
    pub plugin: Option<Plugin>,
    /// The directory for the files of the plugin or of a user-mode Linux.
    pub scratch: PathBuf,
}

/// One guest that has ended.
#[derive(Clone, Debug)]
pub struct Boot {
    /// Its messages on the console.
    pub transcript: Transcript,
    /// Why it did not end as it should, in a sentence; `None` if it did.
    pub fault: Option<String>,
    /// The plugin's counts; `None` if there is no plugin.
    pub log: Option<ExecutionLog>,
}

/// Boots a kernel and waits for its end. The guest's random choices (hash keys, the order of free lists) depend on `seed` alone.
/// Boots with one seed are identical; boots with several seeds show how far chance changes a count.
///
/// # Errors
/// There is no emulator, or this process was interrupted. A failure of the guest is no error, but a [`Boot::fault`].
pub fn boot(machine: &Machine, kernel: &Kernel, seed: usize) -> Result<Boot> {
    let counts = tempfile::NamedTempFile::new_in(&machine.scratch);
    let counts = counts.map_err(|e| Error::file(&machine.scratch, "making a file in", e))?;
    let mut guest = Guest::start(machine, kernel, seed, counts.path())?;
    let (bytes, fault) = guest.read_console(machine.patience)?;
    // The counts are complete only when the emulator has ended.
    guest.wait_until_ended();
    let mut transcript = parse_transcript(&bytes);
    let log = machine.plugin.as_ref().map(|_| ExecutionLog::read(counts.path())).transpose();
    // The order file exists only if the order was asked for, and has been read.
    let _ = std::fs::remove_file(order_path(counts.path()));
    let log = log?;
    if let Some(log) = &log {
        transcript.answers.iter_mut().for_each(|answer| take_executed(&answer.id, &mut answer.outcome, log));
    }
    let refused = transcript.hello.as_ref().and_then(version_mismatch);
    let unfinished = (!transcript.ended).then(|| {
        let how = fault.unwrap_or_else(|| explain_last_words(&transcript.last_words));
        boot_failure(kernel, &how, &transcript, &guest.error_text())
    });
    Ok(Boot { fault: refused.or(unfinished), transcript, log })
}

/// Replaces the count by the emulator's clock with the plugin's count.
fn take_executed(id: &str, outcome: &mut CountOutcome, log: &ExecutionLog) {
    if let CountOutcome::Counted(count) = outcome {
        let executed = log.case(id).and_then(|case| case.count(count.iterations));
        *outcome = match executed {
            Some(count) if count.is_sound() => CountOutcome::Counted(count),
            Some(count) => CountOutcome::Failed(count.unsound_reason()),
            None => CountOutcome::Skipped(
                "it is timed by a clock of its own, whose brackets the emulator does not see".into(),
            ),
        };
    }
}

/// The fault of a guest in a sentence, with the errors of the emulator and the last lines of the kernel.
fn boot_failure(kernel: &Kernel, how: &str, transcript: &Transcript, error: &str) -> String {
    let mut words = format!("the guest of {} did not reach its end: {how}", kernel.name);
    if !error.is_empty() {
        words += &format!("; the emulator says: {error}");
    }
    if !transcript.last_words.is_empty() {
        words += &format!("; its last lines: {}", transcript.last_words.join(" | "));
    }
    words
}

/// The command line of a kernel: a console on the serial line, a reboot after a panic, and fixed addresses. Other addresses
/// would change the number of instructions by as much as a small change of the kernel does.
fn command_line(kernel: &Kernel) -> String {
    let Architecture { console, command_line, .. } = kernel.architecture();
    let own = format!("console={console} panic=-1 quiet nokaslr norandmaps {command_line}");
    format!("{own} {} rdinit=/init -- guest-init", kernel.command_line)
}

/// A running guest. Dropping it kills its process group.
struct Guest {
    child: Child,
    console: ChildStdout,
    error: std::fs::File,
}

impl Guest {
    fn start(machine: &Machine, kernel: &Kernel, seed: usize, counts: &Path) -> Result<Self> {
        let error =
            tempfile::tempfile().map_err(|e| Error::file(std::env::temp_dir(), "making a file in", e))?;
        let copy = error.try_clone().map_err(|e| Error::file("a temporary file", "duplicating", e))?;
        let architecture = kernel.architecture();
        let mut command = emulator_command(machine, architecture);
        command.args(["-seed", &seed.to_string()]);
        command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(&machine.initramfs);
        if let Some(plugin) = &machine.plugin {
            command.args(["-plugin", &plugin.argument(counts)]);
        }
        command.args(["-append", &command_line(kernel)]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(copy).process_group(0);
        process::die_with_starter(&mut command);
        let mut child = command.spawn().map_err(|e| emulator::start_error(architecture, &e))?;
        match child.stdout.take() {
            Some(console) => Ok(Self { child, console, error }),
            None => Err(Error::Disproved("a guest was started without its console".into())),
        }
    }

    /// Reads the console until the guest ends. Returns the bytes, and why the guest is to be killed, if it is.
    fn read_console(&mut self, patience: Duration) -> Result<(Vec<u8>, Option<String>)> {
        let (begun, mut bytes, mut part) = (Instant::now(), Vec::new(), vec![0; 64 << 10]);
        loop {
            if signal::pending().is_some() {
                return Err(Error::Disturbed("interrupted while a guest ran".into()));
            }
            if begun.elapsed() > patience {
                return Ok((
                    bytes,
                    Some(format!("it was killed after {} s (--patience)", patience.as_secs())),
                ));
            }
            if !self.is_ready() {
                continue;
            }
            match self.console.read(&mut part) {
                Ok(0) => return Ok((bytes, None)),
                Ok(length) => bytes.extend_from_slice(&part[..length]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::Kernel { call: "read from a guest's console".into(), cause: e }),
            }
            if bytes.len() > LONGEST_CONSOLE {
                let sentence = format!("it wrote more than {} MiB and was killed", LONGEST_CONSOLE >> 20);
                return Ok((bytes, Some(sentence)));
            }
        }
    }

    /// Waits for the end of a guest that has closed its console.
    fn wait_until_ended(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits at most [`LOOK`] ms until the console can be read, and returns whether it can.
    fn is_ready(&self) -> bool {
        let mut watched = [PollFd::new(self.console.as_fd(), PollFlags::POLLIN)];
        poll(&mut watched, PollTimeout::from(LOOK)).is_ok_and(|ready| ready > 0)
    }

    /// The beginning of what the emulator wrote to its standard error.
    fn error_text(&mut self) -> String {
        let mut bytes = Vec::new();
        let begun = self.error.seek(SeekFrom::Start(0));
        let _ = begun.and_then(|_| (&self.error).take(QUOTED).read_to_end(&mut bytes));
        super::console::printable_line(String::from_utf8_lossy(&bytes).trim())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        emulator::kill_guest(&mut self.child);
    }
}

/// The command that starts the emulator with a clock that counts instructions.
fn emulator_command(machine: &Machine, architecture: &Architecture) -> Command {
    let model = machine.model.as_deref().unwrap_or(architecture.processor);
    let mut command = Command::new(architecture.emulator);
    command.args(["-machine", architecture.machine, "-accel", "tcg,thread=single"]);
    command.args(["-icount", "shift=0,sleep=off", "-rtc", "clock=vm,base=2020-01-01"]);
    command.args(["-smp", "1", "-cpu", model, "-m", &machine.memory_mib.to_string()]);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction_counts::Count;

    #[test]
    fn the_users_words_precede_those_of_the_first_process_on_the_command_line() {
        let kernel = Kernel { command_line: "pti=on".into(), ..Kernel::default() };
        let line = command_line(&kernel);
        let (kernel, init) = line.split_once(" -- ").expect("two parts");
        assert!(kernel.contains("pti=on") && kernel.contains("nokaslr") && kernel.contains("clearcpuid="));
        assert_eq!(init, "guest-init");
    }

    #[test]
    fn a_plugin_count_that_does_not_grow_fails_and_a_missing_one_is_skipped() {
        let log = |text: &str| ExecutionLog::parse(text.as_bytes(), Default::default(), None::<&[u8]>);
        let outcome = |text: &str| {
            let count = Count { iterations: 3, batches: [10, 20], repetitions: [0, 0] };
            let mut outcome = CountOutcome::Counted(count);
            take_executed("a/b", &mut outcome, &log(text).expect("no error"));
            outcome
        };
        let grows = outcome("s case a/b\nw 12 0\nw 21 0\n");
        assert_eq!(grows.count().map(|count| count.batches), Some([12, 21]));
        let same = outcome("s case a/b\nw 12 0\nw 12 0\n");
        assert!(matches!(same, CountOutcome::Failed(s) if s.contains("does not grow with its work")));
        for unseen in ["s case a/b\n", "s case a/b\nw 0 0\nw 0 0\n"] {
            assert!(matches!(outcome(unseen), CountOutcome::Skipped(s) if s.contains("a clock of its own")));
        }
    }

    #[test]
    fn a_fault_names_the_kernel_and_quotes_both_logs() {
        let kernel = Kernel { name: "6.1".into(), ..Kernel::default() };
        let transcript = Transcript { last_words: vec!["Kernel panic".into()], ..Transcript::default() };
        let said = boot_failure(&kernel, "it panicked", &transcript, "no space");
        for words in ["6.1", "it panicked", "says: no space", "last lines: Kernel panic"] {
            assert!(said.contains(words), "{said}");
        }
    }
}
