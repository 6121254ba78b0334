//! One execution of a command.

use crate::declaration::CommandSpec;
use crate::error::{Error, Result};
use crate::platform::inert::neutralize_line;
use crate::platform::process::kill_process_tree;
use crate::platform::process::usage::{TreeUsage, reap_orphans, wait_with_usage};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use syscost_engine::clock::{Clock, Ticks};

/// Time in which processes that a command has left may still end by themselves.
const GRACE: Duration = Duration::from_millis(20);
/// The most output that a command may write, bytes.
const MOST_OUTPUT: u64 = 1 << 30;
/// Bytes of the standard error from whose end a sentence is taken.
const QUOTED: u64 = 4096;

/// What one execution did.
pub struct Executed {
    /// Its time.
    pub ticks: Ticks,
    /// What its processes used.
    pub usage: TreeUsage,
    /// SHA-256 of its standard output.
    pub output: [u8; 32],
}

/// The files to which an execution writes.
pub struct Outputs {
    output: PathBuf,
    error: PathBuf,
}

impl Outputs {
    /// Files in this directory.
    pub fn new(directory: &Path) -> Self {
        Self { output: directory.join("output"), error: directory.join("error") }
    }

    /// Whether the command has written more than it may.
    fn are_too_long(&self) -> bool {
        let length = |path: &Path| path.metadata().map_or(0, |found| found.len());
        length(&self.output).max(length(&self.error)) > MOST_OUTPUT
    }

    /// The last line of the standard error, as the end of a sentence; empty if there is none.
    fn last_error_line(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.error)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(QUOTED)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let text = read().unwrap_or_default();
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(String::new, |line| format!(": {}", neutralize_line(line.trim(), 200)))
    }
}

/// A command that is ready to be started, with its streams.
///
/// # Errors
/// Its input cannot be opened, or a file for its output cannot be made.
pub fn command(spec: &CommandSpec, outputs: &Outputs) -> Result<Command> {
    let words = spec.run.words();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(&spec.environment);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SYSCOST_") {
            command.env_remove(name);
        }
    }
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    let create = |path: &Path| File::create(path).map_err(|e| Error::file(path, "making", e));
    let input = match &spec.input {
        Some(path) => Stdio::from(File::open(path).map_err(|e| Error::file(path, "opening", e))?),
        None => Stdio::null(),
    };
    command.stdin(input).stdout(create(&outputs.output)?).stderr(create(&outputs.error)?);
    Ok(command)
}

/// Runs a shell line that is no part of the measured command.
///
/// # Errors
/// It cannot be started, or does not end with code 0.
pub fn run_untimed(spec: &CommandSpec, what: &str, line: Option<&String>) -> Result<()> {
    let Some(line) = line else { return Ok(()) };
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).envs(&spec.environment).stdin(Stdio::null());
    if let Some(directory) = &spec.directory {
        shell.current_dir(directory);
    }
    let done = shell.output().map_err(|cause| Error::Kernel { call: format!("start of {what}"), cause })?;
    if done.status.success() {
        return Ok(());
    }
    let said = neutralize_line(String::from_utf8_lossy(&done.stderr).trim(), 200);
    Err(Error::Disproved(format!("{what} of the command ended with {}: {said}", done.status)))
}

/// Executes it once, and checks how it ended. `known` are the children that this process has besides.
///
/// # Errors
/// [`Error::Usage`] if it cannot be started, [`Error::Disproved`] if an expectation was not met.
pub fn execute(spec: &CommandSpec, outputs: &Outputs, known: &[i32], clock: &Clock) -> Result<Executed> {
    run_untimed(spec, "prepare", spec.prepare.as_ref())?;
    let mut command = command(spec, outputs)?;
    let start = clock.start();
    let child = command.spawn().map_err(|cause| cannot_start(spec, &cause))?;
    let ended = wait_with_usage(child.id() as i32, spec.limit(), || outputs.are_too_long());
    let ticks = clock.record_bracket(clock.stop() - start);
    let Some((status, mut usage)) = ended? else {
        kill_process_tree(child.id());
        reap_orphans(known, Duration::ZERO)?;
        return Err(Error::Disproved(if outputs.are_too_long() {
            format!("the command wrote more than {} GiB and was killed", MOST_OUTPUT >> 30)
        } else {
            format!("the command did not end within {} s and was killed: `timeout` allows more", spec.timeout)
        }));
    };
    let orphans = reap_orphans(known, GRACE)?;
    usage.add(&orphans.usage);
    check_end(spec, status, outputs)?;
    if orphans.killed > 0 {
        return Err(Error::Disproved(format!(
            "the command ended while {} of its processes still ran: their work is not in its time; let it wait for them",
            orphans.killed
        )));
    }
    let output = digest(&outputs.output)?;
    run_untimed(spec, "clean", spec.clean.as_ref())?;
    Ok(Executed { ticks, usage, output })
}

fn cannot_start(spec: &CommandSpec, cause: &std::io::Error) -> Error {
    let program = spec.run.words().first().cloned().unwrap_or_default();
    Error::Usage(format!(
        "{} cannot be started: {cause}; name a program of the search path, or its file",
        neutralize_line(&program, 200)
    ))
}

fn check_end(spec: &CommandSpec, status: ExitStatus, outputs: &Outputs) -> Result<()> {
    if status.code() == Some(spec.expect.exit) {
        return Ok(());
    }
    let how = match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    };
    let error = outputs.last_error_line();
    Err(Error::Disproved(format!(
        "the command ended with {how}, expected exit code {}{error}",
        spec.expect.exit
    )))
}

fn digest(path: &Path) -> Result<[u8; 32]> {
    let failed = |e| Error::file(path, "reading", e);
    let mut file = File::open(path).map_err(failed)?;
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(sum.finalize().into()),
            read => sum.update(&buffer[..read]),
        }
    }
}
