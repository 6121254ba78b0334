//! Outputs that cannot be written: each is refused in one sentence before anything is measured.

use crate::limit::ordinary;
use crate::place::{Ended, Place, SYSCOST};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Asserts these words on the standard error, no output, no stored file, and no time for a measurement.
fn assert_refused_early(place: &Place, ended: &Ended, codes: &[i32], words: &[&str]) {
    assert!(ended.code.is_some_and(|code| codes.contains(&code)), "{ended:?}");
    assert!(ended.error.starts_with("syscost: "), "{ended:?}");
    for word in words {
        assert!(ended.error.contains(word), "{word}: {ended:?}");
    }
    assert!(ended.output.is_empty() && place.files("estimates.json").is_empty(), "{ended:?}");
    assert!(place.files(".syscost").is_empty(), "{ended:?}");
}

/// A shell that starts `syscost` with these words and with a redirection.
fn shell(place: &Place, redirection: &str, words: &[&str]) -> Command {
    let mut command = place.program("sh");
    command.args(["-c", &format!("exec \"$@\" {redirection}"), "sh", SYSCOST]).args(words);
    command
}

#[test]
fn a_standard_output_that_takes_nothing_is_refused_by_every_command_that_measures() {
    let place = Place::new();
    let add = "known_work/add";
    for redirection in [">/dev/full", ">&-"] {
        for words in [&["run", add][..], &["record", add], &["ab", add], &["file-cache"]] {
            let ended = place.end(shell(&place, redirection, words));
            assert_refused_early(&place, &ended, &[1], &["the standard output: writing failed"]);
        }
        for words in [&["list"][..], &["explain", "call"], &["--help"], &["run", "--help"]] {
            let ended = place.end(shell(&place, redirection, words));
            assert!(
                ended.code != Some(0) && ended.error.contains("the standard output"),
                "{words:?}: {ended:?}"
            );
        }
        // Exit code 1 would mean that a case became slower.
        let gate = ["gate", add, "--a-bin", SYSCOST];
        assert_refused_early(
            &place,
            &place.end(shell(&place, redirection, &gate)),
            &[125],
            &["the standard output"],
        );
    }
}

#[test]
fn a_closed_pipe_of_the_output_is_no_error_of_the_run() {
    let place = Place::new();
    for words in [&["list"][..], &["run", "known_work/add", "--exact"], &["explain", "call"]] {
        let mut command = place.syscost(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some() && !error.contains("standard output"), "{words:?}: {error}");
    }
}

#[test]
fn a_file_or_a_directory_that_cannot_be_written_is_refused_whatever_command_it_is_given_to() {
    let place = Place::new();
    std::fs::write(place.path().join("file"), "").unwrap();
    let inside = "file/x";
    let add = "known_work/add";
    for words in [
        &["run", add, "--home", inside][..],
        &["run", add, "--dir", inside],
        &["run", add, "--dir", "nowhere"],
        &["record", add, "--home", inside],
        &["record", add, "--dir", inside],
        &["record", add, "--output", inside],
        &["ab", add, "--home", inside],
        &["gate", add, "--a-bin", SYSCOST, "--summary", inside],
        &["gate", add, "--a-bin", SYSCOST, "--home", inside],
    ] {
        let ended = place.end(place.syscost(words));
        let named = words[words.len() - 1].trim_end_matches("/x");
        assert_refused_early(&place, &ended, &[1, 2, 125], &[named]);
    }
}

#[test]
fn what_another_user_owns_is_refused_to_an_ordinary_one() {
    let Some(ordinary) = ordinary() else { return };
    let place = Place::new();
    let locked = place.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o555)).unwrap();
    let locked = locked.to_str().unwrap();
    for words in [["known_work/add", "--home", locked], ["known_work/add", "--dir", locked]] {
        let ended = place.end(place.run_by(&ordinary, &words));
        assert_refused_early(&place, &ended, &[2], &[locked, "Permission denied"]);
    }
    // Criterion's directory of the case belongs to another user, and the home does not.
    let case = place.home().join("known_work/add/new");
    std::fs::create_dir_all(&case).unwrap();
    std::fs::set_permissions(place.home(), PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::set_permissions(&case, PermissionsExt::from_mode(0o555)).unwrap();
    let ended = place.end(place.run_by(&ordinary, &["known_work/add", "--exact"]));
    assert_refused_early(&place, &ended, &[2], &["known_work/add/new", "Permission denied"]);
}

#[test]
fn a_directory_of_files_may_have_a_name_that_is_no_text() {
    let place = Place::new();
    let name = OsString::from_vec(vec![b'd', 0xff]);
    std::fs::create_dir(place.path().join(&name)).unwrap();
    let run = || {
        let mut command = place.run(&["known_work/add", "--exact", "--dir"]);
        command.arg(&name);
        command
    };
    let Some(_) = place.succeeds(run) else { return };
    assert!(place.home().join("known_work/add/base/estimates.json").is_file());
}

#[test]
fn a_summary_that_was_only_looked_at_is_not_there() {
    let place = Place::new();
    let ended = place.end(place.syscost(&["gate", "known_work/add", "--summary", "summary.md"]));
    assert!(ended.code == Some(2) && !place.path().join("summary.md").exists(), "{ended:?}");
}
