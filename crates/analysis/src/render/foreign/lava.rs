//! LAVA, which runs tests on boards: the lines that Linaro's test definitions hand to `lava-test-case`, one a case.

use syscost_engine::record::{CaseRecord, Outcome, Record};

/// `NAME pass FIGURE UNIT`, `NAME fail` or `NAME skip`. A case that was disturbed has no result, and is skipped. Of an id all but
/// ASCII letters, digits, `_` and `-` becomes a dot, since a name becomes part of an address and of a path there.
pub fn lava_lines(record: &Record) -> String {
    record.cases().map(|(_, case)| case_line(case, &record.unit)).collect()
}

fn case_line(case: &CaseRecord, unit: &str) -> String {
    let plain = |text: &str| text.replace(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)), ".");
    let name = plain(&case.id);
    match &case.outcome {
        Outcome::Measured(measured) => {
            format!("{name} pass {} {}\n", measured.figure().estimate, plain(unit))
        }
        Outcome::Failed(_) => format!("{name} fail\n"),
        Outcome::Skipped(_) | Outcome::Disturbed(_) => format!("{name} skip\n"),
    }
}
