//! A real web server and the probe: the cost of the probe, and two configurations of the server under a growing number of
//! clients.
//!
//!     experiments/web-server impact [ROUNDS]      requests a second of Apache under wrk, with and without `syscost probe`
//!     experiments/web-server rates DIR [RATE…]    response times at 40 connections a second, or others, beside probes of four rates
//!     experiments/web-server platforms DIR        Apache prefork and event under up to 250 clients, as CSV and PNG in DIR
//!
//! `rates` is CAMP's Figure 9, in which one platform of three showed an impact; here the impact has an interval. `impact`
//! asks the same of a server that has no time to spare. `platforms` is CAMP's Figure 10, which compared two operating systems
//! by their process model; here two models of one server are compared. The clients are another host: a second network
//! namespace, connected to the server's by a pair of virtual interfaces. It shares the machine's CPUs and caches with the
//! server, but not its network. Everything ends with the namespaces.
//!
//! Source: CAMP (LISA 2007), "Impact on an Operational System" and "Platform Evaluation".
#![allow(clippy::print_stdout, reason = "it is a program")]
#![allow(unreachable_pub, reason = "`pub` marks what a module of the example offers")]

mod apache;
mod crowd;
mod impact;
mod other_host;
mod picture;
mod platforms;
mod rates;

use other_host::OtherHost;
use std::process::ExitCode;
use std::sync::Arc;

/// A result whose error is a sentence.
type Answer<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("web-server: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Answer {
    let clients = OtherHost::connect;
    match *words {
        ["impact"] => impact::run(10, &clients()?),
        ["impact", rounds] => impact::run(rounds.parse()?, &clients()?),
        ["platforms", directory] => platforms::run(directory.as_ref(), &Arc::new(clients()?)),
        ["rates", directory, ref rates @ ..] => rates::run(directory.as_ref(), rates, &clients()?),
        _ => Err("say `impact [ROUNDS]`, `rates DIR [RATE…]` or `platforms DIR`".into()),
    }
}
