use super::*;
use std::path::PathBuf;
use syscost_engine::record::{Derived, FitRecord, fixture_run};
use syscost_engine::study::published::find;
use syscost_platform::testing::print_skipped;

/// The numbers of each report, in the order of its text, as [`numbers_in`] reads them. Each number occurs once.
const NUMBERS: [(&str, &str); 2] = [
    ("csc501", include_str!("../../../../engine/fixtures/published/csc501.numbers")),
    ("cse221", include_str!("../../../../engine/fixtures/published/cse221.numbers")),
];
/// The environment variable with the directory of the reports' texts, `csc501.txt` and `cse221.txt`. If it is set, the lists
/// above are compared with the texts.
const REPORTS: &str = "SYSCOST_REPORTS";

/// Every number of a text, each once. `E-6` after a blank belongs to the number before it, as does a comma between digits.
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

/// The numbers of a report that are printed: in its columns of the table, in the title and in the notes.
fn printed_numbers(published: &Published) -> Vec<f64> {
    let sheet = published_sheet(published, &fixture_run::fixture_record());
    let cells = sheet.rows.iter().flat_map(|row| &row[..THEIRS]);
    let texts: Vec<&str> =
        [&sheet.title].into_iter().chain(cells).chain(&sheet.notes).map(String::as_str).collect();
    numbers_in(&texts.join(" "))
}

/// Whether a number is printed in the same unit, or in one that is 1000 times larger or smaller.
fn is_printed(number: f64, printed: &[f64]) -> bool {
    let same = |value: &f64| (-2..=3).any(|k| (number * 1000f64.powi(k) / value - 1.0).abs() < 1e-9);
    printed.iter().any(|value| *value == number || same(value))
}

#[test]
fn every_number_of_the_reports_is_printed_beside_ours_or_named_with_the_reason() {
    for (name, text) in NUMBERS {
        let printed = printed_numbers(&find(name).unwrap()[0]);
        let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert!(numbers.len() > 90, "{name}: {} numbers", numbers.len());
        let missing: Vec<_> = numbers.into_iter().filter(|number| !is_printed(*number, &printed)).collect();
        assert!(missing.is_empty(), "{name}: printed in no row and not named: {missing:?}");
    }
}

