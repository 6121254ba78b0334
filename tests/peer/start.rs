//! The start and the end of a peer: commands that start none, and processes left behind.

use crate::place::{Place, Wire};
use crate::serves::{SYSCOST, Serves, status_field, wait_until};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::{Command, Stdio};
use syscost::peer::client::{Client, Given};
use syscost_platform::testing::print_skipped;

/// The error of a peer that these words start.
fn error_of(words: &str) -> String {
    let given = Given { address: "127.0.0.1".into(), command: Some(words.into()) };
    Client::connect(&given).err().expect("no peer").to_string()
}

#[test]
fn a_command_that_starts_no_peer_is_named_with_its_end_and_its_last_words() {
    let peer = format!("{SYSCOST} peer");
    let newer = format!("{peer} | sed -u 's/\"version\":[0-9]*/\"version\":99,\"more\":1/'");
    for (words, expected) in [
        (
            "no-such-program peer",
            &["it closed the connection (`no-such-program peer`, exit status: 127)", "not found"][..],
        ),
        (
            "echo first >&2; echo \"why\x1b[2J\" >&2; exit 3",
            &["exit status: 3)", "it said: first why\u{fffd}[2J"],
        ),
        ("kill -9 $$", &["(`kill -9 $$`, signal: 9 (SIGKILL))"]),
        (
            &format!("echo Welcome to this host; exec {peer}"),
            &["it sent `Welcome to this host`", "echo Welcome to"],
        ),
        ("head -c 2000000 /dev/zero", &["it sent a line of more than"]),
        (&newer, &["it speaks version 99 of the protocol", "run the same syscost at both ends"]),
    ] {
        let error = error_of(words);
        assert!(error.starts_with("peer 127.0.0.1: "), "{error}");
        assert!(expected.iter().all(|part| error.contains(part)), "{words}: {error}");
        assert!(!error.contains('\u{1b}'), "{error}");
    }
}

#[test]
fn a_host_by_ssh_is_asked_for_without_a_prompt() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("ssh"), "#!/bin/sh\necho \"$@\" >&2\nexit 255\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path().join("ssh"), mode).unwrap();
    let place = Place::new();
    let mut command = Command::new(SYSCOST);
    command.args(["run", "--scale", "smoke", "--peer", "me@127.0.0.1", "--", "tcp-peer/56B"]);
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("CRITERION_HOME", place.home());
    let said = String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("it said: -o BatchMode=yes -o ConnectTimeout=10 -- me@127.0.0.1 syscost peer"),
        "{said}"
    );
}

#[test]
fn on_a_terminal_it_explains_itself() {
    let Ok(terminal) = openpty(None, None) else { return print_skipped("there is no pseudo-terminal") };
    let mut command = Command::new(SYSCOST);
    let output = command.arg("peer").stdin(Stdio::null()).stdout(terminal.slave).stderr(Stdio::piped());
    let output = output.spawn().unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("`syscost run --peer HOST` starts it"), "{said}");
}

#[test]
fn a_peer_ends_with_its_input() {
    let serves = Serves::new();
    let mut client = serves.call();
    client.request_counts().unwrap();
    drop(client);
    serves.await_end();
    // The peer ends in this way also before a client has connected.
    let peer = Command::new(SYSCOST).arg("peer").stdin(Stdio::null()).output().unwrap();
    assert!(peer.status.success(), "{peer:?}");
}

/// The measuring process is killed during a run; a shell is between it and the peer.
#[test]
fn a_client_that_is_killed_leaves_no_peer() {
    let (serves, place) = (Serves::new(), Place::new());
    let words = format!("sh -c '{}'; true", serves.words());
    let mut run =
        place.command(&Wire::Loop, ["127.0.0.1", &words], "socket_round_trip/tcp-peer/64KiB", "full");
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let shell = serves.status("PPid") as u32;
    let measuring = status_field(shell, "PPid").unwrap();
    kill(Pid::from_raw(measuring as i32), Signal::SIGKILL).unwrap();
    serves.await_end();
    wait_until("the end of the shell", || status_field(shell, "VmRSS").is_none());
    kill(Pid::from_raw(run.id() as i32), Signal::SIGINT).unwrap();
    run.wait().unwrap();
}
