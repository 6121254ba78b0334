//! A user can read what has changed.

use crate::house::House;

const PATH: &str = "CHANGELOG.md";

pub fn complaints(house: &House) -> Vec<String> {
    let headings = house.text(PATH).lines().filter_map(|line| line.strip_prefix("## "));
    let mut versions = headings.filter(|heading| is_version(heading.trim_start_matches('[')));
    let missing = versions.next().is_none();
    Vec::from_iter(missing.then(|| format!("{PATH}: it has neither `## Unreleased` nor a version")))
}

fn is_version(heading: &str) -> bool {
    heading.starts_with("Unreleased") || heading.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_under_a_version() {
        for (text, count) in
            [("## Unreleased\n", 0), ("# Changelog\n## [0.1.0]\n", 0), ("## Soon\n", 1), ("", 1)]
        {
            assert_eq!(complaints(&House::default().with(PATH, text)).len(), count, "{text}");
        }
    }
}
