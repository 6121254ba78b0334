//! A group whose timed code has changed is another series, unless the two were compared and found the same.
//!
//! `fixtures/operations.txt` has a line for each group: its name, its version, and a hash of all code that can be
//! executed between its brackets. The hash knows no comments, no documentation and no tests.

use super::group::groups;
use crate::code::code;
use crate::house::House;

const PATH: &str = "fixtures/operations.txt";

/// The rooms that an operation is built of. What the others have is set-up, claims and records.
const ROOMS: [&str; 8] = ["suite", "kit", "platform", "clock", "counters", "technique", "peer", "statistic"];

pub fn complaints(house: &House) -> Vec<String> {
    let (found, written) = (lines(house), house.text(PATH));
    let stamped = |name: &str| written.lines().find(|line| line.split(' ').next() == Some(name));
    let changed = found.iter().filter_map(|line| {
        let name = line.split(' ').next()?;
        match stamped(name) {
            Some(old) if old == line => None,
            None => Some(format!("{PATH}: {name} has no line; `scripts/operation --stamp {name}` writes it")),
            Some(old) => Some(format!(
                "{PATH}: {name} is `{old}` and should be `{line}`: code that is timed has changed; \
                 `scripts/operation {name}` compares it with the last commit, and stamps it or asks for a new version"
            )),
        }
    });
    let is_left = |line: &&str| !found.iter().any(|f| f.split(' ').next() == line.split(' ').next());
    let left = written.lines().filter(is_left).map(|line| format!("{PATH}: there is no group of `{line}`"));
    changed.chain(left).collect()
}

/// What the file should hold, in the order of the groups' names.
pub fn lines(house: &House) -> Vec<String> {
    let syntax = house.syntax();
    let line = |(name, text): (&str, &str)| {
        let hash = fnv(&syntax.reached(&vec!["suite".into(), name.into()], &ROOMS));
        format!("{name} {} {hash:016x}", version(text))
    };
    groups(house).map(line).collect()
}

/// The number behind `version` in the group's declaration.
fn version(text: &str) -> u32 {
    let code = code(text);
    let after = code.split_once("pub const GROUP").and_then(|(_, group)| group.split_once("version"));
    let digits = after.map_or("", |(_, after)| after.trim_start_matches(['(', ':', ' ']));
    digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(1)
}

/// FNV-1a, 64 bits: it need not resist anybody.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What `scripts/operation` writes.
#[test]
#[ignore = "it prints the lines of fixtures/operations.txt for scripts/operation"]
fn operations_as_they_are() {
    for line in lines(&crate::this_crate()) {
        println!("operation {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house() -> House {
        let house = House::default()
            .with("src/suite/a.rs", "use crate::platform::time;\npub const GROUP: Group = Group { name: \"a\", version: 3 };\nfn f() { time() }")
            .with("src/platform.rs", "/// Time.\npub fn time() { tick(1) }\nfn other() {}");
        let stamped = lines(&house).join("\n");
        house.with(PATH, &stamped)
    }

    #[test]
    fn a_comment_a_manual_and_a_test_change_nothing() {
        assert_eq!(complaints(&house()), [""; 0]);
        assert!(house().text(PATH).starts_with("a 3 "), "{}", house().text(PATH));
        let reworded = house().replacing("src/platform.rs", "/// Time.", "/// The time. // Now.").replacing(
            "src/platform.rs",
            "fn other() {}",
            "fn another() {}\n#[cfg(test)]\nmod tests { fn t() {} }",
        );
        assert_eq!(complaints(&reworded), [""; 0]);
    }

    #[test]
    fn one_changed_instruction_in_another_room_is_found() {
        let said = complaints(&house().replacing("src/platform.rs", "tick(1)", "tick(2)"));
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("a is `a 3 ") && said[0].contains("`scripts/operation a`"), "{said:?}");
    }

    #[test]
    fn a_new_version_a_new_group_and_a_group_that_went_are_found() {
        assert_eq!(complaints(&house().replacing("src/suite/a.rs", "version: 3", "version: 4")).len(), 1);
        let more = house().with("src/suite/b.rs", "pub const GROUP: Group = Group::new(\"b\");");
        assert!(complaints(&more)[0].contains("b has no line"), "{:?}", complaints(&more));
        assert_eq!(complaints(&house().without("src/suite/a.rs")).len(), 1);
    }
}
