//! The file of a history: a line of JSON with a checksum for each point. Points are only appended, except by `history prune`. The
//! file can be kept in a git branch or as a build artifact, and merged with another one by `history import`.

use super::history_point::{CaseRatio, HistoryPoint, LAYOUT};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use syscost_engine::record::store::{check_name, parse, replace_file};
use syscost_platform::error::{Error, Result};
use syscost_platform::{inert, plain_file};

/// The largest file that is read, bytes: ten thousand points of three hundred cases take half of it.
const LIMIT: u64 = 1 << 30;
/// The most waits for another writer, of [`PAUSE`] each, before an error is returned.
const WAITS: u32 = 3_000;
const PAUSE: Duration = Duration::from_millis(10);
/// The most characters of the cause in the error of a damaged line.
const LONGEST: usize = 120;

/// The file of a history.
#[derive(Clone, Debug)]
pub struct HistoryLog {
    path: PathBuf,
}

/// The content of a file: its points in the order in which they were added, and an error for each damaged line.
#[derive(Debug, Default)]
pub struct Content {
    /// The points.
    pub points: Vec<HistoryPoint>,
    /// An error for each damaged line.
    pub damaged: Vec<Error>,
}

impl HistoryLog {
    /// The history of this name in a store.
    ///
    /// # Errors
    /// The name is no file name.
    pub fn in_store(store: &Path, name: &str) -> Result<Self> {
        check_name(name, "history")?;
        Ok(Self::from_path(&store.join("history").join(format!("{name}.jsonl"))))
    }

    /// The history in this file.
    pub fn from_path(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// The history in this file, which must exist. (For the user's own history, a missing file is an empty
    /// history.)
    ///
    /// # Errors
    /// The file is missing, or is no regular file.
    pub fn from_existing_file(path: &Path) -> Result<Self> {
        plain_file::open(path).map(|_| Self::from_path(path))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content of the file; empty if the file is missing.
    ///
    /// # Errors
    /// The file cannot be read, or has a point of a newer version. Without that point every evaluation would be wrong.
    pub fn read(&self) -> Result<Content> {
        self.parse_content(&self.read_bytes()?)
    }

    fn read_bytes(&self) -> Result<Vec<u8>> {
        if self.path.exists() { plain_file::read(&self.path, LIMIT) } else { Ok(Vec::new()) }
    }

    fn parse_content(&self, bytes: &[u8]) -> Result<Content> {
        let mut content = Content::default();
        for (above, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match self.parse_point(line, above + 1) {
                Ok(point) => content.points.push(point),
                Err(_) if is_of_newer_layout(line) => return Err(self.newer_layout_error(above + 1)),
                Err(error) => content.damaged.push(error),
            }
        }
        Ok(content)
    }

    fn parse_point(&self, line: &[u8], number: usize) -> Result<HistoryPoint> {
        const REMEDY: &str =
            "the other lines are used; import a sound copy of the file, which adds what is missing";
        if !line.ends_with(b"\n") || !parse::is_seal_valid(line) || !line.starts_with(b"{\"sealed\"") {
            let found = if line.ends_with(b"\n") { "another checksum" } else { "the beginning of one" };
            return Err(self.line_error(number, "a sealed point", found.into(), REMEDY));
        }
        let point: HistoryPoint = serde_json::from_slice(line).map_err(|e| {
            self.line_error(
                number,
                "a point of a history",
                inert::neutralize_line(&e.to_string(), LONGEST),
                REMEDY,
            )
        })?;
        if point.history > LAYOUT { Err(self.newer_layout_error(number)) } else { Ok(point) }
    }

    fn newer_layout_error(&self, number: usize) -> Error {
        let expected = format!("a point of layout {LAYOUT} or older");
        let remedy = "it was written by a newer syscost: use that one";
        self.line_error(number, &expected, "a newer one".into(), remedy)
    }

    fn line_error(&self, number: usize, expected: &str, found: String, remedy: &str) -> Error {
        Error::invalid_content(&self.path, format!("line {number}"), expected, found, remedy)
    }

    /// Checks before a long measurement that a point can be added.
    ///
    /// # Errors
    /// The file cannot be read or written, or is of a newer version.
    pub fn check_writable(&self) -> Result<()> {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(directory) = directory {
            std::fs::create_dir_all(directory)
                .map_err(|e| Error::file(directory, "creating the directory", e))?;
        }
        plain_file::check_can_append(&self.path)?;
        self.read().map(drop)
    }

    /// Adds the points that the file lacks, all or none of them, and returns their number. Other writers wait meanwhile.
    ///
    /// # Errors
    /// Another writer does not end, the clocks differ, a number is not finite, or the file cannot be written.
    pub fn add(&self, points: &[HistoryPoint]) -> Result<usize> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)
            .map_err(|e| Error::file(directory, "creating the directory", e))?;
        let mut file = self.lock_exclusively()?;
        let before = self.read_bytes()?;
        let there = self.parse_content(&before)?.points;
        self.check_clock(there.first(), points)?;
        let there: HashSet<_> = there.iter().map(HistoryPoint::identity).collect();
        let new: Vec<_> = points.iter().filter(|new| !there.contains(&new.identity())).collect();
        if new.is_empty() {
            return Ok(0);
        }
        // If a crash left the last line incomplete, a line feed separates it from the new lines.
        let is_torn = before.last().is_some_and(|last| *last != b'\n');
        let mut bytes = if is_torn { b"\n".to_vec() } else { Vec::new() };
        for point in &new {
            bytes.extend(self.checked_line(point)?);
        }
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        written.map(|()| new.len()).map_err(|cause| {
            // A partly written line would be damaged, so the file is cut to its former length, if possible.
            let _ = file.set_len(before.len() as u64);
            Error::file(&self.path, "writing", cause)
        })
    }

