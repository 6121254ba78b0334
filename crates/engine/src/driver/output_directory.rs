//! Where Criterion's files and the records beside them are.

use crate::platform::process::own_program_file;
use crate::record::quantity::NANOSECONDS;
use std::path::{Path, PathBuf};

/// `$CRITERION_HOME`, else `criterion` in Cargo's target directory, else `target/criterion` here. Criterion finds the
/// same place by asking Cargo for its metadata, which takes a second. The program `syscost`, which serves many crates, takes the
/// one here first if runs are kept there.
pub fn criterion_home() -> PathBuf {
    let from_environment = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let target = || {
        from_environment("CARGO_TARGET_DIR")
            .or_else(|| {
                own_program_file()
                    .ok()
                    .and_then(|exe| local_target_directory(&exe).or_else(|| target_directory_of(&exe)))
            })
            .unwrap_or_else(|| PathBuf::from("target"))
    };
    from_environment("CRITERION_HOME").unwrap_or_else(|| target().join("criterion"))
}

/// The target directory of the crate here, if this is the program and not a bench, and something is kept in it.
fn local_target_directory(exe: &Path) -> Option<PathBuf> {
    let is_program = exe.file_name().is_some_and(|name| name == "syscost");
    let target = PathBuf::from("target");
    (is_program && target.join("criterion/syscost").is_dir()).then_some(target)
}

/// The target directory that an executable was built in: Cargo marks its root with `CACHEDIR.TAG`.
fn target_directory_of(exe: &Path) -> Option<PathBuf> {
    exe.ancestors().skip(1).find(|dir| dir.join("CACHEDIR.TAG").is_file()).map(Path::to_path_buf)
}

/// The directory for values of this unit: `home` itself for nanoseconds, `home-UNIT` beside it for others, so that no
/// tool compares a count with a time.
pub(super) fn home_for_unit(unit: &str, home: &Path) -> PathBuf {
    if unit == NANOSECONDS {
        return home.to_path_buf();
    }
    let name = home.file_name().map_or_else(|| "criterion".into(), |n| n.to_string_lossy().into_owned());
    home.with_file_name(format!("{name}-{unit}"))
}

/// The directory for values of this many copies: `home` itself for one, `home-N-copies` beside it for several.
pub(super) fn home_for_copies(copies: usize, home: &Path) -> PathBuf {
    if copies > 1 { home_for_unit(&format!("{copies}-copies"), home) } else { home.to_path_buf() }
}

/// This directory and the existing ones beside it for other units and for several copies.
pub fn homes_of_all_units(home: &Path) -> Vec<PathBuf> {
    let events = crate::platform::perf_event::EVENTS.iter().map(|event| event.name);
    use crate::record::quantity::{CALLGRIND, DISPLACED, INSTRUCTIONS};
    let others = events.chain([DISPLACED, INSTRUCTIONS, CALLGRIND]).map(|unit| home_for_unit(unit, home));
    let copies = (2..=crate::platform::cpu::initial_cpus().len()).map(|copies| home_for_copies(copies, home));
    let others = others.chain(copies).filter(|other| other.is_dir());
    std::iter::once(home.to_path_buf()).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_binary_finds_its_target_directory() {
        let exe = std::env::current_exe().expect("an executable");
        let target = target_directory_of(&exe).expect("built by Cargo");
        assert!(exe.starts_with(&target), "{}", target.display());
    }

    #[test]
    fn several_copies_live_elsewhere() {
        let home = Path::new("target/criterion");
        assert_eq!(home_for_copies(1, home), home);
        assert_eq!(home_for_copies(16, home), Path::new("target/criterion-16-copies"));
    }

    #[test]
    fn other_units_live_elsewhere() {
        let home = Path::new("target/criterion");
        assert_eq!(home_for_unit("ns", home), home);
        assert_eq!(home_for_unit("page-faults", home), Path::new("target/criterion-page-faults"));
    }
}
