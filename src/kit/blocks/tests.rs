use super::*;
use crate::kit::runnable::test_place;
use crate::platform::testing::print_skipped;
use std::path::Path;

/// A temporary directory on a disk; `None` if there is no disk that tests can write to.
fn directory_on_disk() -> Option<tempfile::TempDir> {
    let directory = tempfile::tempdir().expect("a directory");
    match DISK.check_place(&test_place(directory.path(), Scale::Smoke)) {
        Ok(()) => Some(directory),
        Err(why) => {
            print_skipped(&why.to_string());
            None
        }
    }
}

#[test]
fn a_file_system_in_memory_is_refused_with_advice() {
    let shared = Path::new("/dev/shm");
    let directory = match tempfile::tempdir_in(shared) {
        Ok(directory) if volume::filesystem_and_medium(shared).1 == Medium::Memory => directory,
        _ => return print_skipped("/dev/shm is no file system in memory that can be written"),
    };
    let sentence = DISK.check_place(&test_place(directory.path(), Scale::Smoke)).expect_err("no device");
    assert!(sentence.contains("which is memory") && sentence.contains("--dir"), "{sentence}");
}

/// A file system may accept O_DIRECT and ignore it; the kernel's accounting and the page cache then show cached reads.
#[test]
fn a_read_served_by_the_page_cache_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let cached = PatternFile::create_filled(directory.path(), 1 << 20, Way::Cached).expect("a file");
    std::os::unix::fs::FileExt::read_exact_at(cached.file(), &mut vec![0; 1 << 20], 0).expect("read");
    let blocks = Blocks::new(cached, Pattern::Sequential, 4096, Source::Device);
    let error = blocks.and_then(single_block_reads).err().expect("refused").to_string();
    assert!(error.contains("4096 bytes were read and 0 came from the device"), "{error}");
}

#[test]
fn a_page_cache_that_grew_is_an_error() {
    let Some(directory) = directory_on_disk() else { return };
    let file = PatternFile::create_filled(directory.path(), 1 << 20, Way::Cached).expect("a file");
    let mut blocks = Blocks::new(file, Pattern::Sequential, 4096, Source::Device).expect("blocks");
    let mut block = [0; 4096];
    std::os::unix::fs::FileExt::read_exact_at(blocks.file.file(), &mut block, 0).expect("read");
    blocks.proof.begin_batch().expect("an account");
    let error = blocks.prove_batch(0, 0).expect_err("kept").to_string();
    assert!(error.contains("are in the page cache"), "{error}");
}

#[test]
fn a_wrong_short_or_failed_block_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = PatternFile::create_filled(directory.path(), 64 << 10, Way::Cached).expect("a file");
    let blocks = Blocks::new(file, Pattern::Random, 4096, Source::Device).expect("blocks");
    let mut block = vec![0; 4096];
    pattern_file::number_sectors(&mut block, 8192);
    assert!(blocks.file.check_block(Ok(4096), &block, 8192).is_ok());
    let other = blocks.file.check_block(Ok(4096), &block, 4096).expect_err("another").to_string();
    assert!(other.contains("not what was written at 4096"), "{other}");
    let short = blocks.file.check_block(Ok(100), &block, 8192).expect_err("short").to_string();
    assert!(short.contains("100 of 4096 bytes"), "{short}");
    let broken = blocks.file.check_block(Err(std::io::Error::from_raw_os_error(libc::EIO)), &block, 0);
    let broken = broken.expect_err("broken").to_string();
    assert!(broken.contains("stamped-65536: reading a block failed"), "{broken}");
}

#[test]
fn random_order_visits_every_block_once() {
    let mut order = Order::new(Pattern::Random, 1 << 20, 4096);
    let mut offsets: Vec<_> = (0..256).map(|_| order.next_offset()).collect();
    assert!(!offsets.is_sorted());
    offsets.sort_unstable();
    assert!(offsets.into_iter().eq((0..256).map(|i| 4096 * i)));
}

#[test]
fn fewer_bytes_on_the_device_than_blocks_are_an_error() {
    let counted = |bytes| {
        let mut delta = Delta::default();
        (delta.counted.device_read, delta.counted.device_written) = (bytes, bytes);
        delta
    };
    for judge in [judge_moved::<false, 4_096>, judge_moved::<true, 4_096>] {
        assert!(judge(&counted(Some(40_960)), 10).is_ok());
        assert!(judge(&counted(Some(40_959)), 10).is_err(), "nine in ten, or half of each");
        assert!(judge(&counted(None), 10).is_err(), "a kernel that does not tell");
    }
}

#[test]
fn every_block_length_is_judged_by_its_own_bytes() {
    for block in [512, 4_096, 65_536, 1_048_576] {
        let Claim::Counted(judge) = claim_blocks_read(block) else { panic!("another claim") };
        let mut delta = Delta::default();
        delta.counted.device_read = Some(2 * block as u64 - 1);
        assert!(judge(&delta, 2).is_err() && judge(&delta, 1).is_ok(), "{block}");
    }
}
