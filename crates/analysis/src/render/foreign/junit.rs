//! JUnit's XML, which every CI shows as a list of tests: a group is a suite, a case a test. A disproved claim is a failure;
//! what was skipped or disturbed is skipped, with its reason.

use std::fmt::Write;
use syscost_engine::record::quantity::{format_amount, format_interval};
use syscost_engine::record::{CaseRecord, GroupRun, Outcome, Record};

/// The record as a list of tests.
pub fn junit_xml(record: &Record) -> String {
    let suites: String = record.groups.iter().map(|group| suite_xml(group, &record.unit)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\">\n{suites}</testsuites>\n",
        escape_xml(&record.run)
    )
}

fn suite_xml(group: &GroupRun, unit: &str) -> String {
    let count = |is: fn(&Outcome) -> bool| group.cases.iter().filter(|case| is(&case.outcome)).count();
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_) | Outcome::Disturbed(_)));
    let name = escape_xml(&group.name);
    let mut text = format!(
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\">\n",
        group.cases.len()
    );
    for case in &group.cases {
        let seconds = case.measured().and_then(|m| m.meanwhile.as_ref()).map_or(0.0, |m| m.seconds);
        let id = escape_xml(&case.id);
        let _ = writeln!(text, "    <testcase classname=\"{name}\" name=\"{id}\" time=\"{seconds:.3}\">");
        let _ = writeln!(text, "      {}\n    </testcase>", outcome_xml(case, unit));
    }
    text + "  </testsuite>\n"
}

fn outcome_xml(case: &CaseRecord, unit: &str) -> String {
    match &case.outcome {
        Outcome::Measured(measured) => {
            let figure = measured.figure();
            let told = format!("{} {}", format_amount(figure.estimate, unit), format_interval(&figure, unit));
            format!("<system-out>{}</system-out>", escape_xml(&told))
        }
        Outcome::Skipped(sentence) => format!("<skipped message=\"{}\"/>", escape_xml(sentence)),
        Outcome::Disturbed(sentence) => format!("<skipped message=\"disturbed: {}\"/>", escape_xml(sentence)),
        Outcome::Failed(sentence) => format!("<failure message=\"{}\"/>", escape_xml(sentence)),
    }
}

/// Text as XML takes it: its marks escaped, characters that no XML may hold replaced.
fn escape_xml(text: &str) -> String {
    let one = |c: char| match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        '\n' | '\t' => " ".into(),
        c if c.is_control() || ['\u{fffe}', '\u{ffff}'].contains(&c) => "\u{fffd}".into(),
        c => c.to_string(),
    };
    text.chars().map(one).collect::<String>()
}
