//! The facts that a build depends on besides the sources of its commit: the compiler, its flags, the profile, the linker. They
//! are the key of a kept build. Two builds whose facts differ do not compare the sources alone.

use super::git::{self, Repository};
use super::neighbours::outside_dependencies;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use syscost_platform::error::{Error, Result};
use syscost_platform::process::tool;

/// Prefixes of the environment variables that change what cargo and rustc build.
const VARIABLES: [&str; 8] = [
    "CARGO_BUILD_",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "CC",
    "CFLAGS",
    "RUSTC",
    "RUSTFLAGS",
];
/// Variables with such a prefix that only name a directory and do not change the build.
const PLACES: [&str; 3] = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"];

/// The variable that names a toolchain to rustup.
pub(super) const TOOLCHAIN: &str = "RUSTUP_TOOLCHAIN";

/// The facts of one build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildFacts {
    /// Directory of the package below the top of the sources. Several packages may have a bench of the same name.
    #[serde(default)]
    pub package: PathBuf,
    /// The toolchain, if it is chosen for the user's directory and not by the sources.
    pub toolchain: Option<String>,
    /// The arguments of cargo that choose features.
    #[serde(default)]
    pub features: String,
    /// The output of `rustc -vV` in the directory of the sources.
    pub compiler: String,
    /// The profiles of the manifest at the root of the workspace, as TOML.
    pub profiles: String,
    /// The variables that change a build.
    pub environment: BTreeMap<String, String>,
    /// Digests of the configuration files that cargo merges; those nearest to the sources come first. Their texts are not
    /// kept, because they may contain tokens.
    pub configuration: Vec<String>,
    /// Digest of the lock file of the workspace; `None` if the commit has none.
    pub lock: Option<String>,
    /// Directories outside of the repository that manifests name as path dependencies, with digests of their files.
    #[serde(default)]
    pub outside: BTreeMap<PathBuf, String>,
    /// Flags that align functions and loops; empty for a plain build.
    pub alignment: String,
    /// The linker, if the command of the link is known.
    pub linker: Option<String>,
}

impl BuildFacts {
    /// The facts of a build of these sources, before it is made. `top` is the top of the repository, `root` the root of the workspace;
    /// `given` holds what the user has chosen: toolchain, features and alignment.
    ///
    /// # Errors
    /// The compiler cannot be started, or a file cannot be read.
    pub fn read(sources: &Path, top: &Path, root: &Path, given: Self) -> Result<Self> {
        let environment = std::env::vars_os()
            .map(|(name, value)| [name, value].map(|word| word.to_string_lossy().into_owned()));
        let changes_builds =
            |name: &str| !PLACES.contains(&name) && VARIABLES.iter().any(|start| name.starts_with(start));
        let configuration = configuration_files(sources);
        Ok(Self {
            package: sources.strip_prefix(top).unwrap_or(sources).to_owned(),
            compiler: compiler(sources, given.toolchain.as_deref())?,
            profiles: profiles(&root.join("Cargo.toml"))?,
            environment: environment
                .filter(|[name, _]| changes_builds(name))
                .map(|[name, value]| (name, value))
                .collect(),
            configuration: configuration.iter().filter_map(|file| digest(file)).collect(),
            lock: digest(&root.join("Cargo.lock")),
            outside: outside_dependencies(top),
            ..given
        })
    }

    /// The key of these facts: a digest of 16 hexadecimal digits.
    pub fn key(&self) -> String {
        short_digest(format!("{self:?}").as_bytes())
    }

    /// A sentence for each fact in which the builds of the two sides differ.
    pub fn differences(a: &Self, b: &Self) -> Vec<String> {
        let [compiler_a, compiler_b] = [a, b].map(|facts| facts.compiler.lines().next().unwrap_or_default());
        let [profiles_a, profiles_b] = [a, b].map(|facts| one_line(&facts.profiles));
        let [features_a, features_b] = [a, b].map(|facts| one_line(&facts.features));
        let [linker_a, linker_b] = [a, b].map(|facts| facts.linker.as_deref().unwrap_or("an unknown linker"));
        let found = [
            (a.compiler != b.compiler).then(|| {
                format!("A was built by {compiler_a}, B by {compiler_b}: the compiler is part of the change")
            }),
            (a.profiles != b.profiles).then(|| {
                format!("the profiles of the manifests differ (A: {profiles_a}; B: {profiles_b}): the flags of the compiler are part of the change")
            }),
            (a.features != b.features).then(|| {
                format!("the features differ (A: {features_a}; B: {features_b}): they are part of the change")
            }),
            (a.configuration != b.configuration).then(|| {
                "the configuration of cargo (.cargo/config.toml) differs between A and B: its flags are part of the change".into()
            }),
            (a.outside != b.outside).then(|| {
                "a dependency outside of the repository differs between A and B: it is part of the change".into()
            }),
            (a.linker != b.linker).then(|| {
                format!("A was linked by `{linker_a}`, B by `{linker_b}`: the linker is part of the change")
            }),
        ];
        found.into_iter().flatten().collect()
    }
}

