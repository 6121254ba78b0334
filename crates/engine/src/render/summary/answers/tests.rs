use super::*;
use crate::record::{GroupRun, Quiet, Record, fixture_run};

/// A run with this figure for a system call, and its headline.
fn run(estimate: f64, half: f64) -> (Record, Vec<(String, Headline)>) {
    let mut record = fixture_run::fixture_record();
    let (_, case) = record.cases().find(|(_, case)| case.measured().is_some()).expect("a measured case");
    let mut case = case.clone();
    case.id = "syscall/getppid".into();
    if let Outcome::Measured(measured) = &mut case.outcome {
        let figure = Interval::around(estimate, half);
        measured.quiet = Some(Quiet { figure, ..Quiet::default() });
        measured.predicted = None;
    }
    record.groups = vec![GroupRun { name: "syscall".into(), cases: vec![case], ..GroupRun::default() }];
    let headline = Headline::new(1, "getppid", "a system call").as_answer();
    (record, vec![("syscall/getppid".into(), headline)])
}

fn screen(run: &(Record, Vec<(String, Headline)>), earlier: &[Record], usual: Option<[f64; 2]>) -> String {
    let range = |[low, high]: [f64; 2]| UsualRange { kind: "Zen 3 guest".into(), machines: 5, low, high };
    let usual = usual.map(|ends| ("syscall/getppid".to_owned(), range(ends))).into_iter().collect();
    let (record, headlines) = run;
    let summary = Summary { record, headlines, earlier, doctor: None, program: "syscost" };
    answer_screen(&summary, &usual, None, Layout::default())
}

#[test]
fn a_figure_is_usual_slow_or_fast_beside_machines_of_its_kind() {
    let screen_at = |ns| screen(&run(ns, 1.0), &[], Some([80.0, 100.0]));
    assert!(
        screen_at(84.0).contains(" usual ") && screen_at(84.0).contains("53.33 ns to 150.0 ns"),
        "{}",
        screen_at(84.0)
    );
    assert!(
        screen_at(84.0).contains("usual range: lowest to highest cost on 5 Zen 3 guests, and half"),
        "{}",
        screen_at(84.0)
    );
    assert!(screen_at(149.0).contains(" usual ") && screen_at(170.0).contains("slow: `explain syscall`"));
    assert!(screen_at(40.0).contains(" fast "));
}

#[test]
fn answer_lines_have_the_figure_of_each_answer() {
    let (record, headlines) = &run(84.0, 1.0);
    let summary = Summary { record, headlines, earlier: &[], doctor: None, program: "syscost" };
    let lines = answer_lines(&summary);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].starts_with("a system call") && lines[1].contains("84.00 ns"), "{lines:?}");
    let none = Record { groups: Vec::new(), ..record.clone() };
    assert!(answer_lines(&Summary { record: &none, ..summary }).is_empty(), "no heading without a figure");
}

#[test]
fn a_figure_whose_interval_reaches_beyond_the_usual_range_is_not_settled() {
    let wide = |ns, half| screen(&run(ns, half), &[], Some([80.0, 100.0]));
    assert!(wide(145.0, 20.0).contains("not settled"));
    assert!(wide(155.0, 10.0).contains("not settled"));
    assert!(wide(145.0, 10.0).contains(" usual "));
    assert!(wide(90.0, 15.0).contains(" usual "), "the whole interval is usual");
    // From 45 to 135 ns, where 53 to 150 ns are usual: the next run may still be fast.
    assert!(wide(90.0, 45.0).contains("not settled"));
    // From 140 to 300 ns: most of it is slow.
    let mut beyond = run(145.0, 5.0);
    if let Some(quiet) = beyond.0.groups[0].cases[0].measured_mut().and_then(|m| m.quiet.as_mut()) {
        quiet.figure.high = 300.0;
    }
    assert!(screen(&beyond, &[], Some([80.0, 100.0])).contains("not settled"));
}

#[test]
fn without_a_machine_of_the_kind_the_last_run_gives_the_usual_range() {
    let mut last = run(84.0, 2.0).0;
    last.run = "the last".into();
    let screen_at = |ns| screen(&run(ns, 1.0), std::slice::from_ref(&last), None);
    assert!(
        screen_at(85.0).contains("last run 84.00 ns") && screen_at(85.0).contains(" usual "),
        "{}",
        screen_at(85.0)
    );
    assert!(screen_at(120.0).contains("slow: "), "{}", screen_at(120.0));
    assert!(!screen(&run(84.0, 1.0), &[], None).contains("usual:"), "nothing is known");
}

#[test]
fn without_machines_and_runs_the_prediction_is_the_range() {
    let mut predicted = run(84.0, 1.0);
    if let Some(measured) = predicted.0.groups[0].cases[0].measured_mut() {
        measured.predicted =
            fixture_run::fixture_record().cases().find_map(|(_, case)| case.measured()?.predicted.clone());
        let expected = HeadlineFigure::new(&predicted.1[0].1, measured, "ns")
            .and_then(|shown| shown.expected_whole(measured));
        measured.quiet.as_mut().expect("quiet").figure =
            Interval::around(expected.expect("a prediction"), 1.0);
    }
    let text = screen(&predicted, &[], None);
    assert!(text.contains(" as predicted ") && text.contains("as predicted: within 3 times"), "{text}");
    let row = text.lines().find(|line| line.starts_with("a system call")).expect("a row");
    assert!(!row.contains("usual"), "{text}");
}

#[test]
fn the_screen_fits_a_terminal_of_24_lines() {
    let (mut record, mut headlines) = run(84.0, 1.0);
    record.fingerprint.mitigations =
        [("mds", "Mitigation: x"), ("srbds", "Vulnerable")].map(|(a, b)| (a.repeat(30), b.to_owned())).into();
    let case = record.groups[0].cases[0].clone();
    for at in 0..11 {
        let id = format!("syscall/{at}");
        record.groups[0].cases.push(CaseRecord { id: id.clone(), ..case.clone() });
        headlines.push((id, headlines[0].1));
    }
    record.groups[0].cases.push(CaseRecord {
        id: "syscall/bad".into(),
        title: String::new(),
        outcome: Outcome::Failed("it did nothing".into()),
    });
    let doctor = ["it rains".to_owned()];
    for width in [60, 80, 100, 200] {
        let summary = Summary {
            record: &record,
            headlines: &headlines,
            earlier: &[],
            doctor: Some(&doctor),
            program: "target/release/syscost",
        };
        let layout = Layout { width: Some(width), ..Layout::default() };
        let text = answer_screen(&summary, &BTreeMap::new(), Some("first of several rounds"), layout);
        assert!(text.lines().count() <= ANSWER_LINES, "{width}: {text}");
        assert!(text.lines().all(|line| cell::display_width(line) <= width.into()), "{width}: {text}");
        let whole = ["1 disproved or broken", "a system call", "`target/release/syscost`: `report`"];
        assert!(width < 80 || whole.iter().all(|words| text.contains(words)), "{width}: {text}");
    }
}
