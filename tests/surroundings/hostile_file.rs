//! Pipes, links and devices where a plain file or a directory of ours is expected. None of them makes a command wait,
//! and none is replaced or removed.

use crate::place::{Place, SYSCOST, files};
use crate::stored;
use nix::sys::stat::Mode;
use std::path::Path;

fn pipe(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap();
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn a_file_named_like_a_scratch_directory_is_left_alone() {
    let place = Place::new();
    let treasure = place.path().join("treasure");
    std::fs::create_dir_all(treasure.join("deep")).unwrap();
    let [fifo, link, left] =
        ["fifo", "link", "left"].map(|end| place.temporary().join(format!("syscost-scratch-4194305-{end}")));
    pipe(&fifo);
    std::os::unix::fs::symlink(&treasure, &link).unwrap();
    std::fs::create_dir_all(left.join("deep")).unwrap();
    let ended = place.end(place.run(&["known_work/add", "--exact"]));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert!(is_there(&fifo) && is_there(&link) && treasure.join("deep").exists() && !left.exists());
}

#[test]
fn a_pipe_among_the_runs_is_named_and_does_not_block() {
    let place = Place::new();
    let kept = place.home().join("syscost");
    let run = kept.join("runs/20261120T134405-1.json");
    pipe(&run);
    pipe(&kept.join("records/main.syscost"));
    pipe(&kept.join("records/.syscost-4194305-half"));
    pipe(&kept.join("baselines/flag.json"));
    const WHAT: &str = "expected a plain file, found a FIFO";
    place.end(place.syscost(&["runs"])).says(2, &["20261120T134405-1\tdamaged\t", WHAT]);
    place.end(place.syscost(&["report"])).refuses(&["20261120T134405-1.json", WHAT]);
    place.end(place.syscost(&["baseline", "list"])).says(2, &["main", "flag", WHAT]);
    for words in [
        &["baseline", "import", run.to_str().unwrap()][..],
        &["report", "main"],
        &["baseline", "save", "new"],
        &["compare", "main", "flag"],
        &["report", "flag"],
        &["run", "known_work/add", "--predictions", run.to_str().unwrap()],
    ] {
        place.end(place.syscost(words)).refuses(&[WHAT]);
    }
    assert!(is_there(&kept.join("records/.syscost-4194305-half")));
}

#[test]
fn an_output_is_a_plain_file_too() {
    let place = Place::new();
    let run = stored::save(&place, stored::NAME);
    let fifo = place.path().join("out");
    pipe(&fifo);
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&run, &link).unwrap();
    for output in [&fifo, &link].map(|path| path.to_str().unwrap()) {
        let words = ["report", run.to_str().unwrap(), "--output", output];
        place.end(place.syscost(&words)).says(2, &[output, "expected a plain file"]);
    }
    assert!(is_there(&fifo) && !fifo.is_file() && link.is_symlink());
}

#[test]
fn an_output_that_is_closed_or_full_is_no_success() {
    let place = Place::new();
    stored::save(&place, stored::NAME);
    for (stream, why) in [(">&-", "Bad file descriptor"), (">/dev/full", "No space left")] {
        for words in ["runs", "report", "list", "--version", "help limits"] {
            let script = format!("exec \"$0\" {words} {stream}");
            let mut command = place.program("sh");
            command.args(["-c", &script, SYSCOST]);
            place.end(command).says(1, &["syscost: the standard output: writing failed", why]);
        }
    }
}

#[test]
fn a_limit_of_file_size_is_an_error_and_leaves_nothing() {
    let place = Place::new();
    let run = stored::save(&place, stored::NAME);
    let before = files(place.path(), "");
    for words in [
        "report --output out",
        "baseline save new",
        "baseline import $1 --name new",
        "baseline export $1 out",
    ] {
        let mut command = place.program("sh");
        command
            .args(["-c", &format!("ulimit -f 0; exec \"$0\" {words} >/dev/null 2>told"), SYSCOST])
            .arg(&run);
        let status = command.status().unwrap();
        // The output exceeds the limit, too.
        assert_eq!(status.code(), Some(1), "{words}: {status}");
        std::fs::remove_file(place.path().join("told")).unwrap();
        assert_eq!(files(place.path(), ""), before, "{words}");
    }
}
