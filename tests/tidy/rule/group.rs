//! Rule: a group has one name in five places: its source, its bench target, its entry in the manifest, its row in the
//! list, and its ids. The source begins with the manual of the group.

use crate::code::{code, manual};
use crate::house::House;

/// The headings of a manual, in this order, so that a missing answer is noticed.
const HEADINGS: [&str; 6] =
    ["What is timed", "What is not", "How we know", "What fools it", "Reading the number", "Source"];

/// The most characters of a manual's first sentence, which is the line of the group in a list.
const SUMMARY: usize = 60;

pub fn complaints(house: &House) -> Vec<String> {
    groups(house)
        .flat_map(|(name, text)| {
            [
                wiring_complaints(house, name, text),
                heading_complaints(name, text),
                summary_complaints(name, text),
            ]
            .concat()
        })
        .collect()
}

/// The files of `src/suite` that declare a group: name and text.
pub fn groups(house: &House) -> impl Iterator<Item = (&str, &str)> {
    house.rust().filter_map(|(path, text)| {
        let name = path.strip_prefix("src/suite/")?.strip_suffix(".rs")?;
        code(text).contains("pub const GROUP: ").then_some((name, text))
    })
}

fn wiring_complaints(house: &House, name: &str, text: &str) -> Vec<String> {
    let entry = bench_entry(house.text("Cargo.toml"), name);
    let has = |line: &str| entry.contains(&line);
    let listed = listed(house.text("src/suite.rs"));
    let ids = house.text("fixtures/ids.txt");
    let checks = [
        (house.has(&format!("benches/{name}.rs")), format!("there is no benches/{name}.rs")),
        (!entry.is_empty(), format!("Cargo.toml has no [[bench]] named {name}")),
        (entry.is_empty() || has("harness = false"), "its [[bench]] does not say harness = false".into()),
        (entry.is_empty() || has("bench = false"), "its [[bench]] does not say bench = false".into()),
        (listed.contains(&name), "it is not among the GROUPS of src/suite.rs".into()),
        (text.contains(&format!("Group::new(\"{name}\",")), format!("its group is not named {name}")),
        (text.contains(&format!("include_str!(\"{name}.rs\")")), "its manual is not its own source".into()),
        (
            ids.lines().any(|id| id.starts_with(&format!("{name}/"))),
            "fixtures/ids.txt has none of its ids".into(),
        ),
    ];
    checks
        .into_iter()
        .filter(|(kept, _)| !kept)
        .map(|(_, why)| format!("src/suite/{name}.rs: {why}"))
        .collect()
}

/// The lines of the `[[bench]]` entry of this name; none if there is no such entry.
fn bench_entry<'a>(manifest: &'a str, name: &str) -> Vec<&'a str> {
    let named = format!("name = \"{name}\"");
    let entries = manifest.split("[[bench]]").skip(1).map(|after| {
        let lines = after.lines().take_while(|line| !line.starts_with('['));
        lines.map(|line| line.split('#').next().unwrap_or_default().trim()).collect::<Vec<_>>()
    });
    entries.into_iter().find(|lines| lines.contains(&named.as_str())).unwrap_or_default()
}

/// The names in the list `GROUPS`, in its order.
pub fn listed(text: &str) -> Vec<&str> {
    let list = text.split_once("pub const GROUPS").and_then(|(_, after)| after.split_once(';'));
    let list = list.map_or("", |(list, _)| list);
    let names =
        list.split("::GROUP").map(|before| before.rsplit([' ', '[', ',', '\n']).next().unwrap_or_default());
    names.filter(|name| !name.is_empty() && !name.contains(']')).collect()
}

fn heading_complaints(name: &str, text: &str) -> Vec<String> {
    let manual = format!("\n{}", manual(text));
    let sections: Vec<_> =
        manual.split("\n# ").skip(1).map(|s| s.split_once('\n').unwrap_or((s, ""))).collect();
    let headings: Vec<_> = sections.iter().map(|(heading, _)| *heading).collect();
    let mut said = Vec::new();
    if headings != HEADINGS {
        let wanted = HEADINGS.join(" · ");
        said.push(format!("src/suite/{name}.rs: the headings of its manual must be: {wanted}"));
    }
    let empty = sections.iter().filter(|(_, text)| text.trim().is_empty());
    said.extend(empty.map(|(heading, _)| format!("src/suite/{name}.rs: nothing stands under `# {heading}`")));
    said
}

