//! The command whose standard input and output are the control of a peer: `ssh HOST syscost peer`, or the user's own.

use super::client::Given;
use super::control_protocol::{Answer, Ask, DATA_PATIENCE};
use crate::error::{Error, Result};
use crate::json_line::NoMessage;
use crate::platform::process::tool::quote_for_shell;
use crate::platform::process::{self, inheritance};
use crate::platform::{cpu, inert};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use syscost_analysis::pair::Connection;

/// How long a command whose input was closed may take to end by itself: a round trip of ssh.
const GRACE: Duration = Duration::from_secs(2);
/// How long a command that has closed its output may take to have an exit status.
const MOMENT: Duration = Duration::from_millis(100);
/// Characters of a text that a sentence quotes.
const QUOTED: usize = 300;

/// A running command. Dropping it closes its input, which ends it, and kills it if it does not end.
pub(super) struct Carrier {
    name: String,
    /// The command line that the shell runs.
    words: String,
    // Dropped before the process: that closes its input.
    connection: Connection,
    process: Process,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(process::wait_within(&mut self.0, GRACE), Ok(Some(_))) {
            process::kill_process_tree(self.0.id());
            let _ = self.0.wait();
        }
    }
}

impl Carrier {
    /// Starts the command on all CPUs that this process was given, not only on the measuring one. It runs in its own process group,
    /// which an interrupt from the terminal does not reach, and is killed when this process dies.
    ///
    /// # Errors
    /// [`Error::Peer`]: it cannot be started.
    pub(super) fn start(given: &Given) -> Result<Self> {
        let words = given.words();
        let mut command = Command::new("sh");
        command.args(["-c", &words]);
        // The variables of a measuring process would turn a `syscost peer` on this machine into a measuring process.
        let own = std::env::vars_os().map(|(name, _)| name);
        own.filter(|name| name.as_bytes().starts_with(b"SYSCOST_"))
            .for_each(|name| _ = command.env_remove(name));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        process::die_with_starter(&mut command);
        inheritance::close_other_descriptors(&mut command, &[]);
        let refused = |cause| Error::peer(&given.address, format!("a shell cannot be started: {cause}"));
        let mut child = cpu::run_on_initial_cpus(|| command.spawn())?.map_err(refused)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Process(child);
        let (Some(requests), Some(answers), Some(error)) = pipes else {
            return Err(Error::Disproved("a command was started without its pipes".into()));
        };
        let connection = Connection::new(requests.into(), answers.into(), error.into())?;
        Ok(Self { name: given.address.clone(), words, connection, process })
    }

    /// The address of the peer, as the user gave it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request. Returns whether the command still reads its input.
    pub(super) fn send_request(&mut self, ask: &Ask) -> bool {
        self.connection.send_request(ask)
    }

    /// Receives the next answer.
    ///
    /// # Errors
    /// [`Error::Peer`]: the peer ends the conversation, does not answer in time, or sends an invalid line.
    pub(super) fn receive(&mut self, patience: Duration) -> Result<Answer> {
        match self.connection.receive(patience) {
            Ok(Answer::Ended(sentence)) => Err(Error::peer(&self.name, farewell(&sentence))),
            Ok(answer) => Ok(answer),
            Err(NoMessage::Late) => {
                Err(self.error(&format!("it has not answered for {} s", patience.as_secs())))
            }
            Err(why) => Err(self.error(&why.to_string())),
        }
    }

    /// The error of a broken data socket: the peer's own reason, if it has sent one.
    pub(super) fn data_error(&mut self, happened: &str) -> Error {
        match self.connection.receive(DATA_PATIENCE / 10) {
            Ok(Answer::Ended(sentence)) => Error::peer(&self.name, farewell(&sentence)),
            Err(NoMessage::Closed) => self.error(&format!("{happened}: it has died, or was stopped")),
            _ => Error::peer(&self.name, happened),
        }
    }

    /// The error of a failed control: names the command, its exit status and the end of its standard error.
    pub(super) fn error(&mut self, happened: &str) -> Error {
        let ended = match process::wait_within(&mut self.process.0, MOMENT) {
            Ok(Some(status)) => format!(", {status}"),
            _ => String::new(),
        };
        let (words, said) = (inert::neutralize_line(&self.words, QUOTED), self.connection.last_output());
        Error::peer(&self.name, format!("{happened} (`{words}`{ended}){said}"))
    }
}

impl Given {
    /// The shell words that start the peer. The options make ssh ask no questions and give up soon if a host does not answer.
    fn words(&self) -> String {
        let host = quote_for_shell(&self.address);
        let by_ssh = || format!("ssh -o BatchMode=yes -o ConnectTimeout=10 -- {host} syscost peer");
        self.command.clone().unwrap_or_else(by_ssh)
    }
}

/// The last sentence of the peer in printable form: cut to a limited length, without control characters.
fn farewell(sentence: &str) -> String {
    format!("it ended the conversation: {}", inert::neutralize_line(sentence, QUOTED))
}
