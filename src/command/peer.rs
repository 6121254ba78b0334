//! `syscost peer`: serves the far end of the socket groups until it is interrupted.

use super::page;
use crate::error::{Error, Result};
use crate::peer::control_protocol::Limits;
use crate::peer::proof::Token;
use crate::peer::server::Server;
use crate::platform::host_port::resolve_addresses;
use crate::platform::signal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Serve the other end, so that a syscost elsewhere can measure the way between
///
/// Serves `syscost run --peer HOST:PORT` until it is interrupted. On the loopback interface everybody on this machine
/// may use it; to listen elsewhere it demands a token, which both ends must have: that of `--token-file`, or one
/// that it draws and prints once. A client must prove that it has the token before it is served. The proof stands
/// at the beginning alone, and nothing is encrypted: on a network where packets may be changed, measure through a tunnel
/// or believe no number. Data sockets are at ports that the kernel chooses: a firewall between must let them pass.
#[derive(clap::Args)]
pub struct Args {
    /// Address to listen at, with or without a port: 192.0.2.7, `[::1]:7470`, fe80::1%eth0
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1")]
    listen: String,
    /// File with the token, readable by its owner alone
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Clients at a time
    #[arg(long, value_name = "N", default_value_t = Limits::default().clients as u32, value_parser = clap::value_parser!(u32).range(1..=64))]
    clients: u32,
    /// Bytes that one client may send
    #[arg(long, value_name = "N", default_value_t = Limits::default().bytes)]
    bytes: u64,
    /// Seconds that one client may stay
    #[arg(long, value_name = "N", default_value_t = Limits::default().time.as_secs())]
    seconds: u64,
    /// Seconds that one may stay without asking or sending anything
    #[arg(long, value_name = "N", default_value_t = Limits::default().idle.as_secs())]
    idle: u64,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    signal::watch_signals()?;
    let at = args.listen_address()?;
    let (token, generated) = args.load_token(at)?;
    let server = Server::bind(at, token, args.limits())?;
    let token = generated.map(|text| format!("token\t{text}\n")).unwrap_or_default();
    page::write(&format!("{token}listening\t{}\n", server.address()))?;
    server.serve(|| signal::pending().is_some(), page::write_to_stderr)?;
    if let Some(signal) = signal::pending() {
        page::write_to_stderr(&format!("ended by {signal}"));
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn listen_address(&self) -> Result<SocketAddr> {
        let found = resolve_addresses(&self.listen);
        found.map(|all| all[0]).map_err(|why| Error::Usage(format!("--listen {}: {why}", self.listen)))
    }

    /// The token, and its text if it was generated.
    fn load_token(&self, at: SocketAddr) -> Result<(Option<Token>, Option<String>)> {
        match &self.token_file {
            Some(file) => Ok((Some(Token::read(file)?), None)),
            None if at.ip().to_canonical().is_loopback() => Ok((None, None)),
            None => Token::generate().map(|(token, text)| (Some(token), Some(text))),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            clients: self.clients as usize,
            bytes: self.bytes,
            time: Duration::from_secs(self.seconds),
            idle: Duration::from_secs(self.idle),
        }
    }
}
