use super::operation::file_name;
use super::*;
use crate::kit::runnable::test_clock;

#[test]
fn every_name_is_listed_in_every_batch() {
    let scratch = tempfile::tempdir().expect("a directory");
    for names in [0, 1, 10, ONE_BUFFER, 3 * ONE_BUFFER] {
        let mut listing = Listing::create(scratch.path(), names).expect("made");
        for n in [1, 2, 3] {
            listing.run(n, &test_clock()).unwrap_or_else(|error| panic!("{names}: {error}"));
        }
    }
}

#[test]
fn an_existing_directory_is_used_again() {
    let scratch = tempfile::tempdir().expect("a directory");
    Listing::create(scratch.path(), 10).expect("made");
    assert!(Listing::create(scratch.path(), 10).is_ok());
}

#[test]
fn missing_and_unexpected_names_are_noticed() {
    let scratch = tempfile::tempdir().expect("a directory");
    let directory = scratch.path().join("names-10");
    let mut listing = Listing::create(scratch.path(), 10).expect("made");
    let mut said = |batch: &str| listing.run(1, &test_clock()).expect_err(batch).to_string();
    std::fs::remove_file(directory.join(file_name(7))).expect("removed");
    assert!(said("one has gone").contains("name-000007 was not listed"));
    std::fs::write(directory.join(file_name(7)), "").expect("written");
    for stranger in ["name-000010", "name-7", "other"] {
        std::fs::write(directory.join(stranger), "").expect("written");
        assert!(said(stranger).contains(&format!("{stranger} was listed")));
        std::fs::remove_file(directory.join(stranger)).expect("removed");
    }
}

#[test]
fn more_names_than_one_buffer_holds_are_refused() {
    let scratch = tempfile::tempdir().expect("a directory");
    let listing = Listing::create(scratch.path(), 3 * ONE_BUFFER).expect("made");
    let error = listing.check_one_buffer().expect_err("96 KiB").to_string();
    assert!(error.contains("3000 names by"), "{error}");
}
