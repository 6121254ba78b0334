//! A `syscost peer` that a test starts, and the kernel's facts about its process.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use syscost::peer::client::{Client, Given};
use tempfile::TempDir;

/// A time limit that a loaded machine still meets and a hanging process does not.
pub const PROMPT: Duration = Duration::from_secs(50);

/// The binary.
pub const SYSCOST: &str = env!("CARGO_BIN_EXE_syscost");

/// A directory and the command of a peer that writes its process id into a file.
pub struct Serves {
    directory: TempDir,
}

impl Serves {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn number_file(&self) -> PathBuf {
        self.directory.path().join("number")
    }

    /// The shell words that start it. The shell becomes the peer.
    pub fn words(&self) -> String {
        format!("echo $$ >{}; exec {SYSCOST} peer", self.number_file().display())
    }

    /// The peer, reached at this address of this machine.
    pub fn given_at(&self, address: &str) -> Given {
        Given { address: address.into(), command: Some(self.words()) }
    }

    pub fn call(&self) -> Client {
        Client::connect(&self.given_at("127.0.0.1")).unwrap()
    }

    /// The id of the peer's process; waits until it has started.
    pub fn number(&self) -> u32 {
        let read = || std::fs::read_to_string(self.number_file()).ok()?.trim().parse().ok();
        let mut found = None;
        wait_until("a process number", || {
            found = read();
            found.is_some()
        });
        found.unwrap()
    }

    /// A number in `/proc/PID/status`, such as the resident KiB or the parent.
    pub fn status(&self, field: &str) -> u64 {
        status_field(self.number(), field).unwrap()
    }

    /// Waits until the process of the peer has ended.
    pub fn await_end(&self) {
        let number = self.number();
        wait_until("the end of the peer", || status_field(number, "VmRSS").is_none());
    }
}

/// A number in `/proc/PID/status`; `None` if the process has ended.
pub fn status_field(process: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Waits until `holds` returns true, at most [`PROMPT`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PROMPT, "waited for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
