//! Skips that are alike: cases of one group that are skipped in the same words are no rows, and told of once below.

use super::Row;
use crate::record::Outcome;

/// So many rows that say the same are read as rows.
const FEW: usize = 4;

/// Cases that were skipped in the same words.
pub(super) struct Alike<'a> {
    rows: Vec<Row<'a>>,
    sentence: &'a str,
}

/// Rows to be shown, and those that say no more than many others.
pub(super) fn apart<'a>(rows: &[Row<'a>]) -> (Vec<Row<'a>>, Vec<Alike<'a>>) {
    let mut kinds: Vec<Alike<'a>> = Vec::new();
    for row in rows {
        let Some(sentence) = skip(row) else { continue };
        let same =
            |kind: &&mut Alike<'_>| kind.sentence == sentence && kind.rows[0].group.name == row.group.name;
        match kinds.iter_mut().find(same) {
            Some(kind) => kind.rows.push(*row),
            None => kinds.push(Alike { rows: vec![*row], sentence }),
        }
    }
    kinds.retain(|kind| kind.rows.len() > FEW);
    let told = |row: &&Row<'a>| {
        kinds.iter().any(|kind| kind.rows.iter().any(|told| std::ptr::eq(told.case, row.case)))
    };
    (rows.iter().filter(|row| !told(row)).copied().collect(), kinds)
}

fn skip<'a>(row: &Row<'a>) -> Option<&'a str> {
    match &row.case.outcome {
        Outcome::Skipped(sentence) => Some(sentence),
        _ => None,
    }
}

impl Alike<'_> {
    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What is said of them all.
    pub(super) fn line(&self) -> String {
        let (first, last) = (self.rows[0], self.rows[self.len() - 1]);
        format!("skipped {} cases, {} to {}: {}", self.len(), first.case.id, last.case.id, self.sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CaseRecord, GroupRun};

    fn group(name: &str, sentences: &[&str]) -> GroupRun {
        let case = |(at, sentence): (usize, &&str)| CaseRecord {
            id: format!("{name}/{at}"),
            title: String::new(),
            outcome: Outcome::Skipped((*sentence).into()),
        };
        let cases = sentences.iter().enumerate().map(case).collect();
        GroupRun { name: name.into(), cases, ..GroupRun::default() }
    }

    fn rows(group: &GroupRun) -> Vec<Row<'_>> {
        group.cases.iter().map(|case| Row { group, case }).collect()
    }

    #[test]
    fn many_skips_in_the_same_words_are_told_once() {
        let group = group("chase", &["too large", "small", "small", "small", "small", "too large", "small"]);
        let rows = rows(&group);
        let (shown, alike) = apart(&rows);
        assert_eq!((shown.len(), alike.len()), (2, 1));
        assert_eq!(alike[0].line(), "skipped 5 cases, chase/1 to chase/6: small");
    }

    #[test]
    fn few_skips_and_those_of_different_groups_are_rows() {
        let (one, other) = (group("chase", &["small"; 4]), group("mapping", &["small"; 4]));
        let all = [rows(&one), rows(&other)].concat();
        let (shown, alike) = apart(&all);
        assert_eq!((shown.len(), alike.len()), (8, 0));
    }
}
