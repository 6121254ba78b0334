//! `syscost kernels session` refuses an impossible session before it writes a plan.

use crate::place::Place;

/// Runs a command that must be refused with exit code 2, and returns its standard error.
fn refusal(place: &Place, words: &[&str]) -> String {
    let output = place.syscost(words).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_impossible_session_is_refused_before_a_plan_is_written() {
    let place = Place::new();
    let start = |words: &[&str]| refusal(&place, &[&["kernels", "session", "start"], words].concat());
    assert!(start(&["a b", "6.1", "6.12"]).contains("cannot name a session"));
    assert!(start(&["n", "./6.1", "./6.12", "--", "--processes", "2"]).contains("of the session itself"));
    assert!(start(&["n", "./6.1", "./6.12", "--", "nosuch"]).contains("no case matches"));
    assert!(refusal(&place, &["kernels", "session", "status", "n"]).contains("there is no session n"));
    assert!(!place.home().join("syscost/sessions").exists());
}
