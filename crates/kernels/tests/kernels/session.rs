//! `syscost kernels session` refuses what it cannot do before it plans it.

use crate::place::Place;

/// The sentence with which it refuses; exit code 2.
fn refusal(place: &Place, words: &[&str]) -> String {
    let output = place.syscost(words).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_session_over_reboots_that_cannot_be_is_refused_before_it_is_planned() {
    let place = Place::new();
    let start = |words: &[&str]| refusal(&place, &[&["kernels", "session", "start"], words].concat());
    assert!(start(&["a b", "6.1", "6.12"]).contains("cannot name a session"));
    assert!(start(&["n", "./6.1", "./6.12", "--", "--processes", "2"]).contains("of the session itself"));
    assert!(start(&["n", "./6.1", "./6.12", "--", "nosuch"]).contains("no case matches"));
    assert!(refusal(&place, &["kernels", "session", "status", "n"]).contains("there is no session n"));
    assert!(!place.home().join("syscost/sessions").exists());
}
