//! Rule: only certain files contain `unsafe`, and every block there names the invariant that makes it sound.

use crate::code::{code, is_of_a_word, line, manual, words};
use crate::house::House;

/// How far above its block a SAFETY comment may begin: a statement may need some lines before `unsafe`.
const REACH_LINES: usize = 4;

pub fn complaints(house: &House) -> Vec<String> {
    house.rust().flat_map(|(path, text)| file_complaints(path, text)).collect()
}

fn file_complaints(path: &str, text: &str) -> Vec<String> {
    let code = code(text);
    if !may_use_unsafe(path) {
        let places = words(&code, "unsafe").chain(code.find("allow(unsafe_code)"));
        return places
            .map(|at| {
                format!(
                    "{path}:{}: unsafe may stand in crates/platform, src/kit, operation*.rs of src/suite and the emulator's plugin",
                    line(&code, at)
                )
            })
            .collect();
    }
    let mut said = blocks_without_reason(path, text, &code);
    said.extend(undeclared_invariants(path, text));
    if code.contains("#![allow(unsafe_code)]") && invariants(text).is_none() {
        said.push(format!("{path}: it allows unsafe code and has no `# Invariants` in its `//!`"));
    }
    said
}

/// Whether a file may contain `unsafe`: one of the platform, of the shared parts of groups, an operation of a group, or the plugin,
/// which an emulator calls. The group that README.md adds is an example of such a group.
fn may_use_unsafe(path: &str) -> bool {
    let is_operation = || path.rsplit('/').next().is_some_and(|file| file.starts_with("operation"));
    ["crates/platform/", "src/kit/", "crates/kernels/plugin/"].iter().any(|room| path.starts_with(room))
        || (["src/suite/", "fixtures/example_group/"].iter().any(|room| path.starts_with(room))
            && is_operation())
}

fn blocks_without_reason(path: &str, text: &str, code: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let blocks = words(code, "unsafe").filter(|at| {
        let next = code[at + "unsafe".len()..].trim_start();
        next.starts_with('{') || next.starts_with("impl")
    });
    let bare = blocks.map(|at| line(code, at)).filter(|number| {
        let near = &lines[number.saturating_sub(REACH_LINES + 1)..*number];
        !near.iter().any(|line| line.contains("// SAFETY:"))
    });
    bare.map(|number| format!("{path}:{number}: unsafe without a SAFETY comment near above it")).collect()
}

fn undeclared_invariants(path: &str, text: &str) -> Vec<String> {
    let declared = invariants(text).unwrap_or_default();
    let comments =
        text.lines().zip(1..).filter_map(|(l, number)| Some((l.split_once("// SAFETY:")?.1, number)));
    let cited =
        comments.flat_map(|(reason, number)| cited(reason).into_iter().map(move |name| (name, number)));
    let unknown = cited.filter(|(name, _)| !declared.contains(&format!("**{name}**")));
    unknown
        .map(|(name, number)| format!("{path}:{number}: {name} is not among the file's `# Invariants`"))
        .collect()
}

/// The text of the file under `# Invariants`.
fn invariants(text: &str) -> Option<String> {
    manual(text).split_once("# Invariants\n").map(|(_, after)| after.to_owned())
}

/// The names in capitals at the beginning of a reason: one, or several separated by commas.
fn cited(reason: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = reason.trim_start();
    loop {
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '-').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        // `PR_SET_NAME` and `A` are no invariants.
        if name.len() < 3 || after.starts_with(is_of_a_word) {
            return names;
        }
        names.push(name);
        let Some(next) = after.strip_prefix(", ").or_else(|| after.strip_prefix(" and ")) else {
            return names;
        };
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "//! Words.\n//!\n//! # Invariants\n//!\n//! * **PURE**: it is.\n#![allow(unsafe_code)]\n\n\
                        fn f() {\n    // SAFETY: PURE. And more.\n    let x = 1\n        + unsafe { g() };\n}\n";

    fn complaints_on(path: &str, text: &str) -> Vec<String> {
        complaints(&House::default().with(path, text))
    }

    #[test]
    fn unsafe_is_allowed_in_certain_files_only() {
        assert_eq!(complaints_on("crates/platform/src/x.rs", GOOD), [""; 0]);
        assert_eq!(complaints_on("src/trial/x.rs", GOOD).len(), 2, "the block and the permission");
        assert_eq!(
            complaints_on("src/trial/x.rs", "// unsafe\n#![deny(unsafe_code)]\nf(\"unsafe\")"),
            [""; 0]
        );
    }

    #[test]
    fn a_block_without_a_reason_is_found() {
        let said = complaints_on("crates/platform/src/x.rs", &GOOD.replace("// SAFETY: PURE.", "// PURE."));
        assert_eq!(said, ["crates/platform/src/x.rs:11: unsafe without a SAFETY comment near above it"]);
        assert_eq!(
            super::tests::complaints_on("crates/platform/src/y.rs", "unsafe impl Send for T {}").len(),
            1
        );
        assert_eq!(super::tests::complaints_on("crates/platform/src/y.rs", "pub unsafe fn f() {}").len(), 0);
    }

    #[test]
    fn an_undeclared_invariant_is_found() {
        let said = complaints_on(
            "crates/platform/src/x.rs",
            &GOOD.replace("SAFETY: PURE.", "SAFETY: PURE, OWN-WORD: both."),
        );
        assert_eq!(said, ["crates/platform/src/x.rs:9: OWN-WORD is not among the file's `# Invariants`"]);
    }

    #[test]
    fn a_reason_in_plain_words_needs_no_declaration() {
        assert_eq!(
            complaints_on(
                "crates/platform/src/x.rs",
                &GOOD.replace("SAFETY: PURE.", "SAFETY: PR_SET_NAME copies.")
            ),
            [""; 0]
        );
    }

    #[test]
    fn a_permission_without_invariants_is_found() {
        assert_eq!(
            complaints_on("crates/platform/src/x.rs", &GOOD.replace("# Invariants", "# Notes")).len(),
            2
        );
    }
}
