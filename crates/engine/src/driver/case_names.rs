//! Checks before a run that the cases of a bench target have different names, and that their numbers can be kept. Of two cases
//! with one name only the first is ever found, and a record that holds both cannot be read.

use crate::case::{Case, Group};
use crate::error::{Error, Result};
use crate::platform::inert;
use crate::record::baseline::criterion_directory;
use crate::record::soundness::{LONGEST_SENTENCE, MOST_CASES, name_fault};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Characters of a name that are quoted: enough to find it.
const QUOTED: usize = 120;

/// The cases that were looked at, by Criterion's directory.
type Known = BTreeMap<PathBuf, (String, String)>;

/// Checks the names of these groups and of their cases.
///
/// # Errors
/// A name cannot be kept, is there twice, or shares Criterion's directory with another. The sentence names both.
pub fn check_names(groups: &[Group]) -> Result<()> {
    let (mut names, mut known) = (BTreeSet::new(), Known::new());
    for group in groups {
        check_group_name(group.name)?;
        if !names.insert(group.name) {
            return Err(Error::Usage(format!(
                "two groups have the name {0}: a group is found by its name, so the cases of the second would never be \
                 measured; rename one, or put the cases of both into one group",
                group.name
            )));
        }
        (group.cases)().iter().try_for_each(|case| check_case(group, case, &mut known))?;
    }
    if known.len() > MOST_CASES {
        return Err(Error::Usage(format!(
            "there are {} cases, and a record holds at most {MOST_CASES}: distribute them over several bench targets",
            known.len()
        )));
    }
    Ok(())
}

fn check_group_name(name: &str) -> Result<()> {
    let slash =
        || name.contains('/').then(|| "it holds a slash, which ends the name of a group in an id".into());
    let Some(fault) = name_fault(name).or_else(slash) else { return Ok(()) };
    Err(Error::Usage(format!(
        "the name of the group {} cannot be kept: {fault}; rename it",
        quote_shortened(name)
    )))
}

fn check_case(group: &Group, case: &Case, known: &mut Known) -> Result<()> {
    let id = group.id(case);
    let fault = if case.name.is_empty() { Some("it is empty".into()) } else { name_fault(&id) };
    if let Some(fault) = fault {
        let (id, title) = (quote_shortened(&id), quote_shortened(&case.title));
        return Err(Error::Usage(format!(
            "the id of the case {id} ({title}) cannot be kept: {fault}; rename it"
        )));
    }
    if case.title.len() > LONGEST_SENTENCE {
        let length = case.title.len();
        return Err(Error::Usage(format!(
            "the title of the case {id} cannot be kept: it has {length} bytes, of at most {LONGEST_SENTENCE}"
        )));
    }
    if let Some((name, fault)) = case.derived.iter().find_map(|d| Some((d.name, name_fault(d.name)?))) {
        let name = quote_shortened(name);
        return Err(Error::Usage(format!(
            "the figure {name} of the case {id} cannot be kept: {fault}; rename it"
        )));
    }
    match known.insert(criterion_directory(&id), (id.clone(), case.title.clone())) {
        None => Ok(()),
        Some((other, title)) if other == id => Err(Error::Usage(format!(
            "two cases have the id {id}, {} and {}: their samples would become one figure; give each a name of its own",
            quote_shortened(&title),
            quote_shortened(&case.title)
        ))),
        Some((other, _)) => Err(Error::Usage(format!(
            "the cases {other} and {id} would share Criterion's directory {}, and pass for earlier runs of each other: \
             rename one",
            criterion_directory(&id).display()
        ))),
    }
}

fn quote_shortened(text: &str) -> String {
    format!("`{}`", inert::neutralize_line(text, QUOTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str) -> Case {
        Case::looped(name, format!("title of {name}"), |_| ())
    }

    fn sentence(groups: &[Group]) -> String {
        check_names(groups).expect_err("refused").to_string()
    }

    #[test]
    fn two_of_one_name_are_refused_with_both_titles() {
        let twice = || vec![case("a"), Case::looped("a", "another", |_| ())];
        let said = sentence(&[Group::new("g", "", twice)]);
        assert!(said.contains("the id g/a, `title of a` and `another`"), "{said}");
        let once = || vec![case("a")];
        check_names(&[Group::new("g", "", once), Group::new("h", "", once)]).expect("two groups");
        assert!(sentence(&[Group::new("g", "", once), Group::new("g", "", once)]).contains("name g:"));
    }

    #[test]
    fn a_directory_that_two_would_share_is_refused_with_both_names() {
        let said = sentence(&[Group::new("g", "", || vec![case("x_y"), case("x/y")])]);
        assert!(said.contains("the cases g/x_y and g/x/y would share"), "{said}");
        check_names(&[Group::new("g", "", || vec![case("x/y_z"), case("x/y/z"), case("x?y")])])
            .expect("hashed");
    }

    #[test]
    fn a_name_that_no_record_holds_is_refused() {
        let fault = |cases| sentence(&[Group::new("g", "", cases)]);
        let said = fault(|| vec![case(&"x".repeat(199))]);
        assert!(said.contains("it has 201 bytes, of at most 200"), "{said}");
        assert!(fault(|| vec![case("two\nlines")]).contains("U+000A"));
        assert!(fault(|| vec![case("")]).contains("empty"));
        let long = || vec![Case::looped("a", "t".repeat(LONGEST_SENTENCE + 1), |_| ())];
        assert!(fault(long).contains("the title of the case g/a"));
        for name in ["a/b", "", "a\u{202e}b"] {
            let said = sentence(&[Group::new(name, "", || vec![case("a")])]);
            assert!(said.contains("of the group"), "{said}");
        }
    }
}
