//! A real web server and the probe: what the probe costs it, and two configurations of it under a growing crowd.
//!
//!     experiments/web-server impact [ROUNDS]      requests a second of Apache under wrk, with and without `syscost probe`
//!     experiments/web-server rates DIR [RATE…]    response times at 40 connections a second, or others, beside probes of four rates
//!     experiments/web-server platforms DIR        Apache prefork and event under up to 250 clients, as CSV and PNG in DIR
//!
//! The second is CAMP's Figure 9: there an impact could be seen on one platform of three, here is its interval. The first asks the
//! same of a server that has no time to spare. The third is its Figure 10, which compared two operating systems by their process model: here two models of one server.
//! The clients are another host: a second network namespace, from which a pair of virtual interfaces leads to the server's. It
//! shares the machine's CPUs and caches with the server, and nothing of its network. Everything ends with the namespaces.
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

/// Whatever goes wrong, as a sentence.
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
