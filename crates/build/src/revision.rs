//! Builds a git revision in a borrowed tree (`borrowed_tree`), with a target directory that all revisions share. Each build is
//! kept under the facts that it depends on. So no revision is compiled twice, and a build by another compiler is not reused.

use super::borrowed_tree::BorrowedTree;
use super::build_facts::{BuildFacts, TOOLCHAIN, chosen_toolchain};
use super::git::{self, Repository};
use super::link::LinkCommand;
use super::workspace::{BenchTarget, Workspace};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use syscost_platform::error::{Error, Result};
use syscost_platform::plain_file;
use syscost_platform::process::tool::quote_for_shell;

/// Flags of LLVM that make every function and every loop begin at a cache line. With them the code addresses of two builds
/// of one source differ least; links average over the rest. Measured: see `EVIDENCE.md`, "Links of one build".
const ALIGNMENT: &str = "-align-all-functions=6 -align-loops=64";
/// The file that describes the contents of the directory of a kept build.
const DESCRIPTION: &str = "build.json";
/// The kept binary.
const BINARY: &str = "bench";

/// A build that is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Built {
    /// The facts that the build depends on besides its sources.
    pub facts: BuildFacts,
    /// The command that links the build again; `None` if that is impossible.
    pub link: Option<LinkCommand>,
    /// The directory of the kept build.
    #[serde(skip)]
    directory: PathBuf,
}

impl Built {
    /// The path of the bench binary as the build has linked it.
    pub fn binary(&self) -> PathBuf {
        self.directory.join(BINARY)
    }

    /// The directory in which all builds are kept. Links of the builds can be made there, too.
    pub fn home(&self) -> &Path {
        self.directory.parent().unwrap_or(&self.directory)
    }

    fn load(directory: &Path) -> Option<Self> {
        let text = std::fs::read(directory.join(DESCRIPTION)).ok()?;
        let built: Self = serde_json::from_slice(&text).ok()?;
        let built = Self { directory: directory.to_owned(), ..built };
        let is_whole =
            built.binary().is_file() && built.link.as_ref().is_none_or(LinkCommand::has_all_inputs);
        is_whole.then_some(built)
    }

    /// Removes a kept build that cannot be loaded, to make room for a new one. The removal is atomic for other processes.
    fn discard(directory: &Path) {
        let aside = directory.with_file_name(format!("{}.partial", plain_file::random_word(12)));
        if std::fs::rename(directory, &aside).is_ok() {
            // A failure costs only disk space.
            let _ = std::fs::remove_dir_all(aside);
        }
    }
}

/// The bench target to build, and the options of the build.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The bench target; `None` for the only one or `suite`.
    pub bench: Option<String>,
    /// Arguments of cargo that choose features.
    pub features: Vec<String>,
    /// Whether functions and loops are aligned.
    pub is_aligned: bool,
}

/// The bench of this revision of the user's repository, which is built unless a build is kept. Before a build `say` is
/// called with lines for the user.
///
/// # Errors
/// There is no such revision, it does not build, or it has no bench of the given name; without a name, neither
/// a single bench nor `suite`.
pub fn build_revision(rev: &str, recipe: &Recipe, say: &dyn Fn(&str)) -> Result<Built> {
    let repository = Repository::find()?;
    let commit = repository.resolve_commit(rev)?;
    let home = target_directory(&repository)?.join("syscost-ab");
    let mut tree = BorrowedTree::checkout(&repository, &commit)?;
    let place = package_directory(&tree, &repository, rev)?;
    let alignment = if recipe.is_aligned { ALIGNMENT } else { "" };
    let toolchain = chosen_toolchain(&repository, tree.path(), &place)?;
    let workspace = read_workspace(&place, toolchain.as_deref())?;
    let bench = workspace.choose_bench(rev, recipe.bench.as_deref())?;
    let given = BuildFacts {
        toolchain,
        features: recipe.features.join(" "),
        alignment: alignment.to_owned(),
        ..BuildFacts::default()
    };
    let facts = BuildFacts::read(&place, tree.path(), &workspace.root, given)?;
    let kept = home.join(format!("{commit:.16}-{}-{}", bench.name, facts.key()));
    if let Some(built) = Built::load(&kept) {
        return Ok(built);
    }
    tree.missing_files_notes().iter().for_each(|note| say(&format!("{rev}: {note}")));
    if let Some(toolchain) = &facts.toolchain {
        say(&format!(
            "{rev}: built by {toolchain}, which is chosen for this directory and not by the revision"
        ));
    }
    for outside in facts.outside.keys() {
        say(&format!("{rev}: {} is outside of the repository, and built as it is now", outside.display()));
    }
    say(&format!("building {rev} ({commit:.12}) in {}", home.display()));
    if !facts.outside.is_empty() && tree.is_newer_than(&home) {
        tree.move_to_common_path(&format!("{}{:?}", repository.display_path().display(), facts.outside));
    }
    // The tree may lie elsewhere now, with its manifests.
    let place = package_directory(&tree, &repository, rev)?;
    let bench = read_workspace(&place, facts.toolchain.as_deref())?.choose_bench(rev, Some(&bench.name))?;
    if kept.exists() {
        say(&format!("{rev}: the kept build {} is incomplete, and is made anew", kept.display()));
        Built::discard(&kept);
    }
    // No other process builds in a directory of this random name, not even in another container.
    let partial = home.join(format!("{}.partial", plain_file::random_word(12)));
    std::fs::create_dir_all(&partial).map_err(|e| Error::file(&partial, "making", e))?;
    let built = build_into(&partial, &kept, &place, facts, &bench, recipe, say);
    if built.is_err() {
        // The rest of a failed build is useless.
        let _ = std::fs::remove_dir_all(&partial);
    }
    built
}

