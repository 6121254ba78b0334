//! Stored records, baselines and runs, in every unit. Values in a unit other than nanoseconds lie in a separate directory
//! beside Criterion's. The newest run is the newest of all units.

use crate::error::{Error, Result};
use crate::flag::Home;
use crate::page;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_analysis::record::bundle::{Bundle, Head, read_any, read_any_head};
use syscost_analysis::study::pooled_record::pool_records;
use syscost_engine::driver::{homes_of_all_units, nearest_names};
use syscost_engine::exit::Exit;
use syscost_engine::record::Record;
use syscost_engine::record::quantity::{format_utc, unix_now};
use syscost_engine::record::store::Store;
use syscost_engine::record::store::record_name;

/// The exit code of a command that lists files, some of them damaged: the highest code that a command would return for one
/// of these errors.
pub fn exit_code_for_damaged<'a>(damaged: impl Iterator<Item = &'a Error>) -> ExitCode {
    ExitCode::from(damaged.map(|error| Exit::from(error.kind()).code()).max().unwrap_or(Exit::Success.code()))
}

/// Everything that is stored under one home.
pub struct Archive {
    home: PathBuf,
}

impl Archive {
    /// The archive of this home.
    pub fn at(home: &Home) -> Self {
        Self { home: home.directory() }
    }

    /// The files of all runs, oldest first. The name of a run begins with the time at which the run began.
    pub fn run_files(&self) -> Result<Vec<PathBuf>> {
        let mut files = self.list_in_all_units(Store::run_files)?;
        files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        Ok(files)
    }

    /// The store of the records.
    pub fn store(&self) -> Store {
        Store::at(&self.home)
    }

    /// The files of all records, by name.
    pub fn record_files(&self) -> Result<Vec<PathBuf>> {
        self.store().record_files()
    }

    /// The files of all baselines that `--save-baseline` left, by name.
    pub fn baseline_files(&self) -> Result<Vec<PathBuf>> {
        self.list_in_all_units(Store::baseline_files)
    }

    fn list_in_all_units(&self, list: fn(&Store) -> Result<Vec<PathBuf>>) -> Result<Vec<PathBuf>> {
        let files = homes_of_all_units(&self.home)
            .iter()
            .map(|home| list(&Store::at(home)))
            .collect::<Result<Vec<_>>>()?;
        Ok(files.concat())
    }

    /// The head of the first that has this name: a record, a baseline that `--save-baseline` left, a run, all records of a
    /// session, or a file.
    pub fn load_head(&self, asked: &OsStr) -> Result<Head> {
        match self.resolve_name(asked)? {
            Found::File(file) => read_any_head(&file),
            Found::Session(name, files) => Ok(join_session(&name, &files)?.head),
        }
    }

    /// Like [`Archive::load_head`], with the runs.
    pub fn load_bundle(&self, asked: &OsStr) -> Result<Bundle> {
        match self.resolve_name(asked)? {
            Found::File(file) => read_any(&file),
            Found::Session(name, files) => join_session(&name, &files),
        }
    }

    /// Resolves a name or a path. A kept run comes before a file of the current directory; a warning then names that file.
    fn resolve_name(&self, asked: &OsStr) -> Result<Found> {
        let kept = self.all_files()?;
        let found = match kept.iter().find(|file| file.file_stem() == Some(asked)) {
            Some(file) => Some(Found::File(file.clone())),
            None => self.find_session(asked)?,
        };
        if let Some(found) = found {
            warn_of_shadowed_file(asked, "what is kept under this name");
            return Ok(found);
        }
        existing_file(asked).map(Found::File).ok_or_else(|| self.not_found_error(asked, &kept))
    }

    /// The records that `syscost record --session` made under this name; `None` if there is none.
    fn find_session(&self, asked: &OsStr) -> Result<Option<Found>> {
        let Some(name) = asked.to_str() else { return Ok(None) };
        let files: Vec<_> = self.store().session_files(name)?.into_iter().map(|(_, file)| file).collect();
        Ok((!files.is_empty()).then(|| Found::Session(name.to_owned(), files)))
    }

    /// The files of all records, baselines and runs, in this order.
    pub fn all_files(&self) -> Result<Vec<PathBuf>> {
        Ok([self.record_files()?, self.baseline_files()?, self.run_files()?].concat())
    }

    /// The run that began last, as a bundle.
    pub fn newest_bundle(&self) -> Result<Bundle> {
        read_any(&self.newest_run_file()?)
    }

