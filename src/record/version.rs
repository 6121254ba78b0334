//! The version of a group in records that were written before versions were numbers.
//!
//! Up to format 1 a record held a hash of the group's source (`body`). The last hash of each group stands for
//! version 1 of that group; any other hash stays as it is and is another series.

use serde::{Deserialize, Deserializer};

/// A line for each group: its name, and the hash of its source when versions took over.
const LAST_HASHES: &str = include_str!("../../fixtures/bodies.txt");

/// For `#[serde(deserialize_with)]`: reads a version, or a hash that stands for one.
///
/// # Errors
/// The value is no text.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(current)
}

/// As [`read`], of the two sides of a comparison by pairs.
///
/// # Errors
/// The value is not a list of two texts.
pub fn read_both<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[String; 2], D::Error> {
    <[String; 2]>::deserialize(deserializer).map(|both| both.map(current))
}

fn current(found: String) -> String {
    let mut hashes = LAST_HASHES.lines().filter_map(|line| line.split_once(' '));
    if hashes.any(|(_, hash)| hash == found) { "1".into() } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hash_of_every_group_is_version_1() {
        let hashes: Vec<_> = LAST_HASHES.lines().filter_map(|line| line.split_once(' ')).collect();
        assert_eq!((hashes.len(), LAST_HASHES.lines().count()), (30, 30));
        assert!(hashes.iter().all(|(_, hash)| hash.len() == 16 && current((*hash).into()) == "1"));
    }

    #[test]
    fn versions_and_other_hashes_stay() {
        for text in ["1", "2", "", "9c56cc51", "b0432391e6d77829", "syscall"] {
            assert_eq!(current(text.into()), text);
        }
    }
}