/// Builds in `partial`, and moves the finished build to `kept`.
fn build_into(
    partial: &Path,
    kept: &Path,
    place: &Path,
    facts: BuildFacts,
    bench: &BenchTarget,
    recipe: &Recipe,
    say: &dyn Fn(&str),
) -> Result<Built> {
    let home = kept.parent().unwrap_or(kept);
    // Cargo does not see the flags that a wrapper of the compiler adds, so aligned builds need a target directory of their own.
    let flags = if recipe.is_aligned { ALIGNMENT.replace([' ', '='], "") } else { String::new() };
    let (target, printed) = (home.join(format!("target{flags}")), partial.join("link-args"));
    let mut cargo = cargo_command(place, &target, facts.toolchain.as_deref());
    cargo.args([
        "rustc",
        "--profile",
        "bench",
        "--message-format=json-render-diagnostics",
        "--bench",
        &bench.name,
    ]);
    cargo.arg("--manifest-path").arg(&bench.manifest).args(&recipe.features);
    if recipe.is_aligned {
        cargo.env("RUSTC_WRAPPER", aligning_wrapper(home)?);
    }
    // `save-temps` keeps the objects of the last crate, so that they can be linked again.
    cargo.args(["--", "-C", "save-temps", "--print"]).arg(format!("link-args={}", printed.display()));
    let binary = bench_executable(&run_cargo(&mut cargo)?, &bench.name)?;
    std::fs::copy(&binary, partial.join(BINARY)).map_err(|e| Error::file(&binary, "copying", e))?;
    let link = read_link_command(&printed, kept, partial, say);
    remove_temporaries(&binary, &target);
    let facts = BuildFacts { linker: link.as_ref().map(LinkCommand::linker), ..facts };
    let built = Built { facts, link, directory: kept.to_owned() };
    let description = partial.join(DESCRIPTION);
    let bytes =
        serde_json::to_vec(&built).map_err(|e| Error::file(&description, "writing as JSON", e.into()))?;
    std::fs::write(&description, bytes).map_err(|e| Error::file(&description, "writing", e))?;
    // Another process may have kept the same build meanwhile. The two builds are equivalent.
    if let Err(error) = std::fs::rename(partial, kept) {
        let theirs = Built::load(kept).ok_or_else(|| Error::file(kept, "moving the build to", error))?;
        let _ = std::fs::remove_dir_all(partial);
        return Ok(theirs);
    }
    Ok(built)
}

/// The command of the last link, with its inputs in the directory of the kept build. `None`, and a line to `say`, on failure.
fn read_link_command(printed: &Path, kept: &Path, partial: &Path, say: &dyn Fn(&str)) -> Option<LinkCommand> {
    let read = || {
        let text = std::fs::read_to_string(printed).map_err(|e| Error::file(printed, "reading", e))?;
        LinkCommand::from_rustc(&text, partial)
    };
    match read() {
        Ok(command) => Some(command.moved(partial, kept)),
        Err(error) => {
            say(&format!(
                "this build cannot be linked again, so that its layout is part of what is compared: {error}"
            ));
            None
        }
    }
}

