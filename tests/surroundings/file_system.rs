//! File systems without a disk, or with another disk than the apparent one. A fault that must reach the disk is measured
//! correctly there, or refused with the directory to use instead.

use crate::disk::{self, NOT_MOUNTED, own_mounts};
use crate::place::{Ended, Place};

/// A case that needs a disk.
const MAJOR: &str = "^page_fault/major-random/first-touch$";

/// Runs the cases in the directory `$1`, on which the script `mount` mounts a file system. For the script, `$2` is a directory on
/// the file system of the test itself, and `$3` holds the cases.
fn mounted(place: &Place, mount: &str, cases: &str, scale: &str) -> Option<Ended> {
    mounted_and(place, mount, "--dir \"$1\"", cases, scale)
}

/// As [`mounted`], with other options for the run, which may name `$1`. That directory is the temporary one, too.
fn mounted_and(place: &Place, mount: &str, options: &str, cases: &str, scale: &str) -> Option<Ended> {
    // Root may mount devices in its own mount namespace; a user namespace may not.
    let way = if nix::unistd::geteuid().is_root() { &["unshare", "-m"][..] } else { own_mounts(place)? };
    let disk = place.path().join("disk");
    std::fs::create_dir_all(&disk).unwrap();
    let script = format!(
        "{mount} || exit {NOT_MOUNTED}\n{} run {options} --scale {scale} \"$3\"; code=$?; umount \"$1\"; exit $code",
        crate::place::SYSCOST
    );
    let run = || {
        let mut command = place.program(way[0]);
        command.args(&way[1..]).args(["sh", "-c", &script, "sh"]);
        command.arg(place.temporary()).arg(&disk).arg(cases);
        command
    };
    disk::mounted(place, run)
}

/// Asserts that the case was skipped, with these words and with a remedy.
fn assert_refused(ended: &Ended, words: &str) {
    ended.says(1, &["0 measured, 1 skipped, 0 failed", words, "TMPDIR"]);
}

#[test]
fn memory_is_no_disk() {
    for kind in ["tmpfs", "ramfs"] {
        let place = Place::new();
        let Some(ended) = mounted(&place, &format!("mount -t {kind} none \"$1\""), MAJOR, "smoke") else {
            return;
        };
        assert_refused(&ended, &format!("is on {kind}, whose files are memory"));
        place.is_tidy();
    }
}

#[test]
fn a_temporary_directory_in_memory_gives_way_to_a_disk() {
    let place = Place::new();
    let Some(ended) = mounted_and(&place, "mount -t tmpfs none \"$1\"", "", MAJOR, "smoke") else { return };
    if ended.output.contains("1 skipped") {
        return assert_refused(&ended, "is on tmpfs, whose files are memory"); // there is no disk
    }
    ended.says(0, &["1 measured, 0 skipped, 0 failed"]);
    assert!(ended.error.contains("is memory, so the files of cases are made in"), "{}", ended.error);
    place.is_tidy();
}

/// The script that mounts an overlay with this upper directory.
fn overlay(upper: &str) -> String {
    format!(
        "mkdir -p \"$2/lower\" {upper}/up {upper}/work &&
         mount -t overlay -o \"lowerdir=$2/lower,upperdir={upper}/up,workdir={upper}/work\" none \"$1\""
    )
}

#[test]
fn an_overlay_is_what_lies_below_it() {
    let place = Place::new();
    let memory = format!("mkdir -p \"$2/m\" && mount -t tmpfs none \"$2/m\" && {}", overlay("\"$2/m\""));
    let Some(ended) = mounted(&place, &memory, MAJOR, "smoke") else { return };
    assert_refused(&ended, "is on tmpfs, whose files are memory");
    let Some(ended) = mounted(&place, &overlay("\"$2\""), MAJOR, "smoke") else { return };
    assert_measured_or_refused(&place, &ended);
}

/// Asserts that the case was measured with a major fault at every touch, or refused with a remedy.
fn assert_measured_or_refused(place: &Place, ended: &Ended) {
    if ended.output.contains("1 skipped") {
        return assert_refused(ended, "skipped");
    }
    ended.says(0, &["1 measured, 0 skipped, 0 failed"]);
    let record = place.record().to_string();
    assert!(record.contains("touches took 0 minor and"), "{record}");
}

/// The script that mounts an ext4 of `mib` MiB in a file, on a loop device with or without direct I/O to that file.
fn image(mib: u32, direct: &str) -> String {
    format!(
        "PATH=$PATH:/sbin:/usr/sbin; rm -f \"$2/image\"; truncate -s {mib}M \"$2/image\" &&
         mkfs.ext4 -q -m 0 \"$2/image\" && device=$(losetup --find --show --direct-io={direct} \"$2/image\") &&
         {{ mount \"$device\" \"$1\"; mounted=$?; losetup -d \"$device\"; [ $mounted = 0 ]; }} && chmod 777 \"$1\" &&
         rm -r \"$1/lost+found\""
    )
}

#[test]
fn a_loop_device_reads_from_a_cache_unless_it_goes_around_it() {
    let place = Place::new();
    let Some(ended) = mounted(&place, &image(64, "off"), MAJOR, "smoke") else { return };
    assert_refused(&ended, "stays in that of the file below");
    let Some(ended) = mounted(&place, &image(64, "on"), MAJOR, "smoke") else { return };
    assert_measured_or_refused(&place, &ended);
}

#[test]
fn a_small_disk_has_a_small_file_and_says_so() {
    let place = Place::new();
    let Some(ended) = mounted(&place, &image(80, "on"), MAJOR, "default") else { return };
    if ended.output.contains("1 skipped") {
        return assert_refused(&ended, "skipped"); // the image lies in memory
    }
    ended.says(0, &["1 measured, 0 skipped, 0 failed"]);
    let record = place.record().to_string();
    assert!(record.contains(" of 32 MiB: ") && record.contains("of which a quarter is used"), "{record}");
}

/// With 64 MiB in memory all cases that write files fit, and the cases that need a disk are refused.
#[test]
fn sixty_four_mebibytes_are_enough_for_a_number_or_a_sentence() {
    let place = Place::new();
    let small = "mount -t tmpfs -o size=64m none \"$1\"";
    let Some(ended) = mounted(&place, small, "^page_fault/(cached|major)", "default") else { return };
    ended.says(0, &["2 measured, 10 skipped, 0 failed", "is on tmpfs, whose files are memory", "TMPDIR"]);
    place.is_tidy();
}

#[test]
fn a_disk_without_room_is_named() {
    let place = Place::new();
    let case = "^page_fault/cached-sequential/1MiB$";
    let Some(ended) = mounted(&place, "mount -t tmpfs -o size=8m none \"$1\"", case, "smoke") else { return };
    assert_refused(&ended, "8 MiB are free in");
    place.is_tidy();
}
