//! Readers that leave early, and streams that are closed.

use crate::place::{Place, TWO_GROUPS, alone};
use std::process::Stdio;

#[test]
fn a_closed_pipe_of_the_output_costs_no_number() {
    let place = Place::new();
    let Some(_) = place.succeeds(|| place.run(&[TWO_GROUPS, "--save-baseline", "a"])) else { return };
    let _alone = alone();
    for words in [["--save-baseline", "a"], ["--baseline", "a"]] {
        let mut command = place.run(&[TWO_GROUPS, words[0], words[1]]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!error.contains("panic"), "{words:?}: {error}");
        assert!(!place.record().to_string().contains("Broken pipe"), "{words:?}");
    }
    place.is_tidy();
}

#[test]
fn closed_streams_cost_no_number() {
    for closed in ["<&-", "2>&-", "<&- 2>&-"] {
        let place = Place::new();
        let script = format!("exec \"$@\" {closed}");
        place.end(place.run_by(&["sh", "-c", &script, "sh"], &["known_work/add", "--exact"]));
        assert_eq!(place.record()["groups"][0]["cases"][0]["id"], "known_work/add");
        place.is_tidy();
    }
}

#[test]
fn a_run_needs_no_home_directory() {
    let place = Place::new();
    place.succeeds(|| {
        let mut command = place.run(&["known_work/add", "--exact"]);
        command.env_remove("HOME").env_remove("USER").env_remove("PATH");
        command
    });
}
