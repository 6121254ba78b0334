use super::*;
use crate::kit::runnable::{test_clock, test_place};
use crate::platform::testing::print_skipped;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

fn subject(way: ReadBlock) -> (tempfile::TempDir, Box<dyn Subject>) {
    let directory = tempfile::tempdir().expect("a directory");
    let subject =
        block_read_set_up(way, MIB, 4096)(&test_place(directory.path(), Scale::Smoke)).expect("set up");
    (directory, subject)
}

#[test]
fn each_way_reads_round_and_round() {
    for (name, _, way, _) in WAYS {
        let (_directory, mut subject) = subject(way);
        for n in [1, 100, 300] {
            subject.run(n, &test_clock()).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn a_stale_block_and_a_short_block_are_errors() {
    let stale: ReadBlock = |reader, _| Ok(reader.block);
    let (_directory, mut stale) = subject(stale);
    let error = stale.run(2, &test_clock()).expect_err("nothing came").to_string();
    assert!(error.contains("not what was written at 4096"), "{error}");
    // Reads become short only after set-up, which reads the file too.
    static IS_SHORT: AtomicBool = AtomicBool::new(false);
    let (_directory, mut short) =
        subject(|reader, _| Ok(if IS_SHORT.load(SeqCst) { 1 } else { reader.block }));
    IS_SHORT.store(true, SeqCst);
    let error = short.run(1, &test_clock()).expect_err("short").to_string();
    assert!(error.contains("1 of 4096 bytes"), "{error}");
}

#[test]
fn a_file_that_left_the_cache_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = PatternFile::create_filled(directory.path(), MIB, Way::Cached).expect("a file");
    if file.count_resident_pages(0..MIB).expect("mincore") > 0 {
        return print_skipped("a file system in memory evicts nothing");
    }
    let other = PatternFile::create_filled(directory.path(), 4096, Way::Cached).expect("a file");
    let mapped = Mapped::new(&other).expect("mapped");
    let buffer = pattern_file::map_buffer(4096).expect("memory");
    let reader = Reader { file, mapped, other, buffer, block: 4096, at: 0, is_in_other: false };
    let error = reader.check_all_cached().expect_err("evicted").to_string();
    assert!(error.contains(&format!("0 of the file's {} pages", MIB / page_size())), "{error}");
}
