//! The command of a side: its binary, the words before it, and the check that the binary is still the same file.

use super::running_side::{Draw, Side, SideProcess, Start};
use crate::error::{Error, Result};
use crate::platform::cpu::Aside;
use crate::platform::process::inheritance;
use crate::platform::{inert, signal};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use syscost_engine::json_line::{Lines, NoMessage, send};
use syscost_engine::pair::VARIABLE;

/// Time for a side to remove its scratch files after its input was closed.
const GRACE: Duration = Duration::from_millis(500);

/// A build that can be linked again.
pub trait Relink: std::fmt::Debug {
    /// The path of the program of this link, which is made if it does not exist.
    ///
    /// # Errors
    /// The build cannot be linked.
    fn link(&self, number: u32) -> Result<PathBuf>;
}

/// The command that starts a side.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The name of the side in sentences: `A` or `B`.
    pub label: &'static str,
    /// A symbolic link to the binary. Its path is as long as the other side's, because a longer path would shift the stack.
    program: PathBuf,
    /// The target of the link when the comparison began.
    binary: PathBuf,
    identity: Identity,
    /// Shell words to put before the binary.
    wrap: Option<String>,
    /// Other links of the same build.
    links: Option<Rc<dyn Relink>>,
    /// A variable that is added to its environment, and its value.
    variable: Option<(&'static str, String)>,
}

impl Launch {
    /// A side that runs `binary` through a symbolic link in `directory`, with the shell words of `wrap` before it.
    ///
    /// # Errors
    /// The binary does not exist, or the link cannot be made.
    pub fn new(label: &'static str, binary: &Path, wrap: Option<String>, directory: &Path) -> Result<Self> {
        let there = std::fs::canonicalize(binary).map_err(|e| Error::file(binary, "looking for", e))?;
        let identity = Identity::read(&there)?;
        let home = directory.join(label);
        let program = home.join("syscost-side");
        std::fs::create_dir_all(&home).map_err(|e| Error::file(&home, "making", e))?;
        point_to(&program, &there)?;
        Ok(Self { label, program, identity, binary: there, wrap, links: None, variable: None })
    }

    /// The same side, but each process runs the link of its build that is drawn for it.
    pub fn with_links(self, links: impl Relink + 'static) -> Self {
        Self { links: Some(Rc::new(links)), ..self }
    }

    /// The same side, with this variable in its environment.
    pub fn with_variable(self, name: &'static str, value: String) -> Self {
        Self { variable: Some((name, value)), ..self }
    }

    /// Makes the drawn link the program of the side.
    ///
    /// # Errors
    /// The build cannot be linked, or the binary of the side has changed.
    fn choose_program(&self, draw: Draw) -> Result<()> {
        match (&self.links, draw.link) {
            (Some(links), Some(number)) => point_to(&self.program, &links.link(number)?),
            (Some(_), None) => point_to(&self.program, &self.binary),
            (None, _) => self.check_binary_unchanged(),
        }
    }

    /// Starts the process with the CPU affinity that this process had before it moved aside, and pipes for all three streams.
    ///
    /// # Errors
    /// The binary has changed, or cannot be started.
    fn spawn_child(&self, draw: Draw, aside: &Aside) -> Result<Child> {
        self.choose_program(draw)?;
        let mut command = self.side_command(draw.padding);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = aside.run_with_former_affinity(|| command.spawn())?;
        spawned.map_err(|e| self.start_error(e))
    }

    /// The error for a side that cannot be started. The user has named the file: one that is no program is an error of usage.
    fn start_error(&self, cause: io::Error) -> Error {
        match cause.kind() {
            ErrorKind::PermissionDenied => Error::Usage(format!(
                "side {}: {} is no program, or this user may not start it ({cause}): name a bench or a `syscost` whose file is \
                 executable",
                self.label,
                self.binary.display()
            )),
            _ => Error::file(&self.binary, "starting a side", cause),
        }
    }

    /// Checks that the link still leads to the same file. A build during the comparison replaces the file, and later pairs
    /// would run another program than earlier ones.
    ///
    /// # Errors
    /// The file has changed.
    fn check_binary_unchanged(&self) -> Result<()> {
        if Identity::read(&self.binary)? == self.identity {
            return Ok(());
        }
        Err(Error::Disturbed(format!(
            "the binary of side {} was replaced in the middle ({}): compare copies of the two binaries, or \
             revisions (--a-rev, --b-rev)",
            self.label,
            self.binary.display()
        )))
    }

    /// The command, with an environment variable of random length. So each process has its own random stack position, and the
    /// processes of a side do not share one.
    fn side_command(&self, padding: usize) -> Command {
        let mut command = match &self.wrap {
            None => Command::new(&self.program),
            Some(wrap) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("{wrap} \"$@\"")).arg("sh").arg(&self.program);
                shell
            }
        };
        command.env(VARIABLE, "x".repeat(1 + padding)).envs(self.variable.clone()).process_group(0);
        inheritance::close_other_descriptors(&mut command, &[]);
        command
    }
}

impl Start for Launch {
    fn start_side(&self, draw: Draw, aside: &Aside) -> Result<Side> {
        let mut child = self.spawn_child(draw, aside)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Box::new(Process(child));
        let (Some(requests), Some(responses), Some(error)) = pipes else {
            return Err(Error::Disproved("a side was started without its pipes".into()));
        };
        let connection = Connection::new(requests.into(), responses.into(), error.into())?;
        Ok(Side::new(self.label, Rc::new(RefCell::new(connection)), process))
    }
}