/// Removes the files that `-C save-temps` has left beside a binary in our own target directory. They are large and were
/// copied before.
fn remove_temporaries(binary: &Path, target: &Path) {
    let directory = binary.parent().filter(|directory| directory.starts_with(target));
    let (Some(directory), Some(name)) = (directory, binary.file_name()) else { return };
    let start = format!("{}.", name.to_string_lossy());
    let is_temporary =
        |file: &str| file.starts_with(&start) && (file.ends_with(".bc") || file.ends_with(".o"));
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if is_temporary(&entry.file_name().to_string_lossy()) {
            // A failure costs only disk space.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes the program that runs the compiler with the alignment flags, and returns its path. Cargo runs it for every crate;
/// it runs the user's compiler cache (`RUSTC_WRAPPER`), if there is one.
fn aligning_wrapper(home: &Path) -> Result<PathBuf> {
    let file = home.join("rustc-aligned");
    let own = std::env::var("RUSTC_WRAPPER").unwrap_or_default();
    let own = if own.is_empty() { own } else { quote_for_shell(&own) + " " };
    let text = format!("#!/bin/sh\nexec {own}\"$@\" -C llvm-args='{ALIGNMENT}'\n");
    if std::fs::read_to_string(&file).is_ok_and(|there| there == text) {
        return Ok(file);
    }
    let fresh = home.join(format!("{}.wrapper", plain_file::random_word(12)));
    let written = std::fs::write(&fresh, text)
        .and_then(|()| std::fs::set_permissions(&fresh, std::os::unix::fs::PermissionsExt::from_mode(0o755)))
        .and_then(|()| std::fs::rename(&fresh, &file));
    written.map_err(|e| Error::file(&file, "writing", e))?;
    Ok(file)
}

/// The commit hash of a revision of the user's repository.
///
/// # Errors
/// There is no such revision, or no repository that git can read.
pub fn resolve_commit(rev: &str) -> Result<String> {
    Repository::find()?.resolve_commit(rev)
}

/// Lets `git bisect` run a command between a good and a bad commit, in a tree of its own. Returns whether it has found the
/// first bad commit. git prints its own progress. The builds are shared with [`build_revision`].
///
/// # Errors
/// The tree cannot be made, or git refuses to start.
pub fn run_bisection([good, bad]: [&str; 2], command: &[String]) -> Result<bool> {
    let repository = Repository::find()?;
    let tree = BorrowedTree::checkout(&repository, bad)?;
    let place = package_directory(&tree, &repository, bad)?;
    let target = target_directory(&repository)?;
    let toolchain = chosen_toolchain(&repository, tree.path(), &place)?;
    git::git_output(tree.git_command().args(["bisect", "start", bad, good]))?;
    let mut run = Command::new("git");
    git::forget_repository(&mut run);
    run.args(["bisect", "run"]).args(command).current_dir(&place).env("CARGO_TARGET_DIR", target);
    run.envs(toolchain.map(|name| (TOOLCHAIN, name)));
    let status = run.status().map_err(|e| Error::file("git", "starting", e))?;
    Ok(status.success())
}

/// The directory of the tree that corresponds to the current directory.
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

/// The user's target directory of cargo for this repository.
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

/// A command for cargo of this toolchain in these sources, without the variables that name a git repository.
fn cargo_command(place: &Path, target: &Path, toolchain: Option<&str>) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    git::forget_repository(&mut cargo);
    cargo.current_dir(place).env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit());
    cargo.envs(toolchain.map(|name| (TOOLCHAIN, name)));
    // cargo 1.91 and later may build among the user's own builds (`build.build-dir`). In its value, braces mark variables.
    if !target.to_string_lossy().contains(['{', '}']) {
        cargo.env("CARGO_BUILD_BUILD_DIR", target);
    }
    cargo
}

/// Runs cargo and returns its output. The messages on the standard output are JSON.
fn run_cargo(cargo: &mut Command) -> Result<Output> {
    let output = cargo.output().map_err(|e| Error::file(cargo.get_program(), "starting", e))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(Error::Usage(format!("the revision does not build ({}): see above", output.status)))
}

/// The workspace around a directory of the sources.
fn read_workspace(place: &Path, toolchain: Option<&str>) -> Result<Workspace> {
    let mut cargo = cargo_command(place, place, toolchain);
    let output = run_cargo(cargo.args(["metadata", "--no-deps", "--format-version", "1"]))?;
    Workspace::parse(&output.stdout, place)
}

/// The executable that cargo's messages name for this bench.
fn bench_executable(output: &Output, bench: &str) -> Result<PathBuf> {
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_it = message["target"]["name"] == bench
            && message["target"]["kind"].as_array()?.iter().any(|kind| kind == "bench");
        message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
    });
    found.ok_or_else(|| Error::Usage(format!("cargo has built no executable of the bench {bench}")))
}
