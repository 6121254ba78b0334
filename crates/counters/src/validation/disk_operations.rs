//! C6: reads and writes of a disk and of its partition, on a loop device that no other process uses. Where no loop device can
//! be made, the disk of the scratch directory is used, which other processes may use too.

use super::finding::Finding;
use super::{Functions, Setting};
use crate::{Disk, Fault, Reading, Traffic};
use memmap2::MmapMut;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use syscost_platform::error::{Error, Result};
use syscost_platform::process::tool;

/// The number of operations of each kind.
const COUNT: u64 = 200;
const BLOCK: usize = 4 << 10;
/// Size of the file behind the loop device, bytes.
const FILE: u64 = 16 << 20;
/// First sector and number of sectors of its partition, 512 bytes each.
const PARTITION: [u32; 2] = [2048, 16 << 10];
/// The longest wait for the kernel to create the device of a partition.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn run(setting: &Setting) -> Result<Vec<Finding>> {
    match Loop::create_in(setting.scratch) {
        Ok(device) => run_on_loop(&device, &setting.functions),
        Err(Error::Missing(why)) => run_on_scratch(setting.scratch, &why),
        Err(error) => Err(error),
    }
}

fn run_on_loop(device: &Loop, by: &Functions) -> Result<Vec<Finding>> {
    let mut findings =
        check_operations("disk", &device.whole, &device.name, [by.reads_disk, by.writes_disk])?;
    match &device.partition {
        Some((file, name)) => {
            findings.extend(check_operations(
                "partition",
                file,
                name,
                [by.reads_partition, by.writes_partition],
            )?);
        }
        None => findings.push(Finding::not_judged(
            "partition",
            format!("the kernel made none known for /dev/{} within {PATIENCE:?}", device.name),
        )),
    }
    Ok(findings)
}

/// The functions that count reads and writes.
type Counting = [fn(&str) -> std::result::Result<Reading<u64>, Fault>; 2];

/// Checks the counts of operations that bypass the page cache; each operation is a request of its own.
fn check_operations(kind: &str, file: &File, name: &str, by: Counting) -> Result<Vec<Finding>> {
    let counts = || Ok::<_, Fault>([by[0](name)?.value, by[1](name)?.value]);
    let first = counts()?;
    let (before, after) = write_and_read(file, &Disk::open(name)?)?;
    let last = counts()?;
    let bytes = COUNT * BLOCK as u64;
    let row = |what: &str, expected: u64, found: u64| {
        Finding::exact_count(&format!("{kind}, {what}"), "integral, grows", expected, found)
    };
    Ok(vec![
        row("writes", COUNT, last[1] - first[1]),
        row("bytes written", bytes, after.bytes_written - before.bytes_written),
        row("reads", COUNT, last[0] - first[0]),
        row("bytes read", bytes, after.bytes_read - before.bytes_read),
        Finding::same_items(
            &format!("{kind}, by its handle"),
            "",
            vec![after.reads, after.writes],
            last.into(),
        ),
    ])
}

fn write_and_read(file: &File, disk: &Disk) -> Result<(Traffic, Traffic)> {
    let failed =
        |e| Error::file(format!("/dev/{}", disk.name()), "reading or writing past the page cache", e);
    // O_DIRECT requires an aligned buffer, and a mapping is aligned to a page.
    let mut buffer = MmapMut::map_anon(BLOCK).map_err(failed)?;
    let before = disk.traffic()?.value;
    for n in 0..COUNT {
        file.write_all_at(&buffer, n * BLOCK as u64).map_err(failed)?;
    }
    for n in 0..COUNT {
        file.read_exact_at(&mut buffer, n * BLOCK as u64).map_err(failed)?;
    }
    Ok((before, disk.traffic()?.value))
}

