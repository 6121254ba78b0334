//! The crate tests its own structure as text, so that the source keeps the structure that its documentation describes.
//!
//! A [`house::House`] is a tree of files in memory. A rule is a function that returns a sentence for each place where a
//! house breaks it. Each rule is tested on small invented houses that break it on purpose.
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(unreachable_pub, reason = "nobody reaches into a test; `pub` says what a module offers")]

mod code;
mod house;
mod new_group;
mod reference;
mod rule;
mod syntax;

use house::House;
use std::path::Path;
use syscost_platform::testing::print_skipped;

fn this_crate() -> House {
    House::read(Path::new(env!("CARGO_MANIFEST_DIR")))
}

#[test]
fn this_crate_keeps_its_own_rules() {
    let complaints = rule::complaints(&this_crate());
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn no_dependency_needs_a_newer_compiler_than_the_workspace_names() {
    match rule::newer_dependencies(Path::new(env!("CARGO_MANIFEST_DIR"))) {
        Ok(newer) => assert!(newer.is_empty(), "\n{}\n", newer.join("\n")),
        Err(why) => print_skipped(&format!("`cargo metadata` cannot tell what the dependencies need: {why}")),
    }
}