    /// Checks that the new points have the clock of the history, or one common clock if the history is empty.
    fn check_clock(&self, first: Option<&HistoryPoint>, new: &[HistoryPoint]) -> Result<()> {
        let Some(clock) = first.or(new.first()).map(|point| point.clock) else { return Ok(()) };
        let Some(other) = new.iter().map(|point| point.clock).find(|other| *other != clock) else {
            return Ok(());
        };
        Err(Error::Usage(format!(
            "{}: its points are by the clock {clock}, and these by {other}, which are never compared: add them to a history of their own, by \
             --history NAME",
            self.path.display()
        )))
    }

    /// Whether the path still leads to this open file, even through a symbolic link.
    fn is_still_at_path(&self, file: &File) -> Result<bool> {
        let reading = |cause| Error::file(&self.path, "reading", cause);
        let open = file.metadata().map_err(reading)?;
        // If the file was removed meanwhile, the result is false: the caller creates a new one.
        let named = std::fs::metadata(&self.path).ok();
        Ok(named.is_some_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino())))
    }

    fn checked_line(&self, point: &HistoryPoint) -> Result<Vec<u8>> {
        // A number that JSON cannot hold is written as null and could not be read again. To save time, only cases
        // with such numbers are written and parsed as a check, together with the other fields.
        let is_finite = |case: &CaseRatio| {
            let of_functions = case.functions.iter().map(|(_, difference)| difference);
            [&case.log_ratio, &case.error, &case.cost_ns]
                .into_iter()
                .chain(of_functions)
                .all(|number| number.is_finite())
        };
        let wrong: Vec<_> = point.cases.iter().filter(|case| !is_finite(case)).cloned().collect();
        self.parse_point(&self.sealed_line(&point.with_cases(wrong))?, 0)?;
        self.sealed_line(point)
    }

    fn sealed_line(&self, point: &HistoryPoint) -> Result<Vec<u8>> {
        let json =
            serde_json::to_vec(point).map_err(|e| Error::file(&self.path, "writing as JSON", e.into()))?;
        let mut line = parse::add_seal(&json);
        line.push(b'\n');
        Ok(line)
    }

    /// Replaces the file atomically. `change` returns each point, changed or not, or `None` to remove it; meanwhile no other
    /// writer can change the file. Damaged lines stay as they are.
    ///
    /// # Errors
    /// The file is missing, another writer does not end, a line is of a newer version, or the file cannot be written.
    pub fn rewrite(&self, change: impl FnOnce(Vec<HistoryPoint>) -> Vec<Option<HistoryPoint>>) -> Result<()> {
        plain_file::open(&self.path)?;
        let _alone = self.lock_exclusively()?;
        let bytes = self.read_bytes()?;
        let points = self.parse_content(&bytes)?.points;
        let mut changed = change(points.clone()).into_iter().zip(points);
        let mut kept = Vec::with_capacity(bytes.len());
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_point = !line.trim_ascii().is_empty() && self.parse_point(line, 0).is_ok();
            match is_point.then(|| changed.next()).flatten() {
                None => kept.extend(line),
                Some((None, _)) => {}
                Some((Some(new), old)) if new.cases == old.cases => kept.extend(line),
                Some((Some(new), _)) => kept.extend(self.checked_line(&new)?),
            }
        }
        replace_file(&self.path, &kept)
    }

    /// Opens and locks the file. If another writer replaced it meanwhile, the new file at the path is locked instead.
    fn lock_exclusively(&self) -> Result<Flock<File>> {
        for _ in 0..WAITS {
            match Flock::lock(plain_file::open_to_append(&self.path)?, FlockArg::LockExclusiveNonblock) {
                Ok(lock) if self.is_still_at_path(&lock)? => return Ok(lock),
                Ok(_) => continue,
                Err((_, Errno::EWOULDBLOCK)) => {}
                Err((_, errno)) => return Err(Error::file(&self.path, "locking", errno.into())),
            }
            std::thread::sleep(PAUSE);
        }
        Err(Error::Missing(format!(
            "{}: another process has been writing to it for {} s: try again when it has ended",
            self.path.display(),
            (WAITS * PAUSE).as_secs()
        )))
    }
}

