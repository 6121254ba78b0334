//! A real web server and the probe: what the probe costs it, and two configurations of it under a growing crowd.
//!
//!     scripts/web-server impact [ROUNDS]      requests a second of Apache under wrk, with and without `syscost probe`
//!     scripts/web-server rates DIR [RATE…]    response times at 40 connections a second, or others, beside probes of four rates
//!     scripts/web-server platforms DIR        Apache prefork and event under up to 250 clients, as CSV and PNG in DIR
//!
//! The second is CAMP's Figure 9: there an impact could be seen on one platform of three, here is its interval. The first asks the
//! same of a server that has no time to spare. The third is its Figure 10, which compared two operating systems by their process model: here two models of one server.
//! All of it is on the loop of a network namespace, which the script makes and which everything ends with.
//!
//! Source: CAMP (LISA 2007), "Impact on an Operational System" and "Platform Evaluation".
#![allow(clippy::print_stdout, reason = "it is a program")]
#![allow(unreachable_pub, reason = "`pub` marks what a module of the example offers")]

#[path = "web_server/apache.rs"]
mod apache;
#[path = "web_server/crowd.rs"]
mod crowd;
#[path = "web_server/impact.rs"]
mod impact;
#[path = "web_server/picture.rs"]
mod picture;
#[path = "web_server/platforms.rs"]
mod platforms;
#[path = "web_server/rates.rs"]
mod rates;
#[path = "web_server/rates_picture.rs"]
mod rates_picture;
#[path = "web_server/visit.rs"]
mod visit;

use std::process::ExitCode;

/// Whatever goes wrong, as a sentence.
type Answer<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["impact"] => impact::run(10),
        ["impact", rounds] => rounds.parse().map_err(Into::into).and_then(impact::run),
        ["platforms", directory] => platforms::run(directory.as_ref()),
        ["rates", directory, ref rates @ ..] => rates::run(directory.as_ref(), rates),
        _ => Err("say `impact [ROUNDS]`, `rates DIR [RATE…]` or `platforms DIR`".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("web-server: {why}");
            ExitCode::FAILURE
        }
    }
}
