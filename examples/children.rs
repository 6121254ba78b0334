//! A bench target whose operations start children that fail in different ways: each failure ends its own case with a
//! sentence, no child is left behind, and the exit code is 1.
//!
//!     cargo run --release --example children -- --bench

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;
use syscost::kit::task;
use syscost::kit::watchdog::Watchdog;
use syscost::{Case, Claim, Group, SetUp, Subject};
use syscost::{Error, Result};
use syscost_platform::child::{Child, describe_raw_status};

/// Long enough for a child that ends by itself on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);

fn cases() -> Vec<Case> {
    vec![
        case("panics", || std::panic::resume_unwind(Box::new("a child"))),
        case("out-of-memory", out_of_memory),
        case("wrong-address", || {
            for _ in 0..2 {
                let _ = nix::sys::signal::raise(nix::sys::signal::SIGSEGV);
            }
        }),
        case("hangs", hang),
        timed("hangs-while-timed", hang),
        case("ends", || ()),
    ]
}

fn hang() {
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn out_of_memory() {
    use nix::sys::resource::{Resource, setrlimit};
    if setrlimit(Resource::RLIMIT_AS, 1 << 20, 1 << 20).is_ok() {
        black_box(Vec::<u8>::with_capacity(black_box(1 << 30)));
    }
}

/// A child that is waited for with a time limit, outside of the measured part.
fn case(name: &str, body: fn()) -> Case {
    let set_up: SetUp = Box::new(move |_| {
        Ok(Box::new(move |n: u64, clock: &syscost::clock::Clock| {
            let mut sum = syscost::clock::Ticks(0);
            for _ in 0..n {
                let mut child = Err(Error::Child("it was not started".into()));
                sum += clock.time(|| child = Child::start(body));
                child?.wait_for_success(PATIENCE)?;
            }
            Ok(sum)
        }) as Box<dyn Subject>)
    });
    Case::new(name, format!("a child that {name}"), set_up).claim(Claim::Checked("each child ended well"))
}

/// A child that is waited for in the measured part: a watchdog ends the wait.
fn timed(name: &str, body: fn()) -> Case {
    let set_up: SetUp = Box::new(move |_| {
        let watchdog = Watchdog::for_this_thread(PATIENCE)?;
        Ok(Box::new(move |n: u64, clock: &syscost::clock::Clock| {
            let mut ended = Ok(());
            let ticks = clock.time(|| ended = (0..n).try_for_each(|_| one(&watchdog, body)));
            watchdog.end_wait();
            ended.map(|()| ticks)
        }) as Box<dyn Subject>)
    });
    Case::new(name, format!("a child that {name}"), set_up).claim(Claim::Checked("each child ended well"))
}

fn one(watchdog: &Watchdog, body: fn()) -> Result<()> {
    let child = Child::start(body)?.into_pid().as_raw();
    watchdog.watch_child(child);
    let mut status = 0;
    task::reap(child, &mut status);
    describe_raw_status(status)
        .map_or(Ok(()), |how| Err(Error::Child(watchdog.take_expired_sentence().unwrap_or(how))))
}

fn main() -> ExitCode {
    syscost::harness::main(&[Group::new("children", include_str!("children.rs"), cases)])
}
