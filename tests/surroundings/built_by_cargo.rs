//! Revisions of real packages, built by the real cargo: with the toolchain that the user has chosen, from a workspace, with
//! features.

use crate::place::{Ended, Place, SYSCOST};
use std::path::{Path, PathBuf};
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// A bench that prints a variable of its build.
const BENCH: &str = "fn main() { println!(\"{}\", option_env!(\"RUSTUP_TOOLCHAIN\").unwrap_or(\"none\")) }";

/// A git repository, as a user would have it.
struct Repository<'a> {
    place: &'a Place,
    root: PathBuf,
}

impl<'a> Repository<'a> {
    /// A repository of this name with one commit of these packages: directory, name of the bench, further lines of the manifest.
    /// `None` where there is no cargo, or no git.
    fn new(place: &'a Place, name: &str, packages: &[(&str, &str, &str)]) -> Option<Self> {
        let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
        if !is_there("git") || std::env::var_os("CARGO").is_none() {
            print_skipped("there is no git or no cargo here");
            return None;
        }
        let repository = Self { place, root: place.path().join(name) };
        for (directory, bench, rest) in packages {
            let package = repository.root.join(directory);
            std::fs::create_dir_all(package.join("benches")).unwrap();
            std::fs::create_dir_all(package.join("src")).unwrap();
            std::fs::write(package.join("src/lib.rs"), "").unwrap();
            std::fs::write(package.join(format!("benches/{bench}.rs")), BENCH).unwrap();
            let name = directory.rsplit('/').next().filter(|name| *name != ".").unwrap_or("top");
            let manifest = format!(
                "[package]\nname = \"{name}\"\nedition = \"2021\"\n[[bench]]\nname = \"{bench}\"\nharness = false\n{rest}"
            );
            std::fs::write(package.join("Cargo.toml"), manifest).unwrap();
        }
        repository.git(&["init", "--quiet", "."]);
        // A commit starts the maintenance in the background, and the tests would take it for a leftover process.
        repository.git(&["config", "maintenance.auto", "false"]);
        Some(repository)
    }

