//! `scripts/new-group` on a copy of this tree: the files that it makes keep the rules, and it breaks nothing.

use crate::house::House;
use crate::rule::{complaints, listed, wiring_complaints};
use std::process::{Command, Output, Stdio};

/// Runs the script on a copy of this tree. Returns its output and the tree afterwards.
fn stamp(arguments: &[&str]) -> (Output, House) {
    stamp_on(&crate::this_crate(), arguments)
}

fn stamp_on(house: &House, arguments: &[&str]) -> (Output, House) {
    let directory = tempfile::tempdir().unwrap();
    house.write(directory.path());
    let mut command = Command::new("bash");
    command.arg("scripts/new-group").args(arguments).current_dir(directory.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    (output, House::read(directory.path()))
}

#[test]
fn a_stamped_group_keeps_the_rules() {
    // Names that sort first, in the middle and last. Only one of them is checked by all rules, which takes seconds.
    for name in ["coffee_break", "a", "zebra2"] {
        let (output, house) = stamp(&[name]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(house.has(&format!("src/suite/{name}.rs")) && house.has(&format!("benches/{name}.rs")));
        let found = if name == "a" { complaints(&house) } else { wiring_complaints(&house) };
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn the_example_is_the_last_id() {
    let (_, house) = stamp(&["coffee_break"]);
    let ids = house.text("fixtures/ids.txt");
    assert_eq!(ids, format!("{}coffee_break/example\n", crate::this_crate().text("fixtures/ids.txt")));
}

#[test]
fn a_list_of_one_line_and_a_list_of_many_lines_both_grow() {
    let short = "pub mod call;\n\npub const GROUPS: &[Group] = &[call::GROUP];\n";
    let mut grown = crate::this_crate().with("src/suite.rs", short);
    let names =
        ["first_of_a_long_list", "second_of_a_long_list", "third_of_a_long_list", "fourth_of_a_long_list"];
    for (at, name) in names.iter().enumerate() {
        let (output, stamped) = stamp_on(&grown, &[name]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = stamped.text("src/suite.rs");
        assert_eq!(listed(text), [&["call"], &names[..=at]].concat(), "{text}");
        assert!(!text.contains(",,") && !text.contains("\n,"), "{text}");
        grown = stamped;
    }
}

#[test]
fn modules_stay_in_their_order() {
    let (_, house) = stamp(&["empty_page"]);
    let modules = house.text("src/suite.rs").lines().filter(|line| line.starts_with("pub mod "));
    let modules: Vec<_> = modules.collect();
    assert!(modules.is_sorted() && modules.contains(&"pub mod empty_page;"), "{modules:?}");
}

#[test]
fn what_cannot_be_a_group_is_refused_and_nothing_changes() {
    let before: Vec<_> = crate::this_crate().files().map(|(p, t)| (p.to_owned(), t.to_owned())).collect();
    for arguments in [
        &["call"][..],
        &["call"],
        &["Fault"],
        &["page-fault"],
        &["_a"],
        &["loop"],
        &["misc"],
        &[],
        &["a", "b"],
    ] {
        let (output, house) = stamp(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("new-group: "), "{arguments:?}");
        assert!(house.files().eq(before.iter().map(|(p, t)| (p.as_str(), t.as_str()))), "{arguments:?}");
    }
}
