//! The directory of records, `<criterion home>/syscost/`. The driver saves a run repeatedly while it measures, so that a
//! crash loses little. No run overwrites another.

pub mod parse;
mod whole;

pub use whole::{LIMIT, OwnFile, check_creatable, create_file, read, replace_file};

use crate::error::{Error, Result};
use crate::platform::inert::{self, is_hostile};
use crate::record::Record;
use crate::record::quantity::fresh_run_name;
use std::path::{Path, PathBuf};

/// The records under one Criterion home.
#[derive(Clone, Debug)]
pub struct Store {
    home: PathBuf,
}

impl Store {
    /// The store that belongs to this Criterion home (usually `target/criterion`). The directory is created with the
    /// first file that is saved.
    pub fn at(criterion_home: &Path) -> Self {
        Self { home: criterion_home.join("syscost") }
    }

    /// The directory that holds all files of `syscost`.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The files of all histories, by name.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn history_files(&self) -> Result<Vec<PathBuf>> {
        self.list_files("history", "jsonl")
    }

    /// Saves a run, whole or not at all, and replaces an earlier save of the same run. Returns the file.
    ///
    /// # Errors
    /// Its name is no file name, it holds a number that JSON cannot hold, or the file cannot be written.
    pub fn save_run(&self, record: &Record) -> Result<PathBuf> {
        let path = self.run_path(&record.run)?;
        save_record(&path, record)?;
        Ok(path)
    }

    /// The file of the run with this name.
    ///
    /// # Errors
    /// The name is no file name.
    pub fn run_path(&self, run: &str) -> Result<PathBuf> {
        Ok(self.home.join("runs").join(json_file_name(run, "run")?))
    }

    /// Saves a run for the first time, never in place of another run. If its name is taken, the record gets a fresh name.
    ///
    /// # Errors
    /// As [`Store::save_run`].
    pub fn save_new_run(&self, record: &mut Record) -> Result<PathBuf> {
        loop {
            let path = self.run_path(&record.run)?;
            if whole::create_unless_taken(&path, &encode_record(&path, record)?)? {
                return Ok(path);
            }
            record.run = fresh_run_name().1;
        }
    }

    /// Checks by writing that files can be made in this directory of the store, and that it can be listed.
    ///
    /// # Errors
    /// The kernel refuses to list, make or write there.
    pub fn check_directory_usable(&self, directory: &str) -> Result<()> {
        self.list_files(directory, "")?;
        whole::check_writable(&self.home.join(directory))
    }

    /// Reads one record from any file.
    ///
    /// # Errors
    /// The file cannot be read, holds no record, or was written by a newer version.
    pub fn load(path: &Path) -> Result<Record> {
        parse::record(path, &read(path)?)
    }

    /// The files of all runs, oldest first.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn run_files(&self) -> Result<Vec<PathBuf>> {
        self.list_files("runs", "json")
    }

    /// The files with this extension in one of the store's directories, sorted by name; empty if there is no such directory.
    pub fn list_files(&self, directory: &str, ending: &str) -> Result<Vec<PathBuf>> {
        let directory = self.home.join(directory);
        let listed = |e| Error::file(&directory, "listing the directory", e);
        let entries = match std::fs::read_dir(&directory) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(listed)?,
        };
        let mut files = Vec::new();
        for entry in entries {
            files.push(entry.map_err(listed)?.path());
        }
        let is_whole =
            |path: &PathBuf| path.file_stem().is_some_and(|s| !s.as_encoded_bytes().starts_with(b"."));
        files.retain(|path| is_whole(path) && path.extension().is_some_and(|e| e == ending));
        files.sort();
        Ok(files)
    }
}

/// Writes a record.
pub fn save_record(path: &Path, record: &Record) -> Result<()> {
    replace_file(path, &encode_record(path, record)?)
}

