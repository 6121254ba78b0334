//! Debian's Apache with its own configuration, port and files, which are removed when the server is dropped.

use super::other_host::OtherHost;
use crate::Answer;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Size of the requested page, bytes: a small picture.
const PAGE: usize = 20_000;
/// The longest wait for its start, which takes a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the server divides its work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// One process per connection.
    Prefork,
    /// A few processes of many threads.
    Event,
}

impl Model {
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefork => "prefork",
            Self::Event => "event",
        }
    }

    /// The limits: in either model, as many simultaneous connections as there are clients.
    fn limits(self) -> &'static str {
        match self {
            Self::Prefork => "StartServers 5\nServerLimit 256\nMaxRequestWorkers 256\n",
            Self::Event => "StartServers 2\nServerLimit 11\nThreadsPerChild 25\nMaxRequestWorkers 275\n",
        }
    }
}

/// A running server, which ends when this value is dropped.
pub struct Apache {
    child: Child,
    pub address: SocketAddr,
    _files: TempDir,
}

impl Apache {
    /// Starts the server, through the command `by` if it is not empty.
    pub fn start(model: Model, by: &[&str]) -> Answer<Self> {
        let files = tempfile::tempdir()?;
        // Apache's workers run as another user, and must be able to read the page.
        std::fs::set_permissions(files.path(), PermissionsExt::from_mode(0o755))?;
        let root = files.path().display();
        std::fs::create_dir(files.path().join("pages"))?;
        std::fs::write(files.path().join("pages/page"), "x".repeat(PAGE))?;
        // The port stays free, since no other process is in this namespace.
        let address = TcpListener::bind((OtherHost::NEAR.1, 0))?.local_addr()?;
        let (name, limits) = (model.name(), model.limits());
        let text = format!(
            "ServerRoot {root}\nServerName localhost\nListen {address}\nPidFile {root}/pid\nDefaultRuntimeDir {root}\n\
             LoadModule mpm_{name}_module /usr/lib/apache2/modules/mod_mpm_{name}.so\n\
             LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
             User nobody\nGroup nogroup\nErrorLog {root}/errors\nDocumentRoot {root}/pages\nKeepAlive On\n{limits}"
        );
        let configuration = files.path().join("apache.conf");
        std::fs::write(&configuration, text)?;
        let words = [by, &["apache2"]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("-f").arg(&configuration).args(["-D", "FOREGROUND"]);
        // The child gets a group of its own, since Apache signals its whole group on SIGTERM.
        let child = command.stdin(Stdio::null()).process_group(0).spawn()?;
        let mut server = Self { child, address, _files: files };
        server.is_up()?;
        Ok(server)
    }

    fn is_up(&mut self) -> Answer {
        let begun = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("apache2 ended with {status}").into());
            }
            if begun.elapsed() > PATIENCE {
                return Err("apache2 does not answer".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        // On SIGTERM it ends its workers first; remaining processes end with the namespace.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
