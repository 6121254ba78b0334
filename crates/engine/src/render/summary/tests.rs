use super::*;
use crate::record::{CaseRecord, GroupRun, Outcome, fixture_run};

const WORDS: &str = "an operation whose words are long.";

/// A record with more headline cases than a screen has lines, and one failed, one disturbed and one skipped case.
fn crowded() -> (Record, Vec<(String, Headline)>) {
    let mut record = fixture_run::fixture_record();
    let (_, measured) = record.cases().find(|(_, case)| case.measured().is_some()).expect("a measured case");
    let outcome = measured.outcome.clone();
    let case = |id: String, outcome| CaseRecord { id, title: String::new(), outcome };
    let mut cases: Vec<_> = (0..80).map(|at| case(format!("many/case/{at}"), outcome.clone())).collect();
    let long = "a sentence that goes on and on, ".repeat(9);
    cases.push(case("many/failed".into(), Outcome::Failed(long.clone())));
    cases.push(case("many/disturbed".into(), Outcome::Disturbed(long.clone())));
    cases.push(case("many/skipped".into(), Outcome::Skipped(long)));
    record.groups.push(GroupRun { name: "many".into(), cases, ..GroupRun::default() });
    let ids = record.groups.last().into_iter().flat_map(|group| &group.cases).map(|case| case.id.clone());
    let headline = |(at, id): (usize, String)| (id, Headline::new(at as u16, "x", WORDS));
    let headlines = ids.enumerate().map(headline).collect();
    (record, headlines)
}

fn shown(width: Option<u16>, color: bool) -> String {
    let (record, headlines) = crowded();
    let mut earlier = record.clone();
    earlier.run = "earlier".into();
    let doctor = vec!["it rains and rains".to_owned(); 9];
    let summary = Summary {
        record: &record,
        headlines: &headlines,
        earlier: &[earlier],
        doctor: Some(&doctor),
        program: "target/release/syscost",
    };
    summary_screen(&summary, Layout { width, color, ascii: false })
}

#[test]
fn the_screen_keeps_its_lines_and_columns_at_every_width() {
    for width in [Some(30), Some(60), Some(80), Some(100), Some(120), Some(139), None] {
        let text = shown(width, false);
        assert!(text.lines().count() <= LINES, "{width:?}: {} lines", text.lines().count());
        let most = width.map_or(COLUMNS, usize::from).min(COLUMNS);
        for line in text.lines() {
            assert!(cell::display_width(line) <= most, "{width:?}: {line}");
        }
    }
    assert!(shown(Some(200), false).lines().all(|line| cell::display_width(line) <= 200));
}

#[test]
fn problems_are_listed_with_the_command_that_shows_more() {
    let text = shown(Some(100), false);
    for words in ["Look at these:", "2 disproved or broken: ", "1 disturbed: many/disturbed"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains("`target/release/syscost report --group many`"), "{text}");
    assert!(
        text.contains("9 possible disturbances: it rains")
            && text.contains("`target/release/syscost doctor`"),
        "{text}"
    );
}

#[test]
fn columns_are_left_out_on_a_narrow_terminal() {
    assert!(shown(Some(100), false).contains("next run"));
    let narrow = shown(Some(80), false);
    assert!(!narrow.contains("next run") && narrow.contains("expected"), "{narrow}");
    assert!(shown(Some(200), false).contains("many/case/3"));
}

#[test]
fn escape_codes_enclose_whole_lines_and_only_if_asked_for() {
    assert!(!shown(Some(100), false).contains('\u{1b}'));
    let colored = shown(Some(100), true);
    let painted: Vec<_> = colored.lines().filter(|line| line.contains('\u{1b}')).collect();
    assert!(painted.len() > 2 && painted.iter().all(|line| line.ends_with("\u{1b}[0m")), "{painted:?}");
}

#[test]
fn rows_without_room_are_counted() {
    let text = shown(Some(100), false);
    let rows = text.lines().filter(|line| line.starts_with(WORDS)).count();
    let (_, headlines) = crowded();
    // Those that were skipped have no row.
    let left_out = headlines.len() - 1 - rows;
    assert!(
        text.contains(&format!("and {left_out} rows more: `target/release/syscost report --all`")),
        "{text}"
    );
}
