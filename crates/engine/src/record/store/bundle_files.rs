//! The directory of bundles: `<criterion home>/syscost/records/NAME.syscost`. Records in all units share it, because
//! only this tool reads them and a head names its unit.

use super::{Store, check_name};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

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

    #[test]
    fn a_session_goes_on_behind_its_last_number() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::at(home.path());
        assert_eq!(store.next_session_name("before").unwrap(), "before.1");
        for name in ["before.2", "before.10", "before.x", "beforehand.3", "before"] {
            super::super::create_file(&store.record_path(name).unwrap(), b"a record").unwrap();
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