/// Makes `program` a symbolic link to this file, and replaces an existing link.
fn point_to(program: &Path, file: &Path) -> Result<()> {
    let fresh = program.with_extension("new");
    let pointed = std::os::unix::fs::symlink(file, &fresh).and_then(|()| std::fs::rename(&fresh, program));
    pointed.map_err(|e| Error::file(program, "linking", e))
}

/// A process of this machine. It measures itself how long it waited for its CPU.
struct Process(Child);

impl SideProcess for Process {
    fn exit_description(&mut self) -> String {
        match self.0.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "it closed its output".into(),
        }
    }

    /// Closes the input of the process, which ends it. After [`GRACE`] its whole process group is killed.
    fn end_process(&mut self, connection: &mut Connection, _is_gone: bool) {
        connection.close_input();
        let until = Instant::now() + GRACE;
        while Instant::now() < until && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The process group contains the other children of a wrapper. ESRCH means that all processes have ended.
        let _ = killpg(Pid::from_raw(self.0.id() as i32), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

/// Shows whether a file was replaced or written: its device, inode, length, and time of the last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity([u64; 5]);

impl Identity {
    fn read(path: &Path) -> Result<Self> {
        let found = path.metadata().map_err(|e| Error::file(path, "looking for", e))?;
        let [seconds, nanoseconds] = [found.mtime(), found.mtime_nsec()].map(|part| part as u64);
        Ok(Self([found.dev(), found.ino(), found.size(), seconds, nanoseconds]))
    }
}

// The streams of a side's process: requests, responses, and its standard error.

/// Longest possible response, bytes.
const LONGEST_LINE: usize = 1 << 20;
/// Bytes kept from the end of a side's standard error.
const KEPT: usize = 4096;
/// Bytes of the kept end that a sentence quotes.
const QUOTED: usize = 400;

/// The driver's ends of a side's streams.
pub struct Connection {
    requests: Option<File>,
    responses: File,
    lines: Lines,
    remarks: Remarks,
}

impl Connection {
    /// A connection to the side's standard input, output and error, or to their substitutes.
    ///
    /// # Errors
    /// The standard error cannot be made non-blocking.
    pub fn new(requests: OwnedFd, responses: OwnedFd, remarks: OwnedFd) -> Result<Self> {
        let remarks = Remarks::from_pipe(remarks.into())?;
        let lines = Lines::new(LONGEST_LINE);
        Ok(Self { requests: Some(requests.into()), responses: responses.into(), lines, remarks })
    }

    /// Sends a request, without waiting for the response. Returns false if the other end is closed.
    pub fn send_request(&mut self, request: &impl Serialize) -> bool {
        self.requests.as_ref().is_some_and(|requests| send(requests, request).is_ok())
    }

    /// Closes the side's input.
    pub fn close_input(&mut self) {
        self.requests = None;
    }

    /// Reads the side's standard error, and quotes its end for a sentence.
    pub fn last_output(&mut self) -> String {
        self.remarks.read();
        self.remarks.quoted_end()
    }

    /// Quotes the end of the standard error that was read so far.
    pub fn quoted_output(&self) -> String {
        self.remarks.quoted_end()
    }

    /// Reads the side's standard error, and returns the kept bytes of its end.
    pub fn last_error_bytes(&mut self) -> &[u8] {
        self.remarks.read();
        &self.remarks.end
    }

    /// Receives the next message. While it waits, it reads the standard error.
    ///
    /// # Errors
    /// No message arrives within `patience`, the message is invalid, or a signal arrives.
    pub fn receive<T: DeserializeOwned>(&mut self, patience: Duration) -> std::result::Result<T, NoMessage> {
        let (until, signalled) = (Instant::now() + patience, signal::bell_descriptor());
        while signal::pending().is_none() {
            let error = self.remarks.pipe.as_ref().map(AsFd::as_fd);
            let beside: Vec<_> = signalled.into_iter().chain(error).collect();
            match self.lines.receive(&self.responses, until, &beside) {
                Err(NoMessage::Woken) => self.remarks.read(),
                received => return received,
            }
        }
        Err(NoMessage::Woken)
    }
}

/// A side's standard error. It is read repeatedly, so that the side never waits for a full pipe. Only its last bytes are kept;
/// a file would hold everything, and could fill the disk.
struct Remarks {
    /// The read end of the pipe; `None` once the side has closed its end.
    pipe: Option<File>,
    /// The last bytes, at most [`KEPT`].
    end: Vec<u8>,
}

impl Remarks {
    fn from_pipe(pipe: File) -> Result<Self> {
        let refused = |errno| Error::from_errno("fcntl O_NONBLOCK of a side's standard error", errno);
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(refused)?;
        Ok(Self { pipe: Some(pipe), end: Vec::new() })
    }

    /// Reads what has arrived, up to the capacity of a pipe.
    fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 64 << 10];
        match pipe.read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                self.end.extend_from_slice(&buffer[..length]);
                self.end.drain(..self.end.len().saturating_sub(KEPT));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.pipe = None,
        }
    }

    /// The last bytes that were read, quoted for a sentence.
    fn quoted_end(&self) -> String {
        let text = String::from_utf8_lossy(&self.end[self.end.len().saturating_sub(QUOTED)..]);
        let text = inert::neutralize_line(&text.split_whitespace().collect::<Vec<_>>().join(" "), QUOTED);
        if text.is_empty() { String::new() } else { format!("; it said: {text}") }
    }
}
