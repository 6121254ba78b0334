//! The command of a side: a binary, the words before it, and the check that it is still the same file.

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

/// Time that a side has to remove its scratch files after its input was closed.
const GRACE: Duration = Duration::from_millis(500);

/// A build that can be linked again.
pub trait Relink: std::fmt::Debug {
    /// The program of this link, made if it is not there yet.
    ///
    /// # Errors
    /// It cannot be linked.
    fn link(&self, number: u32) -> Result<PathBuf>;
}

/// How a side is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its name in sentences: `A` or `B`.
    pub label: &'static str,
    /// A link to the binary whose path is as long as the other side's: a longer path would shift the stack.
    program: PathBuf,
    /// The file behind the link when the comparison began.
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
    /// A side that runs `binary`, by a link in `directory`, behind the shell words of `wrap`.
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

    /// The same side, whose processes run the links of its build that are drawn for them.
    pub fn with_links(self, links: impl Relink + 'static) -> Self {
        Self { links: Some(Rc::new(links)), ..self }
    }

    /// The same side, with this variable in its environment.
    pub fn with_variable(self, name: &'static str, value: String) -> Self {
        Self { variable: Some((name, value)), ..self }
    }

    /// Makes the link that is drawn the program of the side.
    ///
    /// # Errors
    /// It cannot be linked, or the binary of the side is not as before.
    fn choose_program(&self, draw: Draw) -> Result<()> {
        match (&self.links, draw.link) {
            (Some(links), Some(number)) => point_to(&self.program, &links.link(number)?),
            (Some(_), None) => point_to(&self.program, &self.binary),
            (None, _) => self.check_binary_unchanged(),
        }
    }

    /// Starts it with the CPU affinity that this process had before it moved aside, and with pipes for all three streams.
    ///
    /// # Errors
    /// Its binary is not as before, or cannot be started.
    fn spawn_child(&self, draw: Draw, aside: &Aside) -> Result<Child> {
        self.choose_program(draw)?;
        let mut command = self.side_command(draw.padding);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = aside.run_with_former_affinity(|| command.spawn())?;
        spawned.map_err(|e| self.start_error(e))
    }

    /// The error of a side that cannot be started. A file that is no program was named by the user.
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

    /// Whether the link still leads to the same file: a build in the middle replaces it, and the pairs after it would be of
    /// another program than those before.
    ///
    /// # Errors
    /// It does not.
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

    /// The command, with an environment variable of random length: each process must draw its own stack position, instead
    /// of all processes of a side sharing one.
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

/// Makes `program` a symbolic link to this file, in place of one that is there.
fn point_to(program: &Path, file: &Path) -> Result<()> {
    let fresh = program.with_extension("new");
    let pointed = std::os::unix::fs::symlink(file, &fresh).and_then(|()| std::fs::rename(&fresh, program));
    pointed.map_err(|e| Error::file(program, "linking", e))
}

/// A process of this machine. It reads by itself how long it waited for its CPU.
struct Process(Child);

impl SideProcess for Process {
    fn exit_description(&mut self) -> String {
        match self.0.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "it closed its output".into(),
        }
    }

    /// Closes its input, which ends it; after [`GRACE`] its whole process group is killed.
    fn end_process(&mut self, connection: &mut Connection, _is_gone: bool) {
        connection.close_input();
        let until = Instant::now() + GRACE;
        while Instant::now() < until && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Its process group contains a wrapper's other children. ESRCH means that all have ended.
        let _ = killpg(Pid::from_raw(self.0.id() as i32), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

/// What shows that a file was replaced or written: its device and inode, its length, and when it was last written.
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
/// Bytes of them that a sentence quotes.
const QUOTED: usize = 400;

/// The driver's ends of a side's streams.
pub struct Connection {
    requests: Option<File>,
    responses: File,
    lines: Lines,
    remarks: Remarks,
}

impl Connection {
    /// A connection of the side's standard input, output and error, or of what takes their place.
    ///
    /// # Errors
    /// The kernel refuses to read the last without waiting.
    pub fn new(requests: OwnedFd, responses: OwnedFd, remarks: OwnedFd) -> Result<Self> {
        let remarks = Remarks::from_pipe(remarks.into())?;
        let lines = Lines::new(LONGEST_LINE);
        Ok(Self { requests: Some(requests.into()), responses: responses.into(), lines, remarks })
    }

    /// Sends a request, without waiting for the response. False if the other end is closed.
    pub fn send_request(&mut self, request: &impl Serialize) -> bool {
        self.requests.as_ref().is_some_and(|requests| send(requests, request).is_ok())
    }

    /// Closes the side's input.
    pub fn close_input(&mut self) {
        self.requests = None;
    }

    /// The end of its standard error, as part of a sentence.
    pub fn last_output(&mut self) -> String {
        self.remarks.read();
        self.remarks.quoted_end()
    }

    /// The same of what was read so far.
    pub fn quoted_output(&self) -> String {
        self.remarks.quoted_end()
    }

    /// The end of its standard error as it is.
    pub fn last_error_bytes(&mut self) -> &[u8] {
        self.remarks.read();
        &self.remarks.end
    }

    /// Receives the next message. Meanwhile the standard error is read.
    ///
    /// # Errors
    /// None comes within this time, or a signal does.
    pub fn receive<T: DeserializeOwned>(&mut self, patience: Duration) -> std::result::Result<T, NoMessage> {
        let (until, bell) = (Instant::now() + patience, signal::bell_descriptor());
        while signal::pending().is_none() {
            let error = self.remarks.pipe.as_ref().map(AsFd::as_fd);
            let beside: Vec<_> = bell.into_iter().chain(error).collect();
            match self.lines.receive(&self.responses, until, &beside) {
                Err(NoMessage::Woken) => self.remarks.read(),
                received => return received,
            }
        }
        Err(NoMessage::Woken)
    }
}

/// A side's standard error. It is read to the end again and again, so that the side never waits for a full pipe, and only
/// its last words are kept: a file would hold everything, and could fill the disk.
struct Remarks {
    /// `None` once the side has closed it.
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

    /// The end of it, as part of a sentence.
    fn quoted_end(&self) -> String {
        let text = String::from_utf8_lossy(&self.end[self.end.len().saturating_sub(QUOTED)..]);
        let text = inert::neutralize_line(&text.split_whitespace().collect::<Vec<_>>().join(" "), QUOTED);
        if text.is_empty() { String::new() } else { format!("; it said: {text}") }
    }
}
