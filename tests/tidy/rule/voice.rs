//! Rule: only the program and the run print or end the process, and the statistics do no input or output.

use super::is_of_module;
use crate::code::{line, words};
use crate::house::House;
use crate::reference::references;

/// The modules that print for a person: the commands, and the progress and outcome of a run.
const SPEAKERS: [&str; 3] = ["main", "command", "driver"];

const MACROS: [&str; 4] = ["print", "println", "eprint", "eprintln"];

/// The modules of the standard library that do input or output.
const WORLD: [&str; 6] = ["env", "fs", "io", "net", "process", "thread"];

pub fn complaints(house: &House) -> Vec<String> {
    let mut said = Vec::new();
    for (path, code) in house.shipped() {
        let is_exempt = path.ends_with("/main.rs") || path == "crates/platform/src/testing.rs";
        if !is_exempt && !SPEAKERS.iter().any(|module| is_of_module(path, module)) {
            said.extend(printing_complaints(path, &code));
        }
        if path.starts_with("crates/statistic/src/") {
            said.extend(input_output_complaints(path, &code));
        }
    }
    said
}

fn printing_complaints(path: &str, code: &str) -> Vec<String> {
    let printed = MACROS.iter().flat_map(|name| words(code, name)).filter(|&at| is_a_macro(&code[at..]));
    let ended = code.match_indices("process::exit").map(|(at, _)| at);
    let mut numbers: Vec<_> = printed.chain(ended).map(|at| line(code, at)).collect();
    numbers.sort_unstable();
    let sentence = |number| {
        format!(
            "{path}:{number}: only main, command and driver print or end the process; answer with a value"
        )
    };
    numbers.into_iter().map(sentence).collect()
}

fn is_a_macro(code: &str) -> bool {
    code.trim_start_matches(char::is_alphabetic).starts_with('!')
}

fn input_output_complaints(path: &str, code: &str) -> Vec<String> {
    let used = references(code, "std").into_iter().filter(|r| WORLD.contains(&r.parts[0].as_str()));
    used.map(|r| {
        format!("{path}:{}: a statistic is a pure function and may not use std::{}", r.line, r.parts[0])
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_on(path: &str, text: &str) -> Vec<String> {
        complaints(&House::default().with(path, text))
    }

    #[test]
    fn only_the_program_and_the_run_print_or_exit() {
        for text in ["println!(\"x\")", "eprint!(\"x\")", "std::process::exit(1)"] {
            assert_eq!(complaints_on("crates/engine/src/trial/x.rs", text).len(), 1, "{text}");
            for path in [
                "src/main.rs",
                "src/command.rs",
                "src/command/x.rs",
                "crates/engine/src/driver/x.rs",
                "build.rs",
            ] {
                assert_eq!(complaints_on(path, text), [""; 0], "{path}");
            }
        }
    }

    #[test]
    fn a_test_may_print_and_a_function_may_be_called_print() {
        assert_eq!(
            complaints_on("src/trial.rs", "print(x); // println!()\n#[cfg(test)]\nmod tests { println!() }"),
            [""; 0]
        );
    }

    #[test]
    fn statistics_do_no_input_and_no_output() {
        assert_eq!(complaints_on("crates/statistic/src/x.rs", "use std::{fmt, fs::File};").len(), 1);
        assert_eq!(complaints_on("crates/statistic/src/lib.rs", "std::env::var(x)").len(), 1);
        assert_eq!(complaints_on("crates/statistic/src/lib.rs", "use std::collections::HashMap;"), [""; 0]);
        assert_eq!(complaints_on("src/record/store.rs", "use std::fs;"), [""; 0]);
    }
}
