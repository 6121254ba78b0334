use super::*;
use crate::case::{Cpus, Scale};
use crate::kit::pattern_file;
use std::path::Path;

fn place(scratch: &Path) -> Place {
    Place { scratch: scratch.to_path_buf(), scale: Scale::Smoke, cpus: Cpus::expected() }
}

/// A directory that is on a disk, if this machine has one that tests may write.
fn on_a_disk() -> Option<tempfile::TempDir> {
    let directory = tempfile::tempdir().expect("a directory");
    DISK.ask(&place(directory.path())).is_ok().then_some(directory)
}

#[test]
fn memory_is_no_disk_and_the_sentence_says_what_to_do() {
    let shared = Path::new("/dev/shm");
    if volume::of(shared).1 != Medium::Memory {
        return;
    }
    let Ok(directory) = tempfile::tempdir_in(shared) else { return };
    let sentence = DISK.ask(&place(directory.path())).expect_err("no device");
    assert!(sentence.contains("which is memory") && sentence.contains("--dir"), "{sentence}");
}

/// Where O_DIRECT is accepted and not obeyed, the account and the page cache tell.
#[test]
fn a_read_that_a_cache_has_answered_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let cached = PatternFile::make(directory.path(), 1 << 20, Way::Cached).expect("a file");
    std::os::unix::fs::FileExt::read_exact_at(cached.file(), &mut vec![0; 1 << 20], 0).expect("read");
    let blocks = Blocks::of(cached, Pattern::Sequential, 4096, Source::Device);
    let error = blocks.and_then(one_after_another).err().expect("refused").to_string();
    assert!(error.contains("4096 bytes were read and 0 came from the device"), "{error}");
}

#[test]
fn a_page_cache_that_grew_is_an_error() {
    let Some(directory) = on_a_disk() else { return };
    let file = PatternFile::make(directory.path(), 1 << 20, Way::Cached).expect("a file");
    let mut blocks = Blocks::of(file, Pattern::Sequential, 4096, Source::Device).expect("blocks");
    let mut block = [0; 4096];
    std::os::unix::fs::FileExt::read_exact_at(blocks.stamped.file(), &mut block, 0).expect("read");
    blocks.proof.begin().expect("told");
    let error = blocks.prove(0, 0).expect_err("kept").to_string();
    assert!(error.contains("are in the page cache"), "{error}");
}

#[test]
fn another_block_than_the_one_that_was_asked_for_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = PatternFile::make(directory.path(), 64 << 10, Way::Cached).expect("a file");
    let blocks = Blocks::of(file, Pattern::Random, 4096, Source::Device).expect("blocks");
    let mut block = vec![0; 4096];
    pattern_file::stamp(&mut block, 8192);
    assert!(blocks.check(Ok(4096), &block, 8192).is_ok());
    let other = blocks.check(Ok(4096), &block, 4096).expect_err("another").to_string();
    assert!(other.contains("not what was written at 4096"), "{other}");
    let short = blocks.check(Ok(100), &block, 8192).expect_err("short").to_string();
    assert!(short.contains("100 of 4096 bytes"), "{short}");
    let broken = blocks.check(Err(std::io::Error::from_raw_os_error(libc::EIO)), &block, 0);
    let broken = broken.expect_err("broken").to_string();
    assert!(broken.contains("stamped-65536: reading a block failed"), "{broken}");
}

#[test]
fn chance_asks_for_every_block_once() {
    let mut order = Order::of(Pattern::Random, 1 << 20, 4096);
    let mut offsets: Vec<_> = (0..256).map(|_| order.next()).collect();
    assert!(!offsets.is_sorted());
    offsets.sort_unstable();
    assert!(offsets.into_iter().eq((0..256).map(|i| 4096 * i)));
}

#[test]
fn a_device_that_was_not_asked_is_noticed_by_the_counters() {
    let mut delta = Delta::default();
    assert!(reached(&delta, 10).is_err());
    delta.counted.device_read = Some(10 * 512 - 1);
    assert!(reached(&delta, 10).is_err());
    delta.counted.device_read = Some(10 * 4096);
    assert_eq!(reached(&delta, 10), Ok("4096 bytes came from the device for each of 10 reads".into()));
}