/// Encodes a record for its file and checks that it can be read back. JSON has no infinity and no NaN: they would be
/// written as `null`, and the file could never be read again.
fn encode_record(path: &Path, record: &Record) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(record).map_err(|e| Error::file(path, "writing as JSON", e.into()))?;
    parse::record(path, &bytes)?;
    Ok(parse::add_seal(&bytes))
}

/// The file name `NAME.json`, for a name that passes [`check_name`].
///
/// # Errors
/// As [`check_name`].
pub fn json_file_name(name: &str, what: &str) -> Result<String> {
    check_name(name, what).map(|()| format!("{name}.json"))
}

/// Refuses a name that would leave its directory or be a hidden file.
///
/// # Errors
/// The name is empty, too long, begins with a dot, or has a slash or a character that moves or hides others on a terminal.
pub fn check_name(name: &str, what: &str) -> Result<()> {
    let plain = |c: char| !is_hostile(c) && !"/\\".contains(c);
    if name.is_empty() || name.starts_with('.') || name.len() > 200 || !name.chars().all(plain) {
        return Err(Error::Usage(format!(
            "`{}` cannot name a {what}: it becomes a file name, so use letters, digits, `-`, `_` and `.`",
            inert::neutralize_line(name, 100)
        )));
    }
    Ok(())
}

// The files of bundles: `<criterion home>/syscost/records/NAME.syscost`. Bundles in all units share the directory, because
// only this tool reads them and the head of each names the unit.

/// The extension of a bundle's file.
const ENDING: &str = "syscost";

impl Store {
    /// The file of the record with this name.
    ///
    /// # Errors
    /// The name is no file name.
    pub fn record_path(&self, name: &str) -> Result<PathBuf> {
        check_name(name, "record")?;
        Ok(self.home().join("records").join(format!("{name}.{ENDING}")))
    }

    /// The files of all records, by name.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn record_files(&self) -> Result<Vec<PathBuf>> {
        self.list_files("records", ENDING)
    }

    /// The records of a session, `NAME.1`, `NAME.2` and so on, with their numbers, in order.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn session_files(&self, name: &str) -> Result<Vec<(u32, PathBuf)>> {
        let number = |file: &PathBuf| record_name(file).strip_prefix(name)?.strip_prefix('.')?.parse().ok();
        let files = self.record_files()?.into_iter();
        let mut found: Vec<(u32, PathBuf)> = files.filter_map(|file| Some((number(&file)?, file))).collect();
        found.sort();
        Ok(found)
    }

    /// The name of the next record of a session.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn next_session_name(&self, name: &str) -> Result<String> {
        let last = self.session_files(name)?.last().map_or(0, |(number, _)| *number);
        Ok(format!("{name}.{}", last.saturating_add(1)))
    }

    /// Removes the record of this name.
    ///
    /// # Errors
    /// There is no such record, or it cannot be removed.
    pub fn remove_record(&self, name: &str) -> Result<()> {
        let path = self.record_path(name)?;
        std::fs::remove_file(&path).map_err(|e| Error::file(&path, "removing", e))
    }
}

