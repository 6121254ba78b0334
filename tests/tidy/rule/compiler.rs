//! The oldest compiler that `Cargo.toml` names can build all of the workspace: code and dependencies ask for no newer one.

use crate::code::{code, line};
use crate::house::House;
use std::path::Path;
use std::process::Command;

/// Major and minor number of a compiler.
type Version = (u32, u32);

/// The first version that accepts `if let … && …`. Clippy checks the library (`incompatible_msrv`), but not the language.
const LET_CHAINS: Version = (1, 88);

pub fn complaints(house: &House) -> Vec<String> {
    let Some(oldest) = oldest_compiler(house.text("Cargo.toml")) else { return Vec::new() };
    let chains = house.rust().filter(|_| oldest < LET_CHAINS).flat_map(|(path, text)| {
        let code = code(text);
        let lines: Vec<_> = let_chains(&code).map(|at| line(&code, at)).collect();
        lines
            .into_iter()
            .map(move |number| format!("{path}:{number}: `let` joined by && needs rustc 1.88; {RAISE}"))
    });
    chains.collect()
}

const RAISE: &str = "write it without, or raise rust-version in Cargo.toml";

fn oldest_compiler(manifest: &str) -> Option<Version> {
    version(manifest.split("\nrust-version = \"").nth(1)?.split('"').next()?)
}

fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Where a condition joins a `let` with another condition.
fn let_chains(code: &str) -> impl Iterator<Item = usize> {
    code.match_indices("let ").map(|(at, _)| at).filter(|at| {
        let before = code[..*at].trim_end();
        let is_condition = ["if", "while"].iter().any(|word| before.ends_with(word));
        before.ends_with("&&") || (is_condition && joins_more(&code[*at..]))
    })
}

/// Whether `&&` stands between the value of this `let` and the block behind it, outside of all brackets.
fn joins_more(from_let: &str) -> bool {
    let value = from_let.split_once('=').map_or("", |(_, value)| value);
    let mut depth = 0;
    for (at, character) in value.char_indices() {
        match character {
            '{' if depth == 0 => return false,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '&' if depth == 0 && value[at..].starts_with("&& ") => return true,
            _ => {}
        }
    }
    false
}

/// The dependencies, those of tests included, that need a newer compiler than the workspace names. Without cargo an error.
pub fn newer_dependencies(root: &Path) -> Result<Vec<String>, String> {
    let platform = "--filter-platform=x86_64-unknown-linux-gnu";
    let words = ["metadata", "--format-version=1", "--locked", "--offline", platform];
    let output =
        Command::new(env!("CARGO")).args(words).current_dir(root).output().map_err(|e| e.to_string())?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned())?;
    let oldest =
        oldest_compiler(&std::fs::read_to_string(root.join("Cargo.toml")).map_err(|e| e.to_string())?);
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let newer = packages.iter().filter(|package| package["rust_version"].as_str().and_then(version) > oldest);
    Ok(newer
        .map(|package| format!("{} needs rustc {}; {RAISE}", package["id"], package["rust_version"]))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_on(version: &str, text: &str) -> Vec<String> {
        let manifest = format!("[workspace.package]\nrust-version = \"{version}\"\n");
        complaints(&House::default().with("Cargo.toml", &manifest).with("src/x.rs", text))
    }

    #[test]
    fn a_let_chain_needs_a_newer_compiler_than_is_named() {
        for chain in [
            "if a && let Some(b) = c {}",
            "if let [a] = b\n    && a.c {}",
            "while let Some(a) = f(&|| b && c)\n && d {}",
        ] {
            assert_eq!(complaints_on("1.86", chain).len(), 1, "{chain}");
            assert_eq!(complaints_on("1.88", chain), [""; 0]);
        }
    }

    #[test]
    fn other_conditions_are_none() {
        for none in [
            "if let Some(a) = f(b && c) { d && e }",
            "let a = b && c;",
            "if let Some(a) =\n f()\n{\n b = c && d; }",
            "if a && b { let c = 1; }",
            "// if a && let b",
        ] {
            assert_eq!(complaints_on("1.86", none), [""; 0], "{none}");
        }
    }
}
