use super::*;
use crate::platform::testing::run_in_child_process;
use crate::platform::testing::value_or_skip;

pub const MIB: u64 = 1 << 20;

/// Runs it in a process of its own: a group takes in a whole process, and an idle priority is a thread's.
pub fn in_a_child(test: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().expect("a directory");
    run_in_child_process(|| test(directory.path()));
    assert_eq!(std::fs::read_dir(directory.path()).expect("read").count(), 0, "the file is gone");
}

pub fn request<'a>(directory: &'a Path, interrupted: &'a dyn Fn() -> bool) -> Request<'a> {
    let (group, time) = (Some(256 * MIB), Duration::from_secs(20));
    Request { directory, reserve: None, group, time, interrupted, progress: &|_, _| () }
}

/// A group stands in for a machine. What the process itself and the kernel take of it is a few MiB.
#[test]
fn the_cache_of_a_small_machine_is_found_by_times_and_by_mincore() {
    in_a_child(|directory| {
        let Some(answer) = value_or_skip(find_cache_size(&request(directory, &|| false))) else { return };
        assert!(
            !answer.boundary.is_fully_cached() && (205..=256).contains(&(answer.kept_bytes() / MIB)),
            "{answer:?}"
        );
        assert!(answer.file <= 384 * MIB && answer.toll.killed == 0, "{answer:?}");
    });
}

#[test]
fn an_interrupted_search_leaves_nothing() {
    in_a_child(|directory| {
        let error = find_cache_size(&request(directory, &|| true)).expect_err("interrupted");
        let is_interrupted = matches!(&error, Error::Disturbed(why) if why == "interrupted");
        assert!(is_interrupted || error.is_machine_limitation(), "{error}");
    });
}

#[test]
fn a_time_that_is_over_leaves_a_size_that_is_at_least_kept() {
    in_a_child(|directory| {
        let Some(mut file) = value_or_skip(PatternFile::create_empty(directory)) else { return };
        let mut guard = Guard::begin(0, Duration::ZERO, &|| false);
        assert!(!grow_until_evicted(&mut file, 64 * MIB, &mut guard, &|_, _| ()).expect("no error"));
        let mut guard = Guard::begin(0, Duration::from_secs(60), &|| false);
        assert!(grow_until_evicted(&mut file, 16 * MIB, &mut guard, &|_, _| ()).expect("filled"));
        assert_eq!(file.bytes(), 16 * MIB);
        // A look of mincore(2) may miss a page that is on the move: one of 4096, once in forty runs beside other tests.
        let missing = 16 * MIB - resident_bytes(&file).expect("mincore");
        assert!((missing as f64) < AGREEMENT * file.bytes() as f64, "{missing} bytes are not in the cache");
    });
}

#[test]
fn a_directory_without_room_is_missing() {
    let sentence = check_disk_space(Path::new("/"), 1 << 60, "go").expect_err("no room").to_string();
    assert!(sentence.contains("of which it may take half") && sentence.ends_with("or go"), "{sentence}");
}
