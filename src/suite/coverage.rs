//! What other suites measure, and the cases of this one that answer the same question: `fixtures/coverage.tsv`.

/// A row: tests of another suite that all measure one thing.
pub struct Row {
    /// The suite, such as `lmbench`.
    pub suite: &'static str,
    /// The names of its tests, between spaces.
    pub tests: &'static str,
    /// What they measure.
    pub what: &'static str,
    /// How it is measured here.
    pub answer: Answer,
}

/// How a row is measured here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// By the cases whose ids begin with one of these texts.
    Ids(Vec<&'static str>),
    /// By no case; the text says what there is instead.
    Missing(&'static str),
    /// By no case on purpose, since the tests measure something else; the text says what.
    NotMeasured(&'static str),
}

/// All rows, in the order of the file.
pub fn rows() -> Vec<Row> {
    let lines = include_str!("../../fixtures/coverage.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(parse_row).collect()
}

fn parse_row(line: &'static str) -> Option<Row> {
    let mut columns = line.split('\t');
    let mut next = || columns.next();
    let (suite, tests, what, answer) = (next()?, next()?, next()?, next()?);
    let answer = match answer.split_once(' ') {
        Some(("missing", why)) => Answer::Missing(why),
        Some(("none", why)) => Answer::NotMeasured(why),
        _ => Answer::Ids(answer.split(' ').collect()),
    };
    Some(Row { suite, tests, what, answer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::GROUPS;

    #[test]
    fn every_line_is_a_row_whose_ids_exist_and_no_test_is_twice() {
        let lines = include_str!("../../fixtures/coverage.tsv").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(rows().len(), lines.count());
        let ids: Vec<String> = GROUPS
            .iter()
            .flat_map(|group| (group.cases)().iter().map(|case| group.id(case)).collect::<Vec<_>>())
            .collect();
        let mut seen = Vec::new();
        for row in rows() {
            if let Answer::Ids(beginnings) = &row.answer {
                for start in beginnings {
                    assert!(
                        ids.iter().any(|id| id.starts_with(start)),
                        "{} {}: {start}",
                        row.suite,
                        row.tests
                    );
                }
            }
            seen.extend(row.tests.split(' ').map(|test| format!("{}/{test}", row.suite)));
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count, "a test stands in two rows");
    }
}
