//! Rule: the crates depend on each other in one direction, and each only on those that its purpose needs (the map of `README.md`).

use crate::house::House;

/// Each crate with the crates that its code may name. Crates that only tests name (`[dev-dependencies]`) are not checked.
const ARROWS: [(&str, &[&str]); 15] = [
    ("platform", &[]),
    ("statistic", &[]),
    ("counters", &["platform", "statistic"]),
    ("technique", &["counters", "platform", "statistic"]),
    ("engine", &["counters", "platform", "statistic"]),
    ("criterion", &["engine", "platform", "statistic"]),
    ("analysis", &["engine", "platform", "statistic"]),
    ("build", &["analysis", "engine", "platform", "statistic"]),
    ("command-case", &["engine", "platform"]),
    ("command-line", &["analysis", "build", "command-case", "engine", "platform", "statistic"]),
    (
        ROOT,
        &[
            "analysis",
            "command-case",
            "command-line",
            "counters",
            "engine",
            "platform",
            "statistic",
            "technique",
        ],
    ),
    ("monitor", &["command-line", "counters", "engine", "platform", "statistic", "technique"]),
    ("kernels", &[ROOT, "analysis", "command-line", "engine", "platform", "statistic"]),
    ("selftest", &[ROOT, "analysis", "build", "command-line", "engine", "platform", "statistic"]),
    ("track", &[ROOT, "analysis", "build", "command-line", "engine", "kernels", "platform", "statistic"]),
];

/// The package at the top, with the groups and the commands.
const ROOT: &str = "syscost";

pub fn complaints(house: &House) -> Vec<String> {
    let manifests = house.files().filter_map(|(path, text)| Some((crate_of(path)?, path, text)));
    manifests.flat_map(|(name, path, text)| dependency_complaints(name, path, text)).collect()
}

/// The crate whose manifest lies at this path.
fn crate_of(path: &str) -> Option<&str> {
    let folder = path.strip_suffix("Cargo.toml")?;
    if folder.is_empty() {
        return Some(ROOT);
    }
    let name = folder.strip_prefix("crates/")?.strip_suffix('/')?;
    (!name.contains('/')).then_some(name)
}

fn dependency_complaints(name: &str, path: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![format!("{path}: tests/tidy/rule/arrow.rs does not say what the crate {name} may name")];
    };
    let named = dependencies(manifest).filter(|to| !allowed.contains(to));
    named
        .map(|to| format!("{path}: {name} names the crate {to}, which the map of README.md does not show"))
        .collect()
}

/// The crates of the workspace under `[dependencies]`, without the common beginning of their names.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let section = manifest.split_once("\n[dependencies]\n").map_or("", |(_, behind)| behind);
    section.lines().take_while(|line| !line.starts_with('[')).filter_map(|line| {
        let name = line.split([' ', '.', '=']).next()?;
        (name == ROOT).then_some(name).or_else(|| name.strip_prefix("syscost-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint_count(path: &str, named: &str) -> usize {
        let manifest = format!(
            "[package]\nname = \"x\"\n\n[dependencies]\n{named}\n\n[dev-dependencies]\nsyscost = 1\n"
        );
        complaints(&House::default().with(path, &manifest)).len()
    }

    #[test]
    fn an_arrow_that_is_not_on_the_map_is_found() {
        let engine = "crates/engine/Cargo.toml";
        assert_eq!(complaint_count(engine, "libc = \"1\"\nsyscost-platform.workspace = true"), 0);
        assert_eq!(complaint_count(engine, "syscost-analysis.workspace = true"), 1);
        assert_eq!(complaint_count(engine, "syscost = { path = \"../..\" }"), 1);
        assert_eq!(complaint_count("Cargo.toml", "syscost-kernels = { workspace = true }"), 1);
        assert_eq!(complaint_count("crates/new/Cargo.toml", ""), 1);
    }
}
