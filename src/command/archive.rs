//! The runs that were kept, whatever their unit. Values in another unit than nanoseconds lie in a directory
//! of their own beside Criterion's; a person who asks for the newest run means the newest of all.

use super::flag::Home;
use crate::harness::homes;
use crate::record::Record;
use crate::record::store::Store;
use crate::{Error, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(super) struct Archive {
    home: PathBuf,
}

impl Archive {
    pub(super) fn of(home: &Home) -> Self {
        Self { home: home.directory() }
    }

    /// The files of all runs, oldest first: a name begins with the moment at which the run began.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for home in homes(&self.home) {
            files.extend(Store::at(&home).run_files()?);
        }
        files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        Ok(files)
    }

    /// The run of this name or in this file; without either the newest.
    pub(super) fn record(&self, asked: Option<&OsStr>) -> Result<Record> {
        let file = match asked {
            None => self.files()?.pop().ok_or_else(|| self.empty())?,
            Some(asked) => self.file(asked)?,
        };
        Store::load(&file)
    }

    fn file(&self, asked: &OsStr) -> Result<PathBuf> {
        let named = self.files()?.into_iter().find(|file| file.file_stem() == Some(asked));
        let carried = || Path::new(asked).exists().then(|| PathBuf::from(asked));
        named.or_else(carried).ok_or_else(|| self.unknown(asked))
    }

    /// What was saved under a baseline's name, in nanoseconds: a record for each run.
    pub(super) fn baseline(&self, name: &str) -> Result<Vec<Record>> {
        let store = Store::at(&self.home);
        let found = store.load_baseline(name)?;
        if found.is_empty() {
            return Err(Error::Usage(format!(
                "there is no baseline {name}: no file {}; `syscost run --save-baseline {name}` makes one",
                store.baseline_path(name)?.display()
            )));
        }
        Ok(found)
    }

    pub(super) fn empty(&self) -> Error {
        Error::Usage(format!(
            "there is no run in {}: `cargo bench` or `syscost run` makes one, and --home looks elsewhere",
            Store::at(&self.home).home().join("runs").display()
        ))
    }

    fn unknown(&self, asked: &OsStr) -> Error {
        Error::Usage(format!(
            "there is no run and no file {}; `syscost runs` names the runs in {}",
            asked.to_string_lossy(),
            self.home.display()
        ))
    }
}
