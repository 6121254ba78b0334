#[path = "../../../../crates/analysis/tests/support/fixture_head.rs"]
mod fixture_head;

use super::*;
use fixture_head::{add_noise, head, scale_cases};
use syscost_analysis::study::comparison::{Options, compare};

/// A comparison of this many baselines; the second is slower in one case, and the third ran in one boot.
fn comparison(count: usize) -> Comparison {
    let side = |at: usize| {
        let mut head = head(&format!("v6.{at}-rc1-generic"), if at == 2 { 1 } else { 5 }, 3);
        add_noise(&mut head, 0.002, 0.002, at as u64);
        if at == 1 {
            scale_cases(&mut head, "syscall/getpid", 1.052);
        }
        head
    };
    let heads: Vec<_> = (0..count).map(side).collect();
    let mut comparison = compare(&heads, &[], Options::default());
    comparison.sort_by_weight();
    comparison
}

fn table_text(count: usize, width: u16) -> String {
    render_table(&comparison(count), Layout { width: Some(width), ..Layout::default() })
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for count in [2, 3, 20] {
        for width in [50, 60, 80, 120, 200] {
            for line in table_text(count, width).lines() {
                assert!(length(line) <= usize::from(width), "{count} {width}: {line}");
            }
        }
    }
}

#[test]
fn a_baseline_has_a_column_with_its_value_and_its_change() {
    let text = table_text(3, 120);
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).expect("the line").to_owned();
    let head: Vec<_> = line("operation").split_whitespace().map(str::to_owned).collect();
    assert_eq!(head, ["operation", "v6.0-rc1-generic", "v6.1-rc1-generic", "v6.2-rc1-generic"]);
    let cells: Vec<_> = line("getpid").split_whitespace().map(str::to_owned).collect();
    assert!(cells.len() == 9 && cells[5].starts_with("*+5.") && cells[5].ends_with("%*"), "{text}");
    assert!(cells[8].ends_with(")?"), "one boot shows nothing: {text}");
}

#[test]
fn a_baseline_that_counts_something_else_is_not_shown_in_nanoseconds() {
    let counts =
        syscost_analysis::record::bundle::Head { unit: "instructions".into(), ..head("counts", 1, 1) };
    let heads = [head("old", 1, 1), counts, head("new", 1, 1)];
    let text = render_table(&compare(&heads, &[], Options::default()), Layout::default());
    let line = text.lines().find(|line| line.starts_with("getpid")).expect("the line");
    let cells: Vec<_> = line.split_whitespace().collect();
    assert_eq!(cells, ["getpid", "100.0", "ns", "100.0", "!", "100.0", "ns", "(0.0%)?"]);
}

#[test]
fn marks_are_aligned_with_and_without_a_question_mark() {
    let columns = [("(+0.1%) ", 1.001, Verdict::Same), ("(+3.1%)?", 1.031, Verdict::Inconclusive)];
    for (text, ratio, verdict) in columns {
        let change =
            syscost_analysis::study::comparison::Change { verdict, ratio: Some(ratio), ..Default::default() };
        let cell = Cell { value: None, change: Some(change) };
        assert_eq!(change_mark(&cell, true), text);
        assert_eq!(
            change_mark(&cell, false),
            text.trim_end(),
            "no column is reserved for marks that are off"
        );
    }
}

#[test]
fn columns_without_room_stand_in_further_blocks() {
    let (wide, narrow) = (table_text(20, 2000), table_text(20, 80));
    assert_eq!(wide.matches("operation").count(), 1);
    assert!(narrow.matches("operation").count() > 5);
    let words = |text: &str, word: &str| text.matches(word).count();
    for name in (0..20).map(|at| format!("v6.{at}-rc1-generic")) {
        assert_eq!((words(&wide, &name), words(&narrow, &name)), (1, 1), "{name}");
    }
    assert_eq!(words(&wide, " ns"), words(&narrow, " ns"), "no value is lost and none is broken");
}

#[test]
fn the_group_of_the_weightiest_change_stands_first() {
    let text = table_text(2, 80);
    let place = |word: &str| text.find(word).expect("the group");
    assert!(place("── syscall") < place("── known_work"), "{text}");
}

#[test]
fn color_moves_no_column() {
    let color = Layout { width: Some(80), color: true, ..Layout::default() };
    let painted = render_table(&comparison(3), color);
    assert!(painted.contains("\u{1b}[31m*+5."), "{painted}");
    let codes = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[32m"];
    let bare = codes.iter().fold(painted, |text, code| text.replace(code, ""));
    let trimmed: Vec<_> = bare.lines().map(str::trim_end).collect();
    assert_eq!(trimmed, table_text(3, 80).lines().collect::<Vec<_>>());
}

#[test]
fn control_characters_of_a_received_record_do_not_reach_the_terminal() {
    let mut sent = comparison(2);
    sent.baselines[0].name = "\u{1b}[2J".into();
    sent.rows[0].group = "\u{1b}c".into();
    sent.rows[1].id = "\u{7}/x".into();
    assert!(!render_table(&sent, Layout::default()).contains(['\u{1b}', '\u{7}']));
}

#[test]
fn a_comparison_without_rows_prints_no_table() {
    let mut nothing = comparison(2);
    nothing.keep_rows(|_| false);
    assert_eq!(render_table(&nothing, Layout::default()), "");
}
