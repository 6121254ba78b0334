use super::*;
use crate::record::{CurveRecord, Derived, Interval, LevelRecord, Outcome, Point, fixture_run};

fn at(width: u16) -> String {
    record_table(
        &fixture_run::fixture_record(),
        None,
        &[],
        Layout { width: Some(width), ..Layout::default() },
    )
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start} in\n{text}"))
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in (60..220).step_by(7).chain([80, 120, 200]) {
        for line in at(width).lines() {
            assert!(super::display_width(line) <= usize::from(width), "{width}: {line}");
        }
    }
}

#[test]
fn a_row_stays_one_line_at_80_columns() {
    let text = at(80);
    let head = "operation                    measured 95 %    cycles        net  ratio  claims";
    let row = "u64/0                       0.6234 ns ±0.16%   1.933  0.3134 ns  0.20×  ✓5";
    let disturbed = "open-close                   1.204 µs ±0.16%    3733   1.204 µs  1.20×  ✓5 13/50";
    assert_eq!(
        [line(&text, "operation"), line(&text, "u64/0"), line(&text, "open-close")],
        [head, row, disturbed]
    );
    line(&text, "Not shown at 80 columns: hardware, software, typical, expected;");
}

#[test]
fn at_120_columns_a_prediction_has_its_parts() {
    let text = at(120);
    let head = line(&text, "operation");
    for name in ["hardware", "software", "measured", "95 %", "typical", "cycles", "net", "ratio", "claims"] {
        assert!(head.contains(name), "{name}: {head}");
    }
    assert!(line(&text, "Not shown at 120").contains(": expected;"));
}

#[test]
fn a_wide_terminal_hides_nothing() {
    let text = at(200);
    assert!(!text.contains("Not shown"));
    let row = line(&text, "open-close");
    assert!(row.contains("1.204 µs [1.202, 1.206]"), "{row}");
    assert!(row.contains("100.0 ns") && row.contains("900.0 ns") && row.contains("1.000 µs"), "{row}");
    assert!(row.ends_with("✓ 5 claims · 13/50 disturbed"), "{row}");
}

#[test]
fn a_pipe_gets_all_columns_and_sentences_on_one_line() {
    let text = record_table(&fixture_run::fixture_record(), None, &[], Layout::default());
    assert!(line(&text, "operation").contains("hardware"));
    assert!(line(&text, "FAILED call/f64/0: ").ends_with("optimised away."));
}

#[test]
fn a_case_without_a_number_has_a_word_in_its_row_and_a_sentence_below() {
    let text = at(80);
    assert!(line(&text, "cntvct").ends_with("skipped"));
    assert!(line(&text, "f64/0").ends_with("FAILED"));
    assert!(line(&text, "skipped clock_read/cntvct: ").contains("There is no CNTVCT_EL0"));
    assert_eq!(text.lines().last(), Some("16 measured, 1 skipped, 1 failed"));
}

#[test]
fn cases_skipped_for_the_same_reason_share_a_paragraph() {
    let mut record = fixture_run::fixture_record();
    let call = record.groups.iter_mut().find(|group| group.name == "call").expect("the group");
    for case in call.cases.iter_mut().filter(|case| case.id.ends_with("/1") || case.id.ends_with("/2")) {
        case.outcome = Outcome::Skipped("at full scale only".into());
    }
    let text = record_table(&record, None, &[], Layout::default());
    assert!(text.contains("skipped 2 of call: at full scale only: u64/1, u64/2"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("u64/1")), "they need no line each: {text}");
    assert_eq!(text.lines().last(), Some("14 measured, 3 skipped, 1 failed"));
    let elsewhere = BTreeMap::from([("call/u64/2".to_owned(), 7.0)]);
    let text =
        record_table(&record, None, &[Against { name: "other", values: &elsewhere }], Layout::default());
    assert!(text.lines().any(|line| line.starts_with("u64/2") && line.contains("7.000 ns")), "{text}");
}

#[test]
fn a_fit_a_distribution_and_a_note_are_shown_below_the_table() {
    let text = at(200);
    line(&text, "a further u64 argument costs 0.3100 ns [0.3095, 0.3104], fitted over 9 cases");
    line(
        &text,
        "syscall/getpid/cold: p5 1.902 µs · p50 2.314 µs · p95 4.110 µs · p99 7.400 µs · max 48.21 µs, 200",
    );
    line(&text, "syscall/getpid/cold: switch 1.157 µs [1.155, 1.158]");
    assert_eq!(text.matches("Memory is not locked").count(), 1);
}

#[test]
fn the_tally_of_a_single_group_counts_its_cases_only() {
    let text = record_table(
        &fixture_run::fixture_record(),
        Some("call"),
        &[],
        Layout { width: Some(80), ..Layout::default() },
    );
    assert!(!text.contains("getpid") && text.ends_with("9 measured, 0 skipped, 1 failed\n"));
}

