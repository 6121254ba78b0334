//! Builds a git revision: in a temporary worktree, with a target directory that all revisions share. The binary is
//! kept, so that no revision is compiled twice.

use crate::error::{Error, Result};
use crate::platform::plain_file;
use crate::trial::scratch::{self, Scratch};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The bench binary of this revision of the repository around the current directory. `say` is given a line before a
/// build.
///
/// # Errors
/// There is no such revision, it does not build, or it has not exactly one bench and none of this name.
pub fn built(rev: &str, bench: Option<&str>, say: &dyn Fn(&str)) -> Result<PathBuf> {
    let commit = commit(rev)?;
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    let inside = git(&["rev-parse", "--show-prefix"])?;
    let home = target(&top)?.join("syscost-ab");
    let kept = home.join(format!("{commit}-{}", bench.unwrap_or("suite")));
    if kept.is_file() {
        return Ok(kept);
    }
    let worktree = Worktree::add(&top, &commit)?;
    say(&format!("building {rev} ({:.12}) in {}", commit, home.display()));
    let binaries = compile(&worktree.path().join(inside), &home.join("target"), bench)?;
    keep(&choose(binaries, rev, bench)?, &kept)
}

/// The commit of a revision of the repository around the current directory.
///
/// # Errors
/// There is no such revision.
pub fn commit(rev: &str) -> Result<String> {
    git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{rev}^{{commit}}")])
        .map_err(|_| Error::Usage(format!("{rev} is no revision of the git repository here")))
}

/// Lets `git bisect` run a command between a good and a bad commit, in a worktree of its own; whether it has found the first bad one. git says
/// what it does itself. What is built is shared with [`built`].
///
/// # Errors
/// There is no worktree to be had, or git refuses to start.
pub fn bisected([good, bad]: [&str; 2], command: &[String]) -> Result<bool> {
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    let inside = git(&["rev-parse", "--show-prefix"])?;
    let worktree = Worktree::add(&top, bad)?;
    let place = worktree.path().join(inside);
    git(&["-C", &place.display().to_string(), "bisect", "start", bad, good])?;
    let mut run = Command::new("git");
    run.args(["bisect", "run"]).args(command).current_dir(&place).env("CARGO_TARGET_DIR", target(&top)?);
    let status = run.status().map_err(|e| Error::file("git", "starting", e))?;
    Ok(status.success())
}

/// Copies a binary, whole or not at all, since the next revision overwrites it.
fn keep(binary: &Path, kept: &Path) -> Result<PathBuf> {
    // A name that no other process copies to, in another container either.
    let half = kept.with_extension(plain_file::random_word(12));
    let moved = std::fs::copy(binary, &half).and_then(|_| std::fs::rename(&half, kept));
    if moved.is_err() {
        // What was copied of it is of no use.
        let _ = std::fs::remove_file(&half);
    }
    moved.map_err(|e| Error::file(kept, "copying the binary to", e))?;
    Ok(kept.to_owned())
}

fn git(words: &[&str]) -> Result<String> {
    let output = Command::new("git").args(words).output();
    let output = output.map_err(|e| Error::file("git", "starting", e))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(Error::Usage(format!("git {}: {}", words.join(" "), said(&output.stderr)))),
    }
}

/// Cargo's target directory for this repository.
fn target(top: &Path) -> Result<PathBuf> {
    let given = std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let target = given.unwrap_or_else(|| top.join("target"));
    std::path::absolute(&target).map_err(|e| Error::file(target, "naming", e))
}

/// A worktree in the temporary directory, removed on drop. git forgets one whose owner was killed once its directory
/// is gone.
struct Worktree {
    top: PathBuf,
    directory: Scratch,
}

impl Worktree {
    fn add(top: &Path, commit: &str) -> Result<Self> {
        let directory = scratch::make()?;
        let worktree = Self { top: top.into(), directory };
        let path = worktree.path().display().to_string();
        // One that was killed left an entry without a directory.
        git(&["-C", &top.display().to_string(), "worktree", "prune"])?;
        git(&["-C", &top.display().to_string(), "worktree", "add", "--detach", "--quiet", &path, commit])?;
        Ok(worktree)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("tree")
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        // If git fails, the directory is removed anyway, and `git worktree prune` removes the entry later.
        let (top, path) = (self.top.display().to_string(), self.path().display().to_string());
        let _ = git(&["-C", &top, "worktree", "remove", "--force", &path]);
    }
}

/// Builds the benches; their names and executables.
fn compile(place: &Path, target: &Path, bench: Option<&str>) -> Result<Vec<(String, PathBuf)>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["bench", "--no-run", "--message-format=json-render-diagnostics"]);
    if let Some(bench) = bench {
        cargo.args(["--bench", bench]);
    }
    let output = cargo.current_dir(place).env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit()).output();
    let output = output.map_err(|e| Error::file("cargo", "starting", e))?;
    if !output.status.success() {
        return Err(Error::Usage(format!("the revision does not build ({}): see above", output.status)));
    }
    Ok(executables(&output))
}

fn executables(output: &Output) -> Vec<(String, PathBuf)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let built = text.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_bench = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "bench");
        let file = message["executable"].as_str().filter(|_| is_bench)?;
        Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(file)))
    });
    built.collect()
}

fn choose(binaries: Vec<(String, PathBuf)>, rev: &str, bench: Option<&str>) -> Result<PathBuf> {
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