/// Checks reads and writes of a file in the scratch directory, whose disk other processes may use as well.
fn run_on_scratch(directory: &Path, why: &str) -> Result<Vec<Finding>> {
    let metadata = fs::metadata(directory).map_err(|e| Error::file(directory, "reading", e))?;
    let (major, minor) =
        (metadata.dev() >> 8 & 0xfff, metadata.dev() & 0xff | metadata.dev() >> 12 & 0xfff00);
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}"));
    let name = link.ok().and_then(|link| Some(link.file_name()?.to_str()?.to_owned()));
    let Some(name) = name else {
        return Err(Error::Missing(format!("{why}; and {} is on no disk", directory.display())));
    };
    let path = directory.join("blocks");
    let whole =
        fs::write(&path, vec![1; COUNT as usize * BLOCK]).and_then(|()| File::open(&path)?.sync_all());
    whole.map_err(|e| Error::file(&path, "writing", e))?;
    let (before, after) = write_and_read(&open_direct(&path)?, &Disk::open(&name)?)?;
    let rows = [("writes", after.writes - before.writes), ("reads", after.reads - before.reads)];
    let row = |(what, found): (&str, u64)| {
        let row = Finding::exact_count(&format!("{name}, {what}"), "integral, grows", COUNT, found);
        if found > COUNT { row.excuse_failure(format!("others use this disk, too; {why}")) } else { row }
    };
    Ok(rows.into_iter().map(row).collect())
}

fn open_direct(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    options.open(path).map_err(|e| Error::file(path, "opening with O_DIRECT", e))
}

/// A loop device with one partition. It is detached while it is open, so that the kernel removes it with its last descriptor,
/// even if this process is killed.
struct Loop {
    name: String,
    whole: File,
    partition: Option<(File, String)>,
}

impl Loop {
    fn create_in(directory: &Path) -> Result<Self> {
        let path = directory.join("disk");
        let made = File::create(&path).and_then(|file| {
            file.write_all_at(&partition_table(), 0)?;
            file.set_len(FILE)
        });
        made.map_err(|e| Error::file(&path, "writing", e))?;
        let name =
            run_losetup(&["--find", "--show", "--partscan", "--direct-io=off", &path.display().to_string()])?;
        Self::open_and_detach(&PathBuf::from(name.trim()))
    }

    fn open_and_detach(device: &Path) -> Result<Self> {
        let name = device.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let whole = open_direct(device);
        // Detached at once, since a kill before this line leaves the device behind. The kernel detaches it with its last
        // descriptor.
        run_losetup(&["--detach", &device.display().to_string()])?;
        let whole = whole?;
        let partition = format!("{name}p1");
        let path = PathBuf::from(format!("/dev/{partition}"));
        // `partx` (util-linux) adds the partition if the kernel does not read this kind of partition table.
        let _ = tool::command("partx").arg("--add").arg(device).output();
        let begun = Instant::now();
        while !path.exists() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let partition = open_direct(&path).ok().map(|file| (file, partition));
        Ok(Self { name, whole, partition })
    }
}

/// The first sector of a disk with one partition (a master boot record). An entry has a status, two unused addresses,
/// the type, the first sector and the number of sectors.
fn partition_table() -> [u8; 512] {
    let mut table = [0; 512];
    table[446 + 4] = 0x83;
    table[446 + 8..446 + 12].copy_from_slice(&PARTITION[0].to_le_bytes());
    table[446 + 12..446 + 16].copy_from_slice(&PARTITION[1].to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    table
}

fn run_losetup(arguments: &[&str]) -> Result<String> {
    let output = tool::command("losetup").args(arguments).output();
    let output = output.map_err(|e| Error::Missing(format!("there is no losetup here (util-linux): {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = tool::failure_message(&output);
    Err(Error::Missing(format!("a loop device cannot be made: `losetup` failed {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_lies_within_its_disk() {
        let end = u64::from(PARTITION[0] + PARTITION[1]) * 512;
        assert!(end <= FILE && COUNT * BLOCK as u64 <= u64::from(PARTITION[1]) * 512);
        assert_eq!(partition_table()[510..], [0x55, 0xaa]);
    }
}