#[test]
fn published_values_have_their_own_column() {
    let values = BTreeMap::from([("syscall/getpid".to_owned(), 60.0), ("clock_read/cntvct".into(), 7.0)]);
    let against = [Against { name: "csc501", values: &values }];
    let text = record_table(
        &fixture_run::fixture_record(),
        None,
        &against,
        Layout { width: Some(80), ..Layout::default() },
    );
    assert!(line(&text, "operation").contains("csc501"));
    assert!(line(&text, "getpid ").contains("60.00 ns"));
    assert!(line(&text, "cntvct").contains("7.000 ns"), "a skipped case still has the other's value");
}

#[test]
fn a_count_has_neither_cycles_nor_predictions() {
    let record = Record { unit: "instructions".into(), ..fixture_run::fixture_record() };
    let values = BTreeMap::from([("syscall/getpid".to_owned(), 60.0)]);
    let against = [Against { name: "csc501", values: &values }];
    let text = record_table(&record, None, &against, Layout { width: Some(200), ..Layout::default() });
    let head = line(&text, "operation");
    assert!(head.contains("instructions") && !head.contains("cycles") && !head.contains("m/p"), "{head}");
    assert!(!head.contains("csc501"), "nanoseconds beside instructions would be compared with them");
    assert!(!line(&text, "getpid ").contains("ns"));
}

#[test]
fn escape_codes_enclose_whole_lines() {
    let text = record_table(
        &fixture_run::fixture_record(),
        None,
        &[],
        Layout { width: Some(80), color: true, ..Layout::default() },
    );
    assert!(text.contains("\u{1b}[31mf64/0 ") && text.contains("FAILED\u{1b}[0m\n"));
    let bare = text.replace("\u{1b}[0m", "");
    let bare =
        ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[33m"].iter().fold(bare, |text, code| text.replace(code, ""));
    assert_eq!(bare, at(80));
}

#[test]
fn a_record_without_cases_is_still_a_table() {
    let text = record_table(
        &fixture_run::fixture_record(),
        Some("none"),
        &[],
        Layout { width: Some(80), ..Layout::default() },
    );
    assert!(text.starts_with("operation") && text.ends_with("0 measured, 0 skipped, 0 failed\n"));
}

#[test]
fn a_very_narrow_terminal_shortens_the_ids() {
    let text = at(40);
    let table: Vec<_> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert!(table.iter().all(|line| super::display_width(line) <= 40), "{text}");
}

/// The run with a case that says how many bytes it moves.
fn with_bandwidth() -> Record {
    let mut record = fixture_run::fixture_record();
    let case = record.groups[3].cases.iter_mut().find(|case| case.id == "syscall/getpid");
    let Some(Outcome::Measured(measured)) = case.map(|case| &mut case.outcome) else {
        panic!("no such case")
    };
    let value = Interval { estimate: 12.345, low: 12.0, high: 13.0 };
    measured.derived.push(Derived { name: "bandwidth".into(), unit: "GB/s".into(), value });
    record
}

#[test]
fn a_bandwidth_has_a_column_and_no_line_below() {
    let text = |width| {
        record_table(&with_bandwidth(), None, &[], Layout { width: Some(width), ..Layout::default() })
    };
    for width in [80, 200] {
        let text = text(width);
        assert!(line(&text, "operation").contains("bandwidth"), "{text}");
        assert!(
            line(&text, "getpid ").contains("12.35 GB/s") && !text.contains("syscall/getpid: "),
            "{text}"
        );
        assert!(text.contains("syscall/getpid/cold: switch"), "another figure keeps its line");
    }
    let narrow = text(40);
    assert!(
        narrow.contains("syscall/getpid: bandwidth"),
        "where there is no column there is a line: {narrow}"
    );
    assert!(!at(200).contains("bandwidth"), "where nothing moves bytes there is no column");
}

#[test]
fn pictures_are_shown_for_a_single_group_and_levels_for_all_groups() {
    let value = Interval { estimate: 1.0, low: 1.0, high: 1.0 };
    let level = LevelRecord { name: Some("L1".into()), latency: value, ..LevelRecord::default() };
    let mut record = fixture_run::fixture_record();
    record.groups[1].curves = vec![CurveRecord {
        prefix: "known_work/chain/".into(),
        title: "a chain".into(),
        unit: "ns".into(),
        points: (0..4).map(|i| Point { at: 1 << i, value }).collect(),
        levels: vec![level],
        remarks: vec!["it stays".into()],
        ..CurveRecord::default()
    }];
    let text = |group, ascii| {
        record_table(&record, group, &[], Layout { width: Some(80), ascii, ..Layout::default() })
    };
    let (all, alone, plain) =
        (text(None, false), text(Some("known_work"), false), text(Some("known_work"), true));
    for text in [&all, &alone, &plain] {
        assert!(text.contains("levels of known_work/chain/") && text.contains("a chain: it stays"), "{text}");
    }
    let has_dots = |text: &str| text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c));
    assert!(!has_dots(&all) && has_dots(&alone), "{alone}");
    assert!(!has_dots(&plain) && plain.contains("****"), "{plain}");
}
