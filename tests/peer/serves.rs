//! A `syscost peer` of the test's own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use syscost::peer::client::{Client, Given};

/// What a machine under load still does in time, and what hangs does not.
pub const PROMPT: Duration = Duration::from_secs(50);

/// The binary, serving; it ends with this value.
pub struct Serves {
    child: Child,
    pub address: String,
    token: tempfile::NamedTempFile,
}

/// The token of every test.
pub const TOKEN: &str = "a token of the tests, as long as it must be";

/// The binary.
pub const SYSCOST: &str = env!("CARGO_BIN_EXE_syscost");

/// The token in a file that nobody else can read.
pub fn token_file() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(TOKEN.as_bytes()).unwrap();
    file
}

impl Serves {
    /// On the loopback interface, with these flags.
    pub fn with(flags: &[&str]) -> Self {
        Self::at(Command::new(SYSCOST), &[&["--listen", "127.0.0.1:0"], flags].concat())
    }

    /// Started by this command, with these flags.
    pub fn at(mut command: Command, flags: &[&str]) -> Self {
        let token = token_file();
        command.arg("peer").args(flags).arg("--token-file").arg(token.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening\t").unwrap().to_owned();
        Self { child, address, token }
    }

    pub fn given(&self) -> Given {
        Given { address: self.address.clone(), token: Some(self.token.path().to_path_buf()) }
    }

    pub fn call(&self) -> Client {
        Client::connect(&self.given()).unwrap()
    }

    /// A number of `/proc/PID/status`: resident KiB, threads.
    pub fn status(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Asks it to end, as a service manager does; whether it ended well, and how long that took.
    pub fn interrupt(mut self) -> (bool, Duration) {
        let begun = Instant::now();
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        (self.child.wait().unwrap().success(), begun.elapsed())
    }
}

impl Drop for Serves {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
