//! Builds a git revision: in a borrowed tree (`borrowed_tree`), with a target directory that all revisions share. The binary is
//! kept, so that no revision is compiled twice.

use super::borrowed_tree::BorrowedTree;
use super::git::{self, Repository};
use crate::error::{Error, Result};
use crate::platform::plain_file;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The bench binary of this revision of the user's repository. `say` is given a line before a build.
///
/// # Errors
/// There is no such revision, it does not build, or it has not exactly one bench and none of this name.
pub fn build_revision(rev: &str, bench: Option<&str>, say: &dyn Fn(&str)) -> Result<PathBuf> {
    let repository = Repository::find()?;
    let commit = repository.resolve_commit(rev)?;
    let home = target_directory(&repository)?.join("syscost-ab");
    let kept = home.join(format!("{commit}-{}", bench.unwrap_or("suite")));
    if kept.is_file() {
        return Ok(kept);
    }
    let tree = BorrowedTree::checkout(&repository, &commit)?;
    tree.filter_notes().iter().for_each(|note| say(&format!("{rev}: {note}")));
    say(&format!("building {rev} ({commit:.12}) in {}", home.display()));
    let place = package_directory(&tree, &repository, rev)?;
    let binaries = build_benches(&place, &home.join("target"), bench)?;
    keep_binary(&choose_binary(binaries, rev, bench)?, &kept)
}

/// The commit of a revision of the user's repository.
///
/// # Errors
/// There is no such revision, or no repository that git reads.
pub fn resolve_commit(rev: &str) -> Result<String> {
    Repository::find()?.resolve_commit(rev)
}

/// Lets `git bisect` run a command between a good and a bad commit, in a tree of its own; whether it has found the first bad one. git prints its
/// own progress. The builds are shared with [`build_revision`].
///
/// # Errors
/// The tree cannot be made, or git refuses to start.
pub fn run_bisection([good, bad]: [&str; 2], command: &[String]) -> Result<bool> {
    let repository = Repository::find()?;
    let tree = BorrowedTree::checkout(&repository, bad)?;
    let place = package_directory(&tree, &repository, bad)?;
    let target = target_directory(&repository)?;
    git::git_output(tree.git_command().args(["bisect", "start", bad, good]))?;
    let mut run = Command::new("git");
    git::forget_repository(&mut run);
    run.args(["bisect", "run"]).args(command).current_dir(&place).env("CARGO_TARGET_DIR", target);
    let status = run.status().map_err(|e| Error::file("git", "starting", e))?;
    Ok(status.success())
}

/// The current directory, as the tree has it.
fn package_directory(tree: &BorrowedTree, repository: &Repository, rev: &str) -> Result<PathBuf> {
    let place = tree.path().join(&repository.inside);
    if place.is_dir() {
        return Ok(place);
    }
    Err(Error::Usage(format!(
        "{rev} has no directory {}, in which the package is now: name a revision that has it",
        repository.inside.display()
    )))
}

/// Copies a binary, whole or not at all, since the next revision overwrites it.
fn keep_binary(binary: &Path, kept: &Path) -> Result<PathBuf> {
    // A name that no other process copies to, in another container either.
    let half = kept.with_extension(plain_file::random_word(12));
    let moved = std::fs::copy(binary, &half).and_then(|_| std::fs::rename(&half, kept));
    if moved.is_err() {
        // A partial copy is useless.
        let _ = std::fs::remove_file(&half);
    }
    moved.map_err(|e| Error::file(kept, "copying the binary to", e))?;
    Ok(kept.to_owned())
}

/// Cargo's target directory for this repository.
fn target_directory(repository: &Repository) -> Result<PathBuf> {
    let given = std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let target = given.or_else(|| Some(repository.top_directory()?.join("target"))).ok_or_else(|| {
        Error::Usage(format!(
            "{} is a repository without files, so there is no place for what is built: name one by CARGO_TARGET_DIR",
            repository.display_path().display()
        ))
    })?;
    std::path::absolute(&target).map_err(|e| Error::file(target, "naming", e))
}

/// Builds the benches; their names and executables.
fn build_benches(place: &Path, target: &Path, bench: Option<&str>) -> Result<Vec<(String, PathBuf)>> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(&program);
    cargo.args(["bench", "--no-run", "--message-format=json-render-diagnostics"]);
    git::forget_repository(&mut cargo);
    if let Some(bench) = bench {
        cargo.args(["--bench", bench]);
    }
    let output = cargo.current_dir(place).env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit()).output();
    let output = output.map_err(|e| Error::file(program, "starting", e))?;
    if !output.status.success() {
        return Err(Error::Usage(format!("the revision does not build ({}): see above", output.status)));
    }
    Ok(bench_executables(&output))
}

fn bench_executables(output: &Output) -> Vec<(String, PathBuf)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let built = text.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_bench = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "bench");
        let file = message["executable"].as_str().filter(|_| is_bench)?;
        Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(file)))
    });
    built.collect()
}

fn choose_binary(binaries: Vec<(String, PathBuf)>, rev: &str, bench: Option<&str>) -> Result<PathBuf> {
    let names: Vec<_> = binaries.iter().map(|(name, _)| name.clone()).collect();
    let wanted = bench.map_or("suite", |bench| bench);
    let only = binaries.len() == 1;
    let found = binaries.into_iter().find(|(name, _)| only || name == wanted);
    found.map(|(_, file)| file).ok_or_else(|| {
        let names = if names.is_empty() { "none".into() } else { names.join(", ") };
        Error::Usage(format!(
            "{rev} builds several benches or none: choose by --bench NAME; there are {names}"
        ))
    })
}