    fn program(&self, program: &str) -> Command {
        let mut command = self.place.program(program);
        command.current_dir(&self.root).env_remove("CARGO_TARGET_DIR").env_remove("RUSTUP_TOOLCHAIN");
        // Calls the compiler beside cargo directly: the toolchain that the stand-in for rustup names is not installed.
        let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap());
        command.env("RUSTC", cargo.with_file_name("rustc"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = [self.place.path().to_owned()].into_iter().chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(all).unwrap());
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "a").env(format!("GIT_{role}_EMAIL"), "a@b");
        }
        command
    }

    fn git(&self, words: &[&str]) {
        let output = self.program("git").args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    fn commit(&self) {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", "a"]);
    }

    /// Builds the newest commit, in this directory of the repository. The benches use no harness, so the comparison ends after
    /// the build.
    fn compare(&self, directory: &str, words: &[&str]) -> Ended {
        let mut command = self.program(SYSCOST);
        command
            .current_dir(self.root.join(directory))
            .args(["ab", "--a-rev", "HEAD", "--b-rev", "HEAD"])
            .args(words);
        self.place.end(command)
    }

    /// The description of the only kept build, and what the kept bench prints.
    fn kept(&self) -> (String, String) {
        let builds = crate::place::files(&self.root.join("target/syscost-ab"), "build.json");
        let [build] = &builds[..] else { panic!("{builds:?}") };
        let output = Command::new(build.with_file_name("bench")).output().unwrap();
        let kept = std::fs::read_to_string(build).unwrap();
        std::fs::remove_dir_all(self.root.join("target/syscost-ab")).unwrap();
        (kept, String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// Makes a stand-in for rustup that reports this toolchain and the origin of the choice.
    fn choose_toolchain(&self, name: &str, origin: &str, file: &Path) {
        let text = format!("{name} ({origin} '{}')", file.display());
        self.place.script("rustup", &format!("#!/bin/sh\ncat << 'END'\n{text}\nEND\n"));
    }
}

#[test]
fn a_revision_is_built_by_the_toolchain_that_the_user_has_chosen_for_the_directory() {
    let place = Place::new();
    let Some(repository) = Repository::new(&place, "tool", &[(".", "suite", "")]) else { return };
    repository.commit();
    let file = repository.root.join("rust-toolchain.toml");
    for (origin, path) in [("directory override for", &repository.root), ("overridden by", &file)] {
        std::fs::write(&file, "").unwrap();
        repository.choose_toolchain("x-86", origin, path);
        let ended = repository.compare("", &[]);
        assert!(ended.error.contains("HEAD: built by x-86, which is chosen for this directory"), "{ended:?}");
        let (description, printed) = repository.kept();
        assert!(description.contains("\"toolchain\":\"x-86\""), "{description}");
        assert_eq!(printed, "x-86");
    }
    // A file that git tracks belongs to the revisions.
    repository.commit();
    std::fs::remove_file(&file).unwrap();
    let ended = repository.compare("", &[]);
    assert!(!ended.error.contains("chosen for this directory"), "{ended:?}");
}

#[test]
fn a_compiler_that_is_missing_is_named_by_rustups_error() {
    let place = Place::new();
    let Some(repository) = Repository::new(&place, "none", &[(".", "suite", "")]) else { return };
    repository.commit();
    place.script("rustup", "#!/bin/sh\nexit 1\n");
    let rustc = "#!/bin/sh\nprintf \"error: toolchain '1.9' is not installed\\nhelp: install it\\n  13: <unknown>\\n\" >&2\nexit 1\n";
    let mut command = repository.program(SYSCOST);
    command.env("RUSTC", place.script("rustc", rustc));
    let ended = place.end({
        command.args(["ab", "--a-rev", "HEAD", "--b-rev", "HEAD"]);
        command
    });
    assert!(
        ended.error.contains("error: toolchain '1.9' is not installed; `rustup toolchain install"),
        "{ended:?}"
    );
}

#[test]
fn a_bench_of_a_workspace_is_built_with_its_profile_and_its_features() {
    let place = Place::new();
    let gated = "required-features = [\"more\"]\n[features]\nmore = []\n";
    let packages = [("w/m", "gated", gated), ("w/n", "suite", ""), ("w/o", "suite", "")];
    let Some(repository) = Repository::new(&place, "line\nfeed", &packages) else { return };
    let workspace =
        "[workspace]\nresolver = \"2\"\nmembers = [\"m\", \"n\", \"o\"]\n[profile.bench]\ndebug = 1\n";
    std::fs::write(repository.root.join("w/Cargo.toml"), workspace).unwrap();
    repository.commit();
    // A default toolchain is not chosen for this directory.
    place.script("rustup", "#!/bin/sh\necho 'x-86 (default)'\n");

    let ended = repository.compare("w", &[]);
    assert!(ended.error.contains("has several benches suite: suite (in n), suite (in o); run"), "{ended:?}");
    let ended = repository.compare("w", &["--bench", "none"]);
    assert!(ended.error.contains("has no bench none") && !ended.error.contains("building"), "{ended:?}");
    let ended = repository.compare("w", &["--bench", "gated"]);
    assert!(ended.error.contains("requires the features: `more`"), "{ended:?}");
    repository.compare("w", &["--bench", "gated", "--features", "more"]);
    let (description, _) = repository.kept();
    assert!(description.contains("debug = 1") && description.contains("--features more"), "{description}");
    repository.compare("w/o", &[]);
    assert!(repository.kept().0.contains("\"package\":\"w/o\""));
}

#[test]
fn a_flag_of_a_build_without_a_revision_is_refused() {
    let place = Place::new();
    let ended = place.end(place.syscost(&["ab", "--b-wrap", "true", "--all-features"]));
    assert!(ended.error.contains("--all-features says how a revision is built"), "{ended:?}");
}