/// The digest of a file's bytes; `None` if it cannot be read.
fn digest(file: &Path) -> Option<String> {
    std::fs::read(file).ok().map(|bytes| short_digest(&bytes))
}

/// The first 16 hexadecimal digits of SHA-256.
pub(super) fn short_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn one_line(toml: &str) -> String {
    let text = toml.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { "none".into() } else { text }
}

/// The output of `rustc -vV` of this toolchain in the directory of the sources. Without `toolchain`, a `rust-toolchain.toml`
/// among the sources may choose another compiler than in the current directory.
pub(super) fn compiler(sources: &Path, toolchain: Option<&str>) -> Result<String> {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(&program);
    git::forget_repository(&mut rustc);
    rustc.envs(toolchain.map(|name| (TOOLCHAIN, name)));
    let output =
        rustc.arg("-vV").current_dir(sources).output().map_err(|e| Error::file(&program, "starting", e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(Error::Usage(format!(
        "`rustc -vV` failed {}; `rustup toolchain install NAME` installs a toolchain that is missing",
        tool::failure_message(&output)
    )))
}

/// The table `profile` of a manifest, in the order of its keys.
fn profiles(manifest: &Path) -> Result<String> {
    let Ok(text) = std::fs::read_to_string(manifest) else { return Ok(String::new()) };
    let table: toml::Table = text
        .parse()
        .map_err(|e: toml::de::Error| Error::Usage(format!("{}: {}", manifest.display(), e.message())))?;
    Ok(table.get("profile").map(ToString::to_string).unwrap_or_default())
}

/// The configuration files that cargo reads in a directory ("Hierarchical structure" in its reference): first those of the
/// directory and its parents, then that of cargo's home.
fn configuration_files(sources: &Path) -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty());
    let home = home
        .or_else(|| std::env::var_os("HOME").map(|home: OsString| Path::new(&home).join(".cargo").into()));
    let directories =
        sources.ancestors().map(|directory| directory.join(".cargo")).chain(home.map(PathBuf::from));
    let mut files: Vec<PathBuf> = Vec::new();
    for directory in directories {
        let found = ["config", "config.toml"]
            .map(|name| directory.join(name))
            .into_iter()
            .find(|file| file.is_file());
        files.extend(found.filter(|file| !files.contains(file)));
    }
    files
}

// The toolchain that a user has chosen for a directory, but not in the commits: by `rustup override set`, or by a
// `rust-toolchain.toml` that git does not track. rustup finds neither from the temporary directory of a revision.

/// The names of the file that chooses a toolchain.
const FILES: [&str; 2] = ["rust-toolchain.toml", "rust-toolchain"];

/// The toolchain of the current directory, if a build must be given it explicitly. The build runs in `place`, below the top
/// of a revision's `tree`. `None` if rustup chooses the right toolchain there by itself, or if there is no rustup.
///
/// # Errors
/// The toolchain of the current directory is not installed.
pub(super) fn chosen_toolchain(repository: &Repository, tree: &Path, place: &Path) -> Result<Option<String>> {
    let Ok(shown) = tool::command("rustup").args(["show", "active-toolchain"]).output() else {
        return Ok(None);
    };
    if !shown.status.success() {
        // The compiler may not be one of rustup's.
        return compiler(Path::new("."), None).map(|_| None);
    }
    let text = String::from_utf8_lossy(&shown.stdout);
    let Some((name, origin, is_file)) = parse_choice(&text) else { return Ok(None) };
    let inside = repository.top_directory().and_then(|top| Path::new(origin).strip_prefix(top).ok());
    let is_tracked = |file: &Path| {
        let pattern = format!(":(top,literal){}", file.display());
        repository.read(&["ls-files", "--error-unmatch", "--", &pattern]).is_ok()
    };
    let is_of_commits = is_file && inside.is_some_and(is_tracked);
    // An override for a directory of the repository outranks a file of the revision; one for a directory above does not.
    let is_first = !is_file && inside.is_some();
    let applies = !is_of_commits && (is_first || !has_own_file(tree, place));
    Ok(applies.then(|| name.to_owned()))
}

/// Whether the revision chooses a toolchain by a file.
fn has_own_file(tree: &Path, place: &Path) -> bool {
    let directories = place.ancestors().take_while(|directory| directory.starts_with(tree));
    directories.into_iter().any(|directory| FILES.iter().any(|name| directory.join(name).is_file()))
}