#[test]
fn a_number_of_a_row_that_is_not_printed_is_missed() {
    let mut csc501 = find("csc501").unwrap().swap_remove(0);
    let printed = printed_numbers(&csc501);
    assert!(is_printed(0.357, &printed) && is_printed(115.455, &printed) && is_printed(21.3, &printed));
    assert!(!is_printed(0.358, &printed) && !is_printed(9.87, &printed));
    csc501.rows.retain(|row| row.id != "fit/a further u32 argument");
    assert!(!is_printed(0.357, &printed_numbers(&csc501)));
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
fn every_row_of_both_reports_has_a_line_with_our_value() {
    let record = fixture_run::fixture_record();
    for published in find("csc501,cse221").unwrap() {
        let sheet = published_sheet(&published, &record);
        assert_eq!(sheet.rows.len(), published.rows.len());
        assert!(sheet.rows.iter().all(|row| row.len() == HEAD.len() && !row[THEIRS].is_empty()));
        let differing = published.rows.iter().filter(|value| value.differs);
        for PublishedValue { id, what, .. } in differing {
            let note = sheet.notes.iter().find(|note| note.contains(id.as_str()));
            assert!(note.is_some_and(|note| note.contains(what.as_str())), "{id}: how does it differ?");
        }
        let without = sheet.notes.iter().filter(|note| note.starts_with("no row: ")).count();
        assert_eq!(without, published.without.len());
    }
}

#[test]
fn a_narrow_terminal_keeps_what_they_measured_beside_ours() {
    let (record, machines) = (fixture_run::fixture_record(), find("csc501,cse221").unwrap());
    for width in [80, 120, 200] {
        let text = published_tables(&machines, &record, Layout { width: Some(width), ..Layout::default() });
        assert!(text.lines().all(|line| cell::display_width(line) <= width.into()), "{width}: {text}");
        assert!(text.contains("they measured") && text.contains("here"), "{width}: {text}");
    }
}

#[test]
fn the_figure_that_is_the_same_operation_stands_beside_theirs() {
    let measured = Measured {
        standard_deviation: 200.0,
        median: Interval::exactly(2000.0),
        net: Some(Interval::exactly(1.5)),
        derived: vec![
            Derived { name: "switch".into(), unit: "ns".into(), value: Interval::exactly(900.0) },
            Derived { name: "bandwidth".into(), unit: "GB/s".into(), value: Interval::exactly(12.0) },
        ],
        ..Measured::default()
    };
    let case =
        CaseRecord { id: "one".into(), title: String::new(), outcome: Outcome::Measured(Box::new(measured)) };
    let here = |figure: &str, times| {
        let mut value = find("csc501").unwrap()[0].rows[0].clone();
        (value.figure, value.times, value.sd_times) = (Some(figure.into()), times, Some(0.5));
        let ours = case_cells(&value, &case, NANOSECONDS);
        [ours.here, ours.deviation]
    };
    assert_eq!(here("net", None), ["1.500 ns", "200.0 ns"]);
    assert_eq!(here("switch", None), ["900.0 ns", "100.0 ns"]);
    // The time deviates by a tenth, and so does the rate.
    assert_eq!(here("bandwidth", Some(0.5)), ["6.000 GB/s", "0.6000 GB/s"]);
    assert_eq!(here("fairness", None), ["not derived", ""]);
}

/// A case that takes 100 ns, 60 ns without its control, and was expected to take 50 ns.
fn predicted_case(whole: bool) -> CaseRecord {
    let derived = |name: &str, unit: &str, value| Derived {
        name: name.into(),
        unit: unit.into(),
        value: Interval::exactly(value),
    };
    let measured = Measured {
        median: Interval::exactly(100.0),
        control: Some(Interval::exactly(40.0)),
        net: Some(Interval::exactly(60.0)),
        predicted: Some(Predicted { hardware: 45.0, software: 5.0, why: String::new(), whole }),
        derived: vec![derived("switch", NANOSECONDS, 30.0), derived("bandwidth", "GB/s", 10.0)],
        ..Measured::default()
    };
    let outcome = Outcome::Measured(Box::new(measured));
    CaseRecord { id: "one".into(), title: String::new(), outcome }
}

#[test]
fn the_expectation_is_derived_as_the_figure_is() {
    let expected = |figure: Option<&str>, whole| {
        let mut value = find("csc501").unwrap()[0].rows[0].clone();
        value.figure = figure.map(str::to_owned);
        let Expected { hardware, software, sum } =
            case_cells(&value, &predicted_case(whole), NANOSECONDS).expected;
        [hardware, software, sum]
    };
    // The measured 60 ns without the control were expected to be 50 ns, and so in proportion.
    assert_eq!(expected(Some("switch"), false), ["22.50 ns", "2.500 ns", "25.00 ns"]);
    assert_eq!(expected(Some("net"), false), ["45.00 ns", "5.000 ns", "50.00 ns"]);
    assert_eq!(expected(Some("net"), true), ["5.000 ns", "5.000 ns", "10.00 ns"]);
    assert_eq!(expected(None, false), ["45.00 ns", "45.00 ns", "90.00 ns"]);
    assert_eq!(expected(None, true), ["45.00 ns", "5.000 ns", "50.00 ns"]);
    // The rate of the whole cost: 10 GB/s at 100 ns become 20 GB/s at 50 ns, and 22.22 GB/s at the hardware's 45 ns.
    assert_eq!(expected(Some("bandwidth"), true), ["22.22 GB/s", "2.222 GB/s", "20.00 GB/s"]);
}

#[test]
fn cycles_stand_on_both_sides() {
    let mut record = fixture_run::fixture_record();
    let cse221 = find("cse221").unwrap().swap_remove(0);
    let mut value = cse221.rows[0].clone();
    let mut case = predicted_case(true);
    case.id.clone_from(&value.id);
    record.groups[0].cases = vec![case];
    let cycles = |value: &PublishedValue| {
        let row = Beside { published: &cse221, record: &record, core_hz: Some(3e9) }.row(value);
        let at = |head: &str| HEAD.iter().position(|other| *other == head).unwrap();
        [row[at("their cycles")].clone(), row[at("cycles here")].clone()]
    };
    assert_eq!(cycles(&value), ["312.33", "~300.0"], "as printed, and as our core runs");
    value.cycles = None;
    assert_eq!(cycles(&value), ["~311.5", "~300.0"], "89 ns at 3.5 GHz");
}

#[test]
fn a_limit_is_not_printed_as_a_measurement() {
    let cse221 = find("cse221").unwrap().swap_remove(0);
    let sheet = published_sheet(&cse221, &fixture_run::fixture_record());
    let limits: Vec<_> = cse221.rows.iter().zip(&sheet.rows).filter(|(value, _)| value.below).collect();
    assert!(limits.len() == 2 && limits.iter().all(|(_, row)| row[4].starts_with("below ")), "{limits:?}");
}

#[test]
fn a_difference_that_may_be_zero_is_printed_as_its_upper_end() {
    let net = Interval { estimate: 0.01, low: -0.2, high: 0.25 };
    assert_eq!(net_text(net, NANOSECONDS), "below 0.2500 ns");
}

#[test]
fn a_line_is_found_by_its_step() {
    let mut record = fixture_run::fixture_record();
    let [slope, intercept] = [2.5, 1.0].map(Interval::exactly);
    let fit = FitRecord {
        step: "a step".into(),
        slope,
        intercept,
        cases: 2,
        expected: Some([0.0, 2.0]),
        worst: None,
    };
    record.groups[0].fits = vec![fit];
    let ours = fit_cells("a step", &record);
    assert_eq!((ours.here.as_str(), ours.expected.sum.as_str()), ("2.500 ns", "2.000 ns"));
}

#[test]
fn a_row_is_a_line() {
    assert_eq!(first_clause("one; two"), "one");
    assert_eq!(first_clause(&"a".repeat(60)).chars().count(), 47);
}
