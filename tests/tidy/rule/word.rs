//! Rule: no file contains paths of one particular machine, package hosts, or promises of later work.

use crate::code::{is_of_a_word, words};
use crate::house::House;

/// Directories of one machine. They are split here, since this file is checked too.
const PLACES: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "helper")];

/// Hosts of packages, which only the tool that fetches packages should name.
const HOSTS: [&str; 4] = [
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("pypi.", "org"),
    concat!("deb.", "debian.org"),
];

const PROMISES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

pub fn complaints(house: &House) -> Vec<String> {
    house.files().flat_map(|(path, text)| file_complaints(path, text)).collect()
}

fn file_complaints(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().zip(1..);
    lines
        .flat_map(|(line, number)| found(line).into_iter().map(move |w| format!("{path}:{number}: {w}")))
        .collect()
}

fn found(line: &str) -> Vec<String> {
    let places = PLACES.iter().filter(|place| begins_somewhere(line, place));
    let hosts = HOSTS.iter().filter(|host| line.contains(**host));
    let promises = PROMISES.iter().filter(|word| words(line, word).next().is_some());
    let of_one_machine = places.map(|place| format!("`{place}` is a place of one machine only"));
    let of_a_tool = hosts.map(|host| format!("`{host}` is for package tools to know"));
    of_one_machine
        .chain(of_a_tool)
        .chain(promises.map(|word| format!("`{word}`: do it, or leave it out")))
        .collect()
}

/// Whether a path in the line begins with `place`, and does not only contain it.
fn begins_somewhere(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| is_of_a_word(c) || ['.', '-', '/', '~', '}'].contains(&c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_hosts_and_promises_are_found_in_any_file() {
        let all = PLACES.iter().chain(&HOSTS).chain(&PROMISES);
        for word in all {
            let said = complaints(&House::default().with("README.md", &format!("a\n(`{word}` b)")));
            assert_eq!(said.len(), 1, "{word}");
            assert!(said[0].starts_with("README.md:2: "), "{said:?}");
        }
    }

    #[test]
    fn a_part_of_a_longer_word_or_path_is_free() {
        let text = PLACES.map(|place| format!("src{place}x")).join(" ") + " file.XXXXXX";
        assert_eq!(complaints(&House::default().with("README.md", &text)), [""; 0]);
    }
}
