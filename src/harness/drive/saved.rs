//! What Criterion left on the disk: whole, or not at all. It writes its files in place, so a full disk leaves
//! empty ones behind, one of which is enough to make `critcmp` refuse the whole directory.

use crate::record::baseline;
use crate::record::store::read;
use crate::record::{GroupRun, Outcome};
use std::path::{Path, PathBuf};

/// What Criterion writes for a case under each name.
const FILES: [&str; 4] = ["benchmark.json", "estimates.json", "sample.json", "tukey.json"];

/// Looks at the files of every measured case, removes what is not whole, and says what is missing.
pub(super) fn sweep_up(run: &GroupRun, home: &Path, save: Option<&str>) -> Vec<String> {
    let measured = run.cases.iter().filter(|case| matches!(case.outcome, Outcome::Measured(_)));
    let directories = measured.flat_map(|case| {
        let case = home.join(baseline::directory(&case.id));
        save.into_iter().flat_map(move |name| [case.join("new"), case.join(name)])
    });
    directories.filter(|directory| !is_whole(directory)).map(|directory| removed(&directory)).collect()
}

fn is_whole(directory: &Path) -> bool {
    let parses = |path: PathBuf| {
        read(&path).is_ok_and(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).is_ok())
    };
    FILES.iter().all(|file| parses(directory.join(file)))
}

fn removed(directory: &Path) -> String {
    // If it cannot be removed either, the sentence still says that it is not whole.
    let _ = std::fs::remove_dir_all(directory);
    format!(
        "{}: Criterion could not write its files whole (no space left, or no right to write), so none is kept",
        directory.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::CaseRecord;

    fn run_of(id: &str) -> GroupRun {
        let outcome = Outcome::Measured(Box::default());
        GroupRun {
            name: "call".into(),
            cases: vec![CaseRecord { id: id.into(), title: String::new(), outcome }],
            ..GroupRun::default()
        }
    }

    #[test]
    fn half_written_files_are_removed_and_whole_ones_stay() {
        let home = tempfile::tempdir().expect("a directory");
        let case = home.path().join("call/u64_3");
        for name in ["new", "base"] {
            std::fs::create_dir_all(case.join(name)).expect("made");
            FILES.iter().for_each(|file| std::fs::write(case.join(name).join(file), "{}").expect("written"));
        }
        assert_eq!(sweep_up(&run_of("call/u64/3"), home.path(), Some("base")), Vec::<String>::new());
        std::fs::write(case.join("base/sample.json"), "").expect("truncated");
        let sentences = sweep_up(&run_of("call/u64/3"), home.path(), Some("base"));
        assert_eq!(sentences.len(), 1);
        assert!(sentences[0].contains("u64_3/base"), "{}", sentences[0]);
        assert!(case.join("new").exists() && !case.join("base").exists());
    }
}
