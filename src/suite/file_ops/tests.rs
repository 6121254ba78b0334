use super::*;
use crate::kit::runnable::test_clock;

#[test]
fn every_operation_leaves_the_directory_as_it_was() {
    let scratch = tempfile::tempdir().expect("a directory");
    for (name, _, operate, _) in OPERATIONS {
        let directory = Directory::with_entries(scratch.path(), 10).expect("made");
        let path = directory.path.clone();
        let mut subject = operation_subject(directory, operate);
        for n in [1, 2, 3] {
            subject.run(n, &test_clock()).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        drop(subject);
        assert_eq!(count_entries(&path).expect("read"), 10, "{name}");
    }
}

#[test]
fn an_existing_file_cannot_be_created_and_is_named() {
    let scratch = tempfile::tempdir().expect("a directory");
    let directory = Directory::with_entries(scratch.path(), 1).expect("made");
    std::fs::write(directory.path.join("fresh"), "").expect("written");
    let error = operation_subject(directory, Directory::time_create)
        .run(1, &test_clock())
        .expect_err("there")
        .to_string();
    assert!(error.contains("entries-1/fresh: creating failed"), "{error}");
}

#[test]
fn an_error_names_the_path_in_a_vanished_directory() {
    let scratch = tempfile::tempdir().expect("a directory");
    for (name, _, operate, _) in OPERATIONS.into_iter().filter(|(name, ..)| *name != "fsync") {
        let directory = Directory::with_entries(scratch.path(), 1).expect("made");
        let path = directory.path.clone();
        let mut subject = operation_subject(directory, operate);
        std::fs::remove_dir_all(path).expect("removed");
        let error = subject.run(1, &test_clock()).expect_err(name).to_string();
        assert!(error.contains("entries-1/"), "{name}: {error}");
    }
}

#[test]
fn another_file_of_the_same_name_is_noticed() {
    let scratch = tempfile::tempdir().expect("a directory");
    for operate in [Directory::time_stat as Operate, Directory::time_open] {
        let directory = Directory::with_entries(scratch.path(), 1).expect("made");
        let entry = directory.path.join("entry-0");
        std::fs::write(scratch.path().join("other"), "").expect("written");
        std::fs::rename(scratch.path().join("other"), &entry).expect("replaced");
        assert!(operation_subject(directory, operate).run(1, &test_clock()).is_err());
    }
}

#[test]
fn fewer_bytes_written_than_overwritten_are_an_error() {
    let mut delta = Delta::default();
    assert!(claim_bytes_written(&delta, 1).is_err());
    delta.counted.device_written = Some(4095);
    assert!(claim_bytes_written(&delta, 1).is_err());
    delta.counted.device_written = Some(4096);
    assert!(claim_bytes_written(&delta, 1).is_ok());
}