    /// The run, record, session or file of this name, its processes pooled into one record. Without a name, the newest run.
    pub fn load_run(&self, asked: Option<&OsStr>) -> Result<Record> {
        let Some(asked) = asked else { return Store::load(&self.newest_run_file()?) };
        let Bundle { head, mut records } = self.load_bundle(asked)?;
        match records.len() {
            1 => Ok(records.remove(0)),
            _ => pool_records(&head.name, &records)
                .ok_or_else(|| Error::Usage(format!("{} has no run", head.name))),
        }
    }

    /// The file of the run that began last. Warns if that run began later than now: it then hides the runs made since
    /// the clock was set back.
    fn newest_run_file(&self) -> Result<PathBuf> {
        let file = self.run_files()?.pop().ok_or_else(|| self.no_runs_error())?;
        let run = file.file_stem().unwrap_or_default().to_string_lossy();
        if *run > *format!("{}~", format_utc(unix_now())) {
            page::warn(&format!(
                "the newest run, {run}, began later than now: the clock was set back, or that run is of a machine whose clock is ahead. A run \
                 made since is not taken for the newest: name the one that is meant, `syscost runs` lists them"
            ));
        }
        Ok(file)
    }

    /// The newest wanted run among the twenty runs before the last; `None` without one. Damaged runs are skipped: `syscost
    /// runs` reports them.
    pub fn find_earlier_run(&self, is_wanted: impl Fn(&Record) -> bool) -> Result<Option<Record>> {
        const NEWEST: usize = 20;
        let files = self.run_files()?;
        let mut runs = files.iter().rev().skip(1).take(NEWEST).filter_map(|file| Store::load(file).ok());
        Ok(runs.find(is_wanted))
    }

    /// The error of an archive without a run.
    pub fn no_runs_error(&self) -> Error {
        Error::Usage(format!(
            "there is no run in {}: `cargo bench` or `syscost run` makes one, and --home looks elsewhere",
            Store::at(&self.home).home().join("runs").display()
        ))
    }

    fn not_found_error(&self, asked: &OsStr, kept: &[PathBuf]) -> Error {
        let asked = asked.to_string_lossy();
        let names: Vec<_> = kept.iter().map(|file| record_name(file)).collect();
        let near = if names.is_empty() {
            format!("nor is anything kept in {}: `syscost record` makes a record", self.home.display())
        } else {
            format!(
                "the nearest are {}; `syscost baseline list` and `syscost runs` name them all",
                nearest_names(&asked, &names)
            )
        };
        Error::Usage(format!("there is no record, no baseline, no run and no file {asked}; {near}"))
    }
}

/// The result of resolving a name or a path.
enum Found {
    /// A record, a baseline, a run, or any file.
    File(PathBuf),
    /// The name of a session, and the files of its records.
    Session(String, Vec<PathBuf>),
}

/// All records of a session, joined into one bundle.
fn join_session(name: &str, files: &[PathBuf]) -> Result<Bundle> {
    let bundles = files.iter().map(|file| read_any(file)).collect::<Result<Vec<_>>>()?;
    let created = bundles.iter().map(|bundle| bundle.head.created).min().unwrap_or_default();
    let records = bundles.into_iter().flat_map(|bundle| bundle.records).collect();
    Bundle::from_records(name, created, records)
}

/// The path, if a file exists there.
fn existing_file(asked: &OsStr) -> Option<PathBuf> {
    Path::new(asked).exists().then(|| PathBuf::from(asked))
}