/// The first sentence under `# What is timed`, as `scripts/groups` cuts it out, is short.
fn summary_complaints(name: &str, text: &str) -> Vec<String> {
    let manual = manual(text);
    let timed = manual.split_once("# What is timed\n").map_or("", |(_, timed)| timed).replace('\n', " ");
    let sentence =
        [". ", ": ", "; "].iter().fold(&*timed, |text, end| text.split(end).next().unwrap_or(text));
    let length = sentence.chars().count();
    let why = format!(
        "src/suite/{name}.rs: the first sentence of its manual has {length} characters, and {SUMMARY} fit"
    );
    (length > SUMMARY).then_some(why).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house() -> House {
        let manual: String =
            HEADINGS.iter().map(|heading| format!("//! # {heading}\n//! Words.\n//!\n")).collect();
        let group = "pub const GROUP: Group = Group::new(\"pipe\", include_str!(\"pipe.rs\"), cases);";
        House::default()
            .with("src/suite/pipe.rs", &format!("{manual}\n{group}"))
            .with("src/suite/need.rs", "")
            .with("src/suite.rs", "pub const GROUPS: &[Group] =\n    &[call::GROUP, pipe::GROUP];\n")
            .with("benches/pipe.rs", "")
            .with("Cargo.toml", "[[bench]]\nname = \"pipe\" # x\nharness = false\nbench = false\n\n[lints]\n")
            .with("fixtures/ids.txt", "pipe/1B\n")
    }

    #[test]
    fn a_group_that_is_wired_is_accepted() {
        assert_eq!(complaints(&house()), [""; 0]);
        assert_eq!(listed(house().text("src/suite.rs")), ["call", "pipe"]);
    }

    #[test]
    fn each_missing_wire_is_found_by_itself() {
        let broken = [
            house().without("benches/pipe.rs"),
            house().replacing("Cargo.toml", "\"pipe\"", "\"pipes\""),
            house().replacing("Cargo.toml", "harness = false\n", ""),
            house().replacing("Cargo.toml", "\nbench = false\n", "\n[x]\nbench = false\n"),
            house().replacing("src/suite.rs", ", pipe::GROUP", ""),
            house().replacing("src/suite/pipe.rs", "Group::new(\"pipe\"", "Group::new(\"tube\""),
            house().replacing("src/suite/pipe.rs", "\"pipe.rs\"", "\"need.rs\""),
            house().replacing("fixtures/ids.txt", "pipe/", "pipes/"),
        ];
        for (at, house) in broken.iter().enumerate() {
            assert_eq!(complaints(house).len(), 1, "{at}: {:?}", complaints(house));
        }
    }

    #[test]
    fn a_question_left_out_left_open_or_out_of_order_is_found() {
        let said = |before, after| complaints(&house().replacing("src/suite/pipe.rs", before, after)).len();
        assert_eq!(said("# What fools it", "# Notes"), 1);
        assert_eq!(said("//! # Source\n//! Words.\n", ""), 1);
        assert_eq!(said("# How we know\n//! Words.\n", "# How we know\n"), 1);
        assert_eq!(said("//! # What is timed\n", "//! # Source\n//! # What is timed\n"), 2);
    }

    #[test]
    fn a_first_sentence_that_fills_more_than_a_line_of_the_list_is_found() {
        let said = |sentence: String| {
            let timed = format!("What is timed\n//! {sentence} More words: {}", "and more ".repeat(9));
            complaints(&house().replacing("src/suite/pipe.rs", "What is timed\n//! Words.", &timed)).len()
        };
        assert_eq!(said("w".repeat(60) + "."), 0);
        assert_eq!(said("w".repeat(61) + "."), 1);
    }
}
