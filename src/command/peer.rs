//! `syscost peer`: serves the far end of the socket groups to the process that started it.

use crate::error::{Error, Result};
use crate::peer::server;
use crate::platform::output;
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;

/// Serve the far end of network cases; `syscost run --peer HOST` starts this on HOST by ssh
///
/// Requests come by the standard input, answers go to the standard output, and it ends with its input. `run --peer-command`
/// starts it in another way: `nsenter --target PID --net syscost peer`, `docker exec -i NAME syscost peer`. The measured data goes by
/// sockets of its own, at ports that the kernel chooses: a firewall between must let them pass. It is neither encrypted nor
/// signed: on a network where packets may be changed, measure through a tunnel or believe no number.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Result<ExitCode> {
    if stdout().is_terminal() {
        return Err(Error::Usage(
            "`syscost peer` serves the process that starts it, and not a terminal: `syscost run --peer HOST` starts it on HOST by ssh, \
             and `--peer-command` in another way"
                .into(),
        ));
    }
    let [input, output] = output::take_standard_streams()?;
    server::serve(input, output);
    Ok(ExitCode::SUCCESS)
}