/// The name of the toolchain, the directory or file that chooses it, and whether that is a file. `None` for a choice that
/// holds in every directory: the default, and the variable `RUSTUP_TOOLCHAIN`, which a build inherits.
fn parse_choice(shown: &str) -> Option<(&str, &str, bool)> {
    let (name, reason) = shown.trim().split_once(" (")?;
    let (words, rest) = reason.split_once('\'')?;
    let is_file = match words.trim() {
        "directory override for" => false,
        "overridden by" => true,
        _ => return None,
    };
    Some((name, rest.rsplit_once('\'')?.0, is_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> BuildFacts {
        BuildFacts { compiler: "rustc 1.95.0 (x)\nhost: h".into(), ..BuildFacts::default() }
    }

    #[test]
    fn each_changed_fact_changes_the_key_and_is_named() {
        let plain = facts();
        for (other, sentence) in [
            (
                BuildFacts { compiler: "rustc 1.94.0 (y)\nhost: h".into(), ..facts() },
                "A was built by rustc 1.95.0 (x), B by rustc 1.94.0 (y): the compiler is part of the change",
            ),
            (
                BuildFacts { profiles: "bench = { lto = true }".into(), ..facts() },
                "A: none; B: bench = { lto = true }",
            ),
            (BuildFacts { features: "--all-features".into(), ..facts() }, "A: none; B: --all-features"),
            (BuildFacts { configuration: vec!["x".into()], ..facts() }, ".cargo/config.toml"),
            (
                BuildFacts { outside: [("/core".into(), "x".into())].into(), ..facts() },
                "a dependency outside of the repository differs",
            ),
            (BuildFacts { linker: Some("cc -fuse-ld=mold".into()), ..facts() }, "B by `cc -fuse-ld=mold`"),
        ] {
            assert_ne!(plain.key(), other.key());
            let found = BuildFacts::differences(&plain, &other);
            assert!(found.len() == 1 && found[0].contains(sentence), "{found:?}");
        }
        let other_package = BuildFacts { package: "inner".into(), ..facts() };
        assert_ne!(plain.key(), other_package.key());
        let lock = BuildFacts { lock: Some("another".into()), ..facts() };
        assert_ne!(plain.key(), lock.key());
        assert!(BuildFacts::differences(&plain, &lock).is_empty(), "a dependency is a change of the sources");
        assert_eq!(plain.key(), facts().key());
    }

    #[test]
    fn the_facts_of_sources_are_read_where_they_lie() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("inner");
        std::fs::create_dir_all(inner.join(".cargo")).unwrap();
        std::fs::write(
            place.path().join("Cargo.toml"),
            "[package]\nname = \"x\"\n[profile.bench]\nlto = true\n",
        )
        .unwrap();
        std::fs::write(inner.join(".cargo/config.toml"), "[build]\n").unwrap();
        let read = |root: &Path| BuildFacts::read(&inner, place.path(), root, BuildFacts::default());
        let facts = read(place.path()).unwrap();
        assert!(facts.compiler.starts_with("rustc "), "{facts:?}");
        assert!(facts.profiles.contains("lto") && facts.configuration[0].len() == 16, "{facts:?}");
        let root = place.path().join("inner");
        std::fs::write(root.join("Cargo.toml"), "[profile.bench]\ndebug = 1\n").unwrap();
        std::fs::write(root.join("Cargo.lock"), "").unwrap();
        let of_workspace = read(&root).unwrap();
        assert!(of_workspace.profiles.contains("debug") && of_workspace.lock.is_some(), "{of_workspace:?}");
        assert!(facts.lock.is_none());
        std::fs::write(place.path().join("Cargo.toml"), "[profile").unwrap();
        let error = read(place.path()).unwrap_err().to_string();
        assert!(error.contains("Cargo.toml"), "{error}");
    }

    #[test]
    fn a_choice_for_a_directory_differs_from_a_global_choice() {
        for (shown, expected) in [
            ("1.86.0-x (directory override for '/a (b)')\n", Some(("1.86.0-x", "/a (b)", false))),
            (
                "1.86.0-x (overridden by '/it's/rust-toolchain.toml')",
                Some(("1.86.0-x", "/it's/rust-toolchain.toml", true)),
            ),
            ("1.86.0-x (overridden by environment variable RUSTUP_TOOLCHAIN)", None),
            ("1.86.0-x (environment override by RUSTUP_TOOLCHAIN)", None),
            ("stable-x (default)", None),
            ("", None),
        ] {
            assert_eq!(parse_choice(shown), expected, "{shown}");
        }
    }

    #[test]
    fn a_file_of_a_revision_is_looked_for_up_to_its_top() {
        let scratch = tempfile::tempdir().unwrap();
        let (tree, place) = (scratch.path().join("tree"), scratch.path().join("tree/a/b"));
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(scratch.path().join("rust-toolchain"), "").unwrap();
        assert!(!has_own_file(&tree, &place));
        std::fs::write(tree.join("rust-toolchain.toml"), "").unwrap();
        assert!(has_own_file(&tree, &place));
    }
}