/// Warns that a stored run or record is used instead of the file of the same name in the current directory.
fn warn_of_shadowed_file(name: &OsStr, taken: &str) {
    if existing_file(name).is_some() {
        page::warn(&format!(
            "{0}: {taken} is taken, and not the file of this directory, which ./{0} names",
            name.to_string_lossy()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::FORMAT;

    /// A home with three names: one of a record, a baseline and a run, one of a baseline and a run, one of a run.
    fn home() -> (tempfile::TempDir, Archive) {
        let home = tempfile::tempdir().unwrap();
        let archive = Archive { home: home.path().join("criterion") };
        let store = Store::at(&archive.home);
        let run = |run: &str, tool: &str| {
            let text = serde_json::json!({
                "format": FORMAT, "tool": tool, "run": run, "started": 1, "scale": "smoke", "unit": "ns", "seed": 1,
                "fingerprint": {}, "groups": [{ "name": "g", "version": "", "notes": [], "fits": [], "cpu": null,
                "clock": { "source": "tsc", "hz": 1.0, "uncertainty_ppm": 1.0 }, "cases": [
                { "id": "g/a", "title": "", "outcome": { "failed": "no" } }] }],
            });
            serde_json::from_value::<Record>(text).unwrap()
        };
        let bundle = Bundle::from_records("main", 1, vec![run("a", "record")]).unwrap();
        bundle.save_in(&store).unwrap();
        std::fs::create_dir_all(store.baseline_path("main").unwrap().parent().unwrap()).unwrap();
        for name in ["main", "older"] {
            let text = serde_json::to_vec(&run("b", "baseline")).unwrap();
            std::fs::write(store.baseline_path(name).unwrap(), text).unwrap();
        }
        for name in ["main", "older", "20261120T134405-1"] {
            store.save_run(&run(name, "run")).unwrap();
        }
        (home, archive)
    }

    #[test]
    fn a_record_comes_before_a_baseline_and_that_before_a_run_and_that_before_a_file() {
        let (home, archive) = home();
        let file = home.path().join("carried.json");
        std::fs::copy(Store::at(&archive.home).run_path("older").unwrap(), &file).unwrap();
        let tool = |asked: &OsStr| archive.load_head(asked).unwrap().tool;
        assert_eq!(tool(OsStr::new("main")), "record");
        assert_eq!(tool(OsStr::new("older")), "baseline");
        assert_eq!(tool(OsStr::new("20261120T134405-1")), "run");
        assert_eq!(archive.load_head(file.as_os_str()).unwrap().name, "carried");
        assert_eq!(archive.load_bundle(OsStr::new("main")).unwrap().records.len(), 1);
    }

    #[test]
    fn a_name_that_is_kept_comes_before_a_file_of_the_current_directory() {
        let (home, archive) = home();
        let file = home.path().join("carried.json");
        std::fs::copy(Store::at(&archive.home).run_path("older").unwrap(), &file).unwrap();
        let mut record = archive.load_bundle(OsStr::new("main")).unwrap().records.remove(0);
        record.run = "x".into();
        Bundle::from_records("Cargo.toml.1", 1, vec![record]).unwrap().save_in(&archive.store()).unwrap();
        // The tests run in a directory that has such a file.
        assert!(Path::new("Cargo.toml").is_file());
        assert!(
            matches!(archive.resolve_name(OsStr::new("Cargo.toml")).unwrap(), Found::Session(name, _) if name == "Cargo.toml")
        );
        assert!(
            matches!(archive.resolve_name(OsStr::new("./Cargo.toml")).unwrap(), Found::File(file) if file == Path::new("./Cargo.toml"))
        );
        assert!(
            matches!(archive.resolve_name(file.as_os_str()).unwrap(), Found::File(found) if found == file)
        );
    }

    #[test]
    fn a_session_name_gives_all_its_records_unless_another_file_has_that_name() {
        let (_home, archive) = home();
        for (number, run) in [(1, "x"), (2, "y")] {
            let mut record = archive.load_bundle(OsStr::new("main")).unwrap().records.remove(0);
            record.run = run.into();
            for name in ["night", "main"] {
                let bundle =
                    Bundle::from_records(&format!("{name}.{number}"), 1, vec![record.clone()]).unwrap();
                bundle.save_in(&archive.store()).unwrap();
            }
        }
        let runs = |name: &str| archive.load_bundle(OsStr::new(name)).unwrap().records.len();
        assert_eq!((runs("night"), runs("night.2"), runs("main")), (2, 1, 1));
        assert_eq!(archive.load_head(OsStr::new("night")).unwrap().runs.len(), 2);
        let night = archive.load_run(Some(OsStr::new("night"))).unwrap();
        assert_eq!((night.run.as_str(), night.cases().count()), ("night", 1));
        assert_eq!(archive.load_run(Some(OsStr::new("night.2"))).unwrap().run, "y");
    }

    #[test]
    fn an_unknown_name_gives_an_error_with_the_nearest_name() {
        let (_home, archive) = home();
        let sentence = archive.load_head(OsStr::new("mian")).unwrap_err().to_string();
        assert!(sentence.contains("no file mian; the nearest are main, "), "{sentence}");
        let empty = Archive { home: "nowhere".into() };
        let sentence = empty.load_head(OsStr::new("main")).unwrap_err().to_string();
        assert!(sentence.contains("`syscost record` makes a record"), "{sentence}");
    }
}