/// Whether the line states a newer layout.
fn is_of_newer_layout(line: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Layout {
        history: u32,
    }
    serde_json::from_slice(line).is_ok_and(|layout: Layout| layout.history > LAYOUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::guest_side::ClockKind;

    fn point(run: &str) -> HistoryPoint {
        let [label, reference] = ["main", "v1"].map(str::to_owned);
        HistoryPoint { history: 1, run: run.into(), label, reference, ..HistoryPoint::default() }
    }

    fn log() -> (tempfile::TempDir, HistoryLog) {
        let home = tempfile::tempdir().unwrap();
        let log = HistoryLog::in_store(home.path(), "main").unwrap();
        (home, log)
    }

    fn names(log: &HistoryLog) -> Vec<String> {
        log.read().unwrap().points.into_iter().map(|point| point.run).collect()
    }

    #[test]
    fn a_point_that_is_added_twice_is_stored_once() {
        let (_home, log) = log();
        assert_eq!(log.add(&[point("a"), point("b")]).unwrap(), 2);
        assert_eq!(log.add(&[point("b"), point("c")]).unwrap(), 1);
        assert_eq!(names(&log), ["a", "b", "c"]);
    }

    #[test]
    fn an_incomplete_line_is_reported_and_others_are_kept() {
        let (_home, log) = log();
        log.add(&[point("a"), point("b")]).unwrap();
        let bytes = std::fs::read(log.path()).unwrap();
        std::fs::write(log.path(), &bytes[..bytes.len() - 9]).unwrap();
        let content = log.read().unwrap();
        assert_eq!((content.points.len(), content.damaged.len()), (1, 1));
        let said = content.damaged[0].to_string();
        assert!(said.contains("line 2: expected a sealed point, found the beginning of one"), "{said}");
        assert_eq!(log.add(&[point("b")]).unwrap(), 1);
        assert_eq!(names(&log), ["a", "b"]);
    }

    #[test]
    fn every_flipped_bit_of_a_line_is_found() {
        let (_home, log) = log();
        log.add(&[point("a")]).unwrap();
        let sound = std::fs::read(log.path()).unwrap();
        for at in 0..sound.len() - 1 {
            let mut flipped = sound.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(log.path(), &flipped).unwrap();
            // If the flipped bit makes the layout newer, the whole file is refused.
            let is_found = log.read().map_or(true, |content| !content.damaged.is_empty());
            assert!(is_found, "byte {at}");
        }
    }

    #[test]
    fn a_newer_layout_is_refused() {
        let (_home, log) = log();
        log.add(&[point("a")]).unwrap();
        let newer = std::fs::read_to_string(log.path()).unwrap().replace("\"history\":1", "\"history\":9");
        std::fs::write(log.path(), newer).unwrap();
        let said = log.read().unwrap_err().to_string();
        assert!(said.contains("line 1") && said.contains("written by a newer syscost"), "{said}");
        assert!(log.add(&[point("b")]).is_err());
    }

    #[test]
    fn a_rewrite_keeps_damaged_lines_and_a_waiting_writer_adds_to_the_new_file() {
        let (_home, log) = log();
        log.add(&[point("a"), point("b"), point("c")]).unwrap();
        let text = std::fs::read_to_string(log.path()).unwrap().replacen("\"run\":\"b\"", "\"run\":\"x\"", 1);
        std::fs::write(log.path(), text).unwrap();
        let waiting = std::thread::scope(|scope| {
            let other = log.clone();
            let mut waiting = None;
            let forget = |points: Vec<HistoryPoint>| {
                waiting = Some(scope.spawn(move || other.add(&[point("d")])));
                std::thread::sleep(5 * PAUSE);
                points.into_iter().map(|point| (point.run != "a").then_some(point)).collect()
            };
            log.rewrite(forget).unwrap();
            waiting.map(|waiting| waiting.join().unwrap())
        });
        assert!(matches!(waiting, Some(Ok(1))), "{waiting:?}");
        assert_eq!(names(&log), ["c", "d"]);
        assert_eq!(log.read().unwrap().damaged.len(), 1);
    }

    #[test]
    fn two_clocks_are_never_in_one_history() {
        let (_home, log) = log();
        let counted = |run| HistoryPoint { history: LAYOUT, clock: ClockKind::Icount, ..point(run) };
        assert!(log.add(&[point("a"), counted("b")]).is_err());
        log.add(&[point("a")]).unwrap();
        let said = log.add(&[counted("b")]).unwrap_err().to_string();
        assert!(said.contains("by the clock host") && said.contains("by icount"), "{said}");
        assert_eq!(names(&log), ["a"]);
    }

    #[test]
    fn a_number_that_json_cannot_hold_is_refused_before_it_is_written() {
        let (_home, log) = log();
        let cases = vec![super::super::history_point::CaseRatio {
            id: "a/b".into(),
            canary: false,
            version: "1".into(),
            log_ratio: f64::NAN,
            error: 0.0,
            pairs: 8,
            cost_ns: 1.0,
            functions: Vec::new(),
        }];
        assert!(log.add(&[HistoryPoint { cases, ..point("a") }]).is_err());
        assert_eq!(names(&log), [""; 0]);
    }
}
