use super::*;
use crate::testing::value_or_skip;

fn make(bytes: u64, way: Way) -> Option<(tempfile::TempDir, PatternFile)> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = value_or_skip(PatternFile::create_filled(directory.path(), bytes, way))?;
    Some((directory, file))
}

#[test]
fn a_filled_file_has_no_name_and_each_sector_holds_its_number() {
    let (directory, file) = make(3 << 20, Way::Cached).expect("a file");
    assert_eq!(std::fs::read_dir(directory.path()).expect("read").count(), 0);
    let mut block = vec![0; 4096];
    for offset in [0, 4096, (3 << 20) - 4096] {
        file.file().read_exact_at(&mut block, offset).expect("read");
        assert!(
            is_pattern_at(&block, offset)
                && is_pattern_at(&block[512..], offset + 512)
                && !is_pattern_at(&block, offset + 512)
        );
    }
}

#[test]
fn pages_read_through_the_cache_stay_until_they_are_evicted() {
    let (_directory, file) = make(1 << 20, Way::Cached).expect("a file");
    file.file().read_exact_at(&mut vec![0; 1 << 20], 0).expect("read");
    let page = page_size();
    assert_eq!(file.count_resident_pages(0..1 << 20).expect("mincore") as u64, (1 << 20) / page);
    assert_eq!(file.count_resident_pages(page..2 * page).expect("mincore"), 1);
    if volume::filesystem_and_medium(_directory.path()).1 == volume::Medium::Disk {
        file.evict().expect("evicted");
        assert_eq!(file.count_resident_pages(0..1 << 20).expect("mincore"), 0);
    }
}

#[test]
fn a_directory_that_has_vanished_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let gone = directory.path().join("gone");
    let error = PatternFile::create_filled(&gone, 4096, Way::Cached).err().expect("refused").to_string();
    assert!(error.contains("gone/stamped-4096") && error.contains("creating"), "{error}");
}

#[test]
fn a_block_shorter_than_that_of_the_device_is_refused() {
    let Some((_directory, file)) = make(1 << 20, Way::Direct) else { return };
    if file.direct_alignment().is_some_and(|least| least > 0) {
        assert!(matches!(file.check_block_size(1), Err(Error::Missing(_))));
    }
    assert!(file.check_block_size(1 << 20).is_ok());
}

#[test]
fn a_file_that_grows_has_no_name_and_is_in_the_cache_only_where_it_was_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut file) = value_or_skip(PatternFile::create_empty(directory.path())) else { return };
    assert_eq!(std::fs::read_dir(directory.path()).expect("read").count(), 0);
    let mut piece = map_buffer(4 << 20).expect("memory");
    file.append_piece(&mut piece).expect("written");
    file.append_piece(&mut piece).expect("written");
    assert_eq!((file.bytes(), file.count_resident_pages(0..8 << 20).expect("mincore")), (8 << 20, 0));
    file.check_block(file.file().read_at(&mut piece[..4096], 4 << 20), &piece[..4096], 4 << 20)
        .expect("its own");
    assert!(
        file.count_resident_pages(4 << 20..8 << 20).expect("mincore") > 0,
        "it is read through the cache"
    );
    file.advise(4 << 20..8 << 20, PosixFadviseAdvice::POSIX_FADV_DONTNEED).expect("evicted");
    assert_eq!(file.count_resident_pages(0..8 << 20).expect("mincore"), 0);
}
