//! The place of a test run: its own Criterion home, and the connection to the peer, which is the loopback interface or a
//! pair of virtual interfaces between two network namespaces.

use crate::serves::SYSCOST;
use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use syscost_platform::testing::print_skipped;
use tempfile::TempDir;

/// The connection between the two ends.
pub enum Wire {
    Loop,
    Namespaces { near: Namespace, far: Namespace },
}

/// A network namespace. It lives as long as a process in it, which ends when the pipe that it reads is closed.
pub struct Namespace(Child);

pub const NEAR: &str = "10.77.0.1";
pub const FAR: &str = "10.77.0.2";
/// The same ends by IPv6.
const NEAR_6: &str = "fd77::1";
pub const FAR_6: &str = "fd77::2";

impl Namespace {
    fn new() -> Option<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().ok()?;
        let own = std::fs::read_link("/proc/self/ns/net").ok()?;
        let there = format!("/proc/{}/ns/net", child.id());
        // The process is in our namespace until it has left it.
        for _ in 0..200 {
            if std::fs::read_link(&there).is_ok_and(|namespace| namespace != own) {
                return Some(Self(child));
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        None
    }

    fn number(&self) -> String {
        self.0.id().to_string()
    }

    /// The shell words that start a peer in this namespace.
    pub fn peer_words(&self) -> String {
        format!("nsenter --net --target {} {SYSCOST} peer", self.number())
    }

    /// A command in this namespace.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.number(), program]);
        command
    }

    fn ip(&self, words: &[&str]) -> Option<()> {
        self.command("ip").args(words).output().ok()?.status.success().then_some(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Wire {
    /// Two namespaces with a pair of interfaces, MTU 1500. `None`, with a printed sentence, if they cannot be made.
    pub fn between_namespaces() -> Option<Self> {
        let wire = Self::made();
        if wire.is_none() {
            print_skipped("network namespaces need root, `unshare`, `nsenter`, `ip` and virtual interfaces");
        }
        wire
    }

    fn made() -> Option<Self> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        let pair = ["link", "add", "wire0", "netns", &near.number(), "type", "veth"];
        let other = ["peer", "name", "wire0", "netns", &far.number()];
        let made = Command::new("ip").args(pair).args(other).output().ok()?;
        made.status.success().then_some(())?;
        for (end, address) in [(&near, NEAR), (&far, FAR)] {
            end.ip(&["addr", "add", &format!("{address}/24"), "dev", "wire0"])?;
            end.ip(&["link", "set", "wire0", "mtu", "1500", "up"])?;
            // A kernel without IPv6 refuses these addresses, and the test that needs them says so.
            let address = if address == NEAR { NEAR_6 } else { FAR_6 };
            let _ = end.ip(&["-6", "addr", "add", &format!("{address}/64"), "dev", "wire0", "nodad"]);
            end.ip(&["link", "set", "lo", "up"])?;
        }
        Some(Self::Namespaces { near, far })
    }

    /// Runs `at` at the far end, on a new thread, which is the only one to enter that namespace.
    pub fn there<T: Send>(&self, at: impl FnOnce(IpAddr) -> T + Send) -> T {
        let Self::Namespaces { far, .. } = self else { return at([127, 0, 0, 1].into()) };
        let namespace = File::open(format!("/proc/{}/ns/net", far.0.id())).unwrap();
        let enters = move || {
            nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            at(FAR.parse().unwrap())
        };
        std::thread::scope(|scope| scope.spawn(enters).join().unwrap())
    }

    /// A command at the near end.
    fn here(&self, program: &str) -> Command {
        match self {
            Self::Loop => Command::new(program),
            Self::Namespaces { near, .. } => near.command(program),
        }
    }
}

/// A home for a run.
pub struct Place {
    directory: TempDir,
}

/// How a run ended.
pub struct Ended {
    pub code: Option<i32>,
    /// The standard output and the standard error.
    pub said: String,
}

impl Place {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// Criterion's directory.
    pub fn home(&self) -> PathBuf {
        self.directory.path().join("criterion")
    }

    /// `syscost run --peer` for the cases that match, against the peer at an address that these words start.
    pub fn command(&self, wire: &Wire, [address, words]: [&str; 2], cases: &str, scale: &str) -> Command {
        let mut command = wire.here(SYSCOST);
        command.args(["run", "--scale", scale, "--peer", address, "--peer-command", words, "--", cases]);
        command.env("CRITERION_HOME", self.home()).stdin(Stdio::null());
        command
    }

    /// Runs that command at smoke scale.
    pub fn run_against(&self, wire: &Wire, peer: [&str; 2], cases: &str) -> Ended {
        let output = self.command(wire, peer, cases, "smoke").output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        Ended { code: output.status.code(), said: String::from_utf8_lossy(&said).into_owned() }
    }

    /// The record of the last run.
    pub fn record(&self) -> serde_json::Value {
        let runs = std::fs::read_dir(self.home().join("syscost/runs")).unwrap();
        let mut files: Vec<_> = runs.map(|file| file.unwrap().path()).collect();
        files.sort();
        serde_json::from_slice(&std::fs::read(files.last().unwrap()).unwrap()).unwrap()
    }

    /// Whether neither the record nor the files of Criterion hold a number.
    pub fn has_no_number(&self) -> bool {
        fn files(directory: &std::path::Path) -> Vec<PathBuf> {
            let entries =
                std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
            entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
        }
        let saved = files(&self.home()).into_iter().any(|path| path.ends_with("estimates.json"));
        !saved && !self.record().to_string().contains("\"measured\":")
    }
}
