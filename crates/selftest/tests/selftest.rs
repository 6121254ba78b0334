//! The program itself: what it refuses, and that it catches a lie.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};
use syscost_platform::testing::print_skipped;

fn selftest(words: &[&str], output: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_syscost-selftest"));
    command.arg("selftest").args(words).env("SYSCOST_SCALE", "smoke").stdout(output);
    command.stderr(Stdio::piped()).output().expect("the program starts")
}

#[test]
fn a_full_standard_output_is_refused_before_any_measurement() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = selftest(&[], full.into());
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.code() == Some(1) && error.contains("the standard output: writing failed"),
        "{error}"
    );
}

#[test]
fn lies_of_one_case_are_caught_and_the_case_holds() {
    let ended = selftest(&["--claims", "--cases", "call/u64/3", "--json"], Stdio::piped());
    let rows: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    // An execution that other tasks disturb gives no ruling.
    let caught = |row: &&serde_json::Value| row["ruling"] == "caught";
    let rows = rows.as_array().unwrap();
    assert!(
        rows.iter().any(|row| caught(&row)) && rows.iter().all(|row| row["ruling"] != "believed"),
        "{rows:#?}"
    );
}

#[test]
fn an_unknown_case_is_named_in_the_error() {
    let ended = selftest(&["--claims", "--cases", "call/nowhere"], Stdio::piped());
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(2) && error.contains("call/nowhere"), "{error}");
}

#[test]
fn an_operation_that_enters_the_kernel_is_slowed_by_a_filter() {
    if !std::path::Path::new(env!("CARGO_BIN_EXE_syscost-selftest")).with_file_name("syscost").is_file() {
        return print_skipped("syscost is not built: cargo build --workspace");
    }
    let words = ["--cases", "syscall/getppid", "--effects", "50%", "--verdicts", "1", "--json"];
    let ended = selftest(&words, Stdio::piped());
    let rows: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| row["ended"].is_null()), "{rows:#?}");
}
