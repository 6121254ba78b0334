use super::*;
use std::collections::BTreeSet;
use std::path::PathBuf;
use syscost_platform::testing::print_skipped;

/// The numbers of each report, in the order of its text, as [`numbers_in`] reads them; a number that occurs again is left out.
const NUMBERS: [(&str, &str); 2] = [
    ("csc501", include_str!("../../../fixtures/published/csc501.numbers")),
    ("cse221", include_str!("../../../fixtures/published/cse221.numbers")),
];
/// Names a directory with the text of each report, `csc501.txt` and `cse221.txt`: the lists above are then compared with it.
const REPORTS: &str = "SYSCOST_REPORTS";

/// Every number of a text, each once. `E-6` after a blank belongs to the number before it, a comma between digits too.
fn numbers_in(text: &str) -> Vec<f64> {
    let text = text.replace(" E-", "E-");
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '-' | '_');
    let words = text.split(|c| !is_part(c)).flat_map(split_ranges);
    let mut all: Vec<f64> = Vec::new();
    for number in words.filter_map(|word| leading_number(&word)) {
        if !all.contains(&number) {
            all.push(number);
        }
    }
    all
}

/// The parts of `20-30`, but not those of `1.3E-6`.
fn split_ranges(word: &str) -> Vec<String> {
    let kept = word.replace("E-", "E~");
    kept.split('-').map(|part| part.replace("E~", "E-")).collect()
}

/// The number at the beginning of a word such as `115.455us`, if there is one.
fn leading_number(word: &str) -> Option<f64> {
    let word = word.trim_end_matches(['.', ',']).replace(',', "");
    let exponent = word.find("E-").filter(|at| word[..*at].ends_with(|c: char| c.is_ascii_digit()));
    let end = match exponent {
        Some(at) => {
            at + 2 + word[at + 2..].find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len() - at - 2)
        }
        None => word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len()),
    };
    word[..end].trim_end_matches('.').parse().ok()
}

/// The numbers of the rows of a report, in any unit, and those in its words.
fn covered_numbers(published: &Published) -> (Vec<f64>, BTreeSet<String>) {
    let mut values = Vec::new();
    let mut words = String::new();
    for row in &published.rows {
        values.extend([row.ns, row.sd, row.predicted_ns, row.value].into_iter().flatten());
        let texts = [Some(&row.what), row.expected.as_ref(), row.hardware.as_ref(), row.software.as_ref()];
        texts.into_iter().flatten().for_each(|text| words = format!("{words} {text}"));
    }
    for without in &published.without {
        words = format!("{words} {} {}", without.row, without.why);
    }
    let named = published.without.iter().flat_map(|without| without.numbers.clone());
    let numbers = numbers_in(&words).into_iter().chain(named).map(|number| number.to_string());
    (values, numbers.collect())
}

/// Whether a number of the report is one of ours: in the same unit, or in one that is 1000 times larger or smaller.
fn is_covered(number: f64, (values, words): &(Vec<f64>, BTreeSet<String>)) -> bool {
    let same = |value: &f64| (-2..=3).any(|k| (number * 1000f64.powi(k) / value - 1.0).abs() < 1e-9);
    words.contains(&number.to_string()) || values.iter().any(same)
}

#[test]
fn every_number_of_the_reports_stands_beside_ours_or_is_named_with_the_reason() {
    for (name, text) in NUMBERS {
        let published = load_published(name).unwrap();
        let covered = covered_numbers(&published);
        let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert!(numbers.len() > 90, "{name}: {} numbers", numbers.len());
        let missing: Vec<_> = numbers.into_iter().filter(|number| !is_covered(*number, &covered)).collect();
        assert!(missing.is_empty(), "{name}: in no row and not named: {missing:?}");
        assert!(published.without.iter().all(|row| !row.row.is_empty() && row.why.len() > 10), "{name}");
    }
}

#[test]
fn the_lists_of_numbers_are_those_of_the_reports() {
    let Some(directory) = std::env::var_os(REPORTS).map(PathBuf::from) else {
        return print_skipped(&format!("{REPORTS} names no directory with the texts of the two reports"));
    };
    for (name, text) in NUMBERS {
        let report = std::fs::read_to_string(directory.join(name).with_extension("txt")).unwrap();
        let listed: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert_eq!(numbers_in(&report), listed, "{name}");
    }
}

#[test]
fn numbers_are_read_as_reports_print_them() {
    let read = numbers_in(
        "took 115.455us, 1,000,000 times; 20-30 of .089 and 6.05 E-6 / 1.3 E-5. The i7 and L1: 4.",
    );
    assert_eq!(read, [115.455, 1e6, 20.0, 30.0, 0.089, 6.05e-6, 1.3e-5, 4.0]);
}

#[test]
fn a_number_that_is_nowhere_is_missed() {
    let covered = covered_numbers(&load_published("csc501").unwrap());
    assert!(is_covered(0.357, &covered) && is_covered(115.455, &covered) && is_covered(21.3, &covered));
    assert!(!is_covered(0.358, &covered) && !is_covered(9.87, &covered));
}

#[test]
fn every_published_value_is_a_number_above_nothing_in_one_unit() {
    for (name, _) in FILES {
        for value in &load_published(name).unwrap().rows {
            let numbers = [value.ns, value.value, value.sd, value.sd_times, value.predicted_ns, value.times];
            assert!(numbers.into_iter().flatten().all(|n| n.is_finite() && n > 0.0), "{name}: {value:?}");
            assert_eq!(value.ns.is_some(), value.value.is_none(), "{name}: {value:?}");
            assert_eq!(value.value.is_some(), value.unit.is_some(), "{name}: {value:?}");
            assert!(!value.what.is_empty(), "{name}: {value:?}");
        }
    }
}

#[test]
fn both_machines_are_found_in_the_order_asked() {
    let found = find("cse221, csc501").unwrap();
    assert_eq!([&found[0].name, &found[1].name], ["cse221", "csc501"]);
    assert_eq!(found[0].values_ns()["syscall/getpid"], 3.44);
    assert!(!found[1].values_ns().contains_key("call/u32/0"), "it is net, and the column shows costs");
}

#[test]
fn whose_the_values_are_is_told_and_which_are_of_another_operation() {
    let mut record = crate::record::fixture_run::fixture_record();
    record.groups[0].cases[0].id = "syscall/getpid".into();
    let [cse221] = &find("cse221").unwrap()[..] else { panic!("one was asked for") };
    let said = cse221.notes(&record);
    assert!(said[0].starts_with("cse221: ") && said[0].contains("i7-3770K"), "{said:?}");
    assert!(said[1..].iter().any(|line| line.starts_with("cse221 syscall/getpid: ")), "{said:?}");
    assert!(said.iter().all(|line| !line.contains("call/u32")), "{said:?}");
    record.unit = "page-faults".into();
    assert!(cse221.notes(&record).is_empty());
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let message = find("csc501,vax").unwrap_err().to_string();
    assert!(message.contains("`vax`") && message.contains("csc501, cse221"), "{message}");
}
