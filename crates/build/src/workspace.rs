//! Reads cargo's metadata of the sources of a revision: the root of their workspace and their benches.

use serde_json::Value;
use std::path::{Path, PathBuf};
use syscost_platform::error::{Error, Result};

/// A bench target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BenchTarget {
    pub(super) name: String,
    /// The manifest of its package.
    pub(super) manifest: PathBuf,
}

/// The workspace around a directory.
pub(super) struct Workspace {
    /// The root directory, whose manifest has the profiles, and which has the lock file.
    pub(super) root: PathBuf,
    /// The benches of the package around the directory, or of all packages if the directory is in no package.
    benches: Vec<BenchTarget>,
}

impl Workspace {
    /// Reads what `cargo metadata --no-deps` printed in `place`.
    ///
    /// # Errors
    /// `metadata` is no JSON.
    pub(super) fn parse(metadata: &[u8], place: &Path) -> Result<Self> {
        let metadata: Value = serde_json::from_slice(metadata)
            .map_err(|e| Error::file(Path::new("cargo metadata"), "reading", e.into()))?;
        let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let nearest =
            place.ancestors().map(|directory| directory.join("Cargo.toml")).find(|file| file.is_file());
        // A manifest that declares only a workspace belongs to no package.
        let is_here =
            |package: &&Value| package["manifest_path"].as_str().map(Path::new) == nearest.as_deref();
        let here: Vec<_> = packages.iter().filter(is_here).cloned().collect();
        let packages = if here.is_empty() { packages } else { here };
        let root = metadata["workspace_root"].as_str().map_or(place.clone(), PathBuf::from);
        Ok(Self { root, benches: packages.iter().flat_map(package_benches).collect() })
    }

    /// The bench of this name; without a name the only bench, or `suite`.
    ///
    /// # Errors
    /// There is no such bench, or several packages have a bench of this name.
    pub(super) fn choose_bench(&self, rev: &str, bench: Option<&str>) -> Result<BenchTarget> {
        let wanted = bench.unwrap_or("suite");
        let is_only = self.benches.len() == 1 && bench.is_none();
        let found: Vec<_> = self.benches.iter().filter(|target| is_only || target.name == wanted).collect();
        let list = |targets: &[&BenchTarget]| {
            let names: Vec<_> = targets.iter().map(|target| self.describe(target)).collect();
            if names.is_empty() { "none".into() } else { names.join(", ") }
        };
        match found[..] {
            [target] => Ok(target.clone()),
            [] => Err(Error::Usage(format!(
                "{rev} has no bench {wanted}: choose one by --bench NAME; there are {}",
                list(&self.benches.iter().collect::<Vec<_>>())
            ))),
            _ => Err(Error::Usage(format!(
                "{rev} has several benches {wanted}: {}; run this command in the directory of the package that is meant",
                list(&found)
            ))),
        }
    }

    /// The name of a bench, with the directory of its package if that is not the root of the workspace.
    fn describe(&self, target: &BenchTarget) -> String {
        let package = target.manifest.parent().and_then(|directory| directory.strip_prefix(&self.root).ok());
        match package.filter(|directory| !directory.as_os_str().is_empty()) {
            Some(directory) => format!("{} (in {})", target.name, directory.display()),
            None => target.name.clone(),
        }
    }
}

/// The benches of a package.
fn package_benches(package: &Value) -> Vec<BenchTarget> {
    let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
    let is_bench = |target: &&Value| {
        target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "bench"))
    };
    let targets = package["targets"].as_array().into_iter().flatten().filter(is_bench);
    let names = targets.filter_map(|target| target["name"].as_str());
    names.map(|name| BenchTarget { name: name.to_owned(), manifest: manifest.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The workspace around `inside`, of packages with these benches.
    fn workspace(inside: &str, packages: &[(&str, &[&str])]) -> Workspace {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::write(root.join("Cargo.toml"), "").unwrap();
        let package = |(directory, benches): &(&str, &[&str])| {
            let manifest = root.join(directory).join("Cargo.toml");
            std::fs::create_dir_all(manifest.parent().unwrap()).unwrap();
            std::fs::write(&manifest, "").unwrap();
            let targets: Vec<_> =
                benches.iter().map(|name| json!({ "kind": ["bench"], "name": name })).collect();
            json!({ "manifest_path": manifest, "targets": targets })
        };
        let packages: Vec<_> = packages.iter().map(package).collect();
        let metadata = json!({ "workspace_root": root, "packages": packages }).to_string();
        std::fs::create_dir_all(root.join(inside)).unwrap();
        let found = Workspace::parse(metadata.as_bytes(), &root.join(inside)).unwrap();
        assert_eq!(found.root, root);
        found
    }

    #[test]
    fn a_bench_is_chosen_with_its_package() {
        let chosen = |inside, packages: &[(&str, &[&str])], bench| {
            let workspace = workspace(inside, packages);
            let target = workspace.choose_bench("HEAD", bench).map_err(|error| error.to_string())?;
            Ok::<_, String>(workspace.describe(&target))
        };
        let two: &[(&str, &[&str])] = &[("m", &["suite"]), ("n", &["suite", "other"])];
        assert_eq!(chosen("", &[("m", &["only"])], None).unwrap(), "only (in m)");
        assert_eq!(chosen("", two, Some("other")).unwrap(), "other (in n)");
        assert_eq!(chosen("n/src", two, None).unwrap(), "suite (in n)");
        assert_eq!(chosen("", &[("", &["suite"]), ("m", &["suite"])], None).unwrap(), "suite");
        let error = chosen("", two, None).unwrap_err();
        assert!(error.contains("suite (in m), suite (in n); run this command in the directory"), "{error}");
        let error = chosen("m", two, Some("other")).unwrap_err();
        assert!(error.contains("no bench other") && error.ends_with("there are suite (in m)"), "{error}");
        let error = chosen("", &[("", &[]), ("m", &["suite"])], None).unwrap_err();
        assert!(error.ends_with("there are none"), "{error}");
    }
}
