//! Files that a person names or that others can put somewhere are opened through `platform::plain_file` alone.

use crate::code::line;
use crate::house::House;

/// What opens a file by its path, whatever is there.
const OPENERS: [&str; 5] =
    ["File::open(", "fs::read(", "fs::read_to_string(", "OpenOptions::new(", "File::options("];

/// Who may, below these paths, and why nobody else's file can be there.
#[rustfmt::skip]
const ALLOWED: &[(&str, &str)] = &[
    ("src/platform/", "the floor on which opening is done"),
    ("src/counters/", "files of the kernel, and the validation's in its own directory"),
    ("src/clock/", "files of the kernel"),
    ("src/suite/", "the operation itself, on files of its own scratch directory or of the kernel"),
    ("src/kit/", "files of the kernel, and patterns in their own scratch directory"),
    ("src/case/need.rs", "files of the kernel"),
    ("src/liar/stranger.rs", "/dev/zero"),
    ("src/monitor/top_process.rs", "files of the kernel"),
    ("src/trial/displacement/account.rs", "files of the kernel"),
    ("src/trial/displaced_process.rs", "files of the kernel"),
    ("src/driver/first_checks.rs", "the name of the parent process"),
    ("src/driver/pipe_message.rs", "the descriptor that the driver handed on"),
    ("src/guest/turn_server.rs", "the serial line of a guest, in which nobody else is"),
    ("src/pair/setting/tunable.rs", "tunables of the kernel, which have been found to be files"),
    ("src/pair/setting/journal.rs", "tunables of the kernel, which have been found to be files"),
];

pub fn complaints(house: &House) -> Vec<String> {
    let others =
        house.shipped().filter(|(path, _)| !ALLOWED.iter().any(|(place, _)| path.starts_with(place)));
    others.flat_map(|(path, code)| file_complaints(path, &code)).collect()
}

fn file_complaints(path: &str, code: &str) -> Vec<String> {
    let found = OPENERS.iter().flat_map(|opener| code.match_indices(opener));
    let mut numbers: Vec<_> = found.map(|(at, _)| line(code, at)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let sentence =
        |number| format!("{path}:{number}: it may open a pipe or a device; use platform::plain_file");
    numbers.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_opened_on_one_floor() {
        for (path, count) in [("src/command/x.rs", 1), ("src/platform/x.rs", 0), ("src/clock/x.rs", 0)] {
            for text in ["std::fs::read(path)", "File::open(&path)", "OpenOptions::new().read(true)"] {
                assert_eq!(complaints(&House::default().with(path, text)).len(), count, "{path}: {text}");
            }
        }
        let test = "#[cfg(test)]\nmod tests { fn f() { std::fs::read(path); } }";
        assert_eq!(complaints(&House::default().with("src/command/x.rs", test)), [""; 0]);
    }
}