/// The name of the record in this file.
pub fn record_name(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    fn store() -> (tempfile::TempDir, Store) {
        let home = tempfile::tempdir().unwrap();
        let store = Store::at(home.path());
        (home, store)
    }

    fn named(run: &str) -> Record {
        Record { run: run.into(), ..fixture_run::fixture_record() }
    }

    #[test]
    fn a_run_is_read_as_it_was_saved() {
        let (_home, store) = store();
        let record = fixture_run::fixture_record();
        let back = Store::load(&store.save_run(&record).unwrap()).unwrap();
        assert_eq!((&back.run, back.seed, back.tally()), (&record.run, record.seed, record.tally()));
        for ((_, a), (_, b)) in record.cases().zip(back.cases()) {
            assert_eq!((&a.id, &a.title), (&b.id, &b.title));
            let (Some(a), Some(b)) = (a.measured(), b.measured()) else { continue };
            assert_eq!((&a.counted, &a.evidence), (&b.counted, &b.evidence));
            assert!((a.median.low - b.median.low).abs() <= a.median.low * f64::EPSILON);
        }
    }

    #[test]
    fn a_later_save_of_a_run_replaces_only_the_earlier_one() {
        let (_home, store) = store();
        let mut short = named("20261120T134405-1");
        short.groups.truncate(1);
        store.save_run(&short).unwrap();
        store.save_run(&named("20261120T134405-1")).unwrap();
        store.save_run(&named("20261119T000000-9")).unwrap();
        let files = store.run_files().unwrap();
        assert_eq!(files.len(), 2);
        assert_eq!(Store::load(&files[1]).unwrap().tally(), fixture_run::fixture_record().tally());
    }

    #[test]
    fn runs_of_one_name_that_are_saved_together_are_all_kept() {
        let (_home, store) = store();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let store = &store;
                scope.spawn(move || store.save_new_run(&mut named("20261120T134405-1")).unwrap());
            }
        });
        let files = store.run_files().unwrap();
        assert_eq!(files.len(), 8);
        for file in files {
            let name = Store::load(&file).unwrap().run;
            assert_eq!(file.file_stem().unwrap().to_str(), Some(&*name), "the record knows its name");
        }
    }

    #[test]
    fn an_empty_store_lists_no_runs() {
        let (_home, store) = store();
        assert!(store.run_files().unwrap().is_empty());
    }

    #[test]
    fn a_damaged_run_is_named_and_the_others_remain() {
        let (_home, store) = store();
        store.save_run(&named("20261120T134405-1")).unwrap();
        std::fs::write(store.run_path("20261121T000000-1").unwrap(), "{\"format\": 1,").unwrap();
        let [sound, damaged] = &store.run_files().unwrap()[..] else { panic!("two files") };
        assert!(Store::load(sound).is_ok());
        let message = Store::load(damaged).unwrap_err().to_string();
        assert!(message.contains("20261121T000000-1.json"), "{message}");
    }

    #[test]
    fn temporary_files_are_not_listed() {
        let (_home, store) = store();
        store.save_run(&named("a")).unwrap();
        std::fs::write(store.home().join("runs/.tmpAb12"), "half").unwrap();
        assert_eq!(store.run_files().unwrap().len(), 1);
    }

    #[test]
    fn a_name_cannot_leave_the_store() {
        let (_home, store) = store();
        for name in ["", "../up", "a/b", ".hidden", "new\nline", "exe.\u{202e}gnp", "zero\u{200b}width"] {
            assert!(store.save_run(&named(name)).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_number_that_json_cannot_hold_is_refused_before_it_is_saved() {
        let (_home, store) = store();
        let mut record = fixture_run::fixture_record();
        if let crate::record::Outcome::Measured(m) = &mut record.groups[0].cases[0].outcome {
            m.ticks = f64::NAN;
        }
        let message = store.save_run(&record).unwrap_err().to_string();
        assert!(message.contains("ticks"), "{message}");
        assert!(store.run_files().unwrap().is_empty());
    }

    #[test]
    fn the_next_name_of_a_session_follows_its_last_number() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::at(home.path());
        assert_eq!(store.next_session_name("before").unwrap(), "before.1");
        for name in ["before.2", "before.10", "before.x", "beforehand.3", "before"] {
            super::create_file(&store.record_path(name).unwrap(), b"a record").unwrap();
        }
        let numbers: Vec<u32> =
            store.session_files("before").unwrap().iter().map(|(number, _)| *number).collect();
        assert_eq!(
            (numbers, store.next_session_name("before").unwrap().as_str()),
            (vec![2, 10], "before.11")
        );
    }

    #[test]
    fn a_record_cannot_leave_the_store() {
        let store = Store::at(Path::new("nowhere"));
        for name in ["", "../up", "a/b", ".hidden"] {
            assert!(store.record_path(name).is_err(), "{name:?}");
        }
    }
}
