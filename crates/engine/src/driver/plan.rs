//! Selects the cases of each group that match a filter, and refuses requests that match none.

use super::arguments::Arguments;
use crate::case::{Case, Group};
use crate::error::{Error, Result};
use crate::platform::inert;
use crate::record::Headline;
use crate::record::baseline::criterion_directory;
use crate::record::soundness::{LONGEST_SENTENCE, MOST_CASES, name_fault};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A group with the ids of its matching cases.
pub(super) struct Planned<'a> {
    pub(super) group: &'a Group,
    pub(super) ids: Vec<String>,
}

impl Planned<'_> {
    /// The headline of this case of the group, if it has one.
    pub(super) fn headline(&self, id: &str) -> Option<&Headline> {
        let name = id.strip_prefix(self.group.name)?.strip_prefix('/')?;
        self.group.headlines.iter().find(|headline| headline.case == name)
    }

    /// The headline cases alone.
    pub(super) fn headlines_only(&self) -> Self {
        let ids = self.ids.iter().filter(|id| self.headline(id).is_some()).cloned().collect();
        Self { group: self.group, ids }
    }
}

fn group_ids(group: &Group) -> Vec<String> {
    (group.cases)().iter().map(|case| group.id(case)).collect()
}

/// The groups that have a matching case, in their given order. `known` is the whole suite to which the groups may belong.
///
/// # Errors
/// Two cases have the same name, the filter is not a regular expression, or no case matches. In the last case the sentence
/// names other groups of the suite that have a match, or else the nearest ids.
pub(super) fn plan_groups<'a>(
    groups: &'a [Group],
    known: &[Group],
    arguments: &Arguments,
) -> Result<Vec<Planned<'a>>> {
    check_names(groups)?;
    let matches = arguments.matcher()?;
    let planned: Vec<_> = groups
        .iter()
        .map(|group| Planned { group, ids: group_ids(group).into_iter().filter(|id| matches(id)).collect() })
        .filter(|planned| !planned.ids.is_empty())
        .collect();
    match &arguments.filter {
        Some(filter) if planned.is_empty() && !arguments.none => {
            let elsewhere = other_groups_matching(groups, known, &matches);
            Err(Error::Usage(if elsewhere.is_empty() {
                no_match_message(filter, &groups.iter().flat_map(group_ids).collect::<Vec<_>>())
            } else {
                found_elsewhere_message(filter, &elsewhere)
            }))
        }
        _ => Ok(planned),
    }
}

/// Whether all of these groups belong to the known suite; those of a user's own bench target do not.
fn are_known(groups: &[Group], known: &[Group]) -> bool {
    groups.iter().all(|group| known.iter().any(|other| other.name == group.name))
}

/// Names of the other groups of the suite that have a matching case.
fn other_groups_matching(
    groups: &[Group],
    known: &[Group],
    matches: impl Fn(&str) -> bool,
) -> Vec<&'static str> {
    let other = |group: &&Group| are_known(groups, known) && groups.iter().all(|g| g.name != group.name);
    let others = known.iter().filter(other);
    others.filter(|group| group_ids(group).iter().any(|id| matches(id))).map(|group| group.name).collect()
}

fn found_elsewhere_message(filter: &str, names: &[&str]) -> String {
    let have = if names.len() == 1 { "the group" } else { "each of the groups" };
    let targets: Vec<_> = names.iter().map(|name| format!("--bench {name}")).collect();
    format!(
        "no case of this bench target matches {filter:?}; {have} {} has one: `cargo bench {} -- '{filter}'`",
        names.join(", "),
        targets.join(" ")
    )
}

/// Checks that every prediction in this file has a case.
///
/// # Errors
/// The file is broken, or an id in it has no case.
pub(super) fn check_predictions(groups: &[Group], suite: &[Group], file: &std::path::Path) -> Result<()> {
    let overrides = crate::study::prediction::Overrides::read(file)?;
    let known: Vec<_> = groups.iter().chain(suite).flat_map(group_ids).collect();
    // A bench target of another crate does not know its sibling targets, whose predictions may be in the same file.
    let is_checked = |id: &&String| {
        let group = |id: &str| id.split('/').next().map(str::to_owned);
        are_known(groups, suite) || known.iter().any(|k| group(k) == group(id))
    };
    let unknown = overrides.0.keys().filter(is_checked).find(|id| !known.contains(id));
    unknown.map_or(Ok(()), |id| {
        let (file, near) = (file.display(), nearest_names(id, &known));
        Err(Error::Usage(format!("{file}: there is no case {id} to predict; the nearest are {near}")))
    })
}

/// The three ids most similar to this one, separated by commas.
pub fn nearest_names(wanted: &str, ids: &[String]) -> String {
    let mut near: Vec<_> = ids.iter().map(|id| (similarity(wanted, id), id)).collect();
    near.sort_by_key(|&(similarity, _)| std::cmp::Reverse(similarity));
    let mut few: Vec<&str> = Vec::new();
    for (_, id) in near {
        if few.len() < 3 && !few.contains(&id.as_str()) {
            few.push(id);
        }
    }
    few.join(", ")
}

fn no_match_message(filter: &str, ids: &[String]) -> String {
    // A filter may be very long, so the message quotes only its beginning.
    let beginning: String = filter.chars().take(100).collect();
    let rest = if beginning.len() < filter.len() { "…" } else { "" };
    format!(
        "no case matches {beginning:?}{rest}; the nearest are {}; `cargo bench -- --list` or `syscost list` prints them all",
        nearest_names(&beginning, ids)
    )
}

/// Whether the id contains this word, and the similarity of the word to the id or its most similar part, in thousandths.
fn similarity(word: &str, id: &str) -> (bool, u32) {
    let [word, id] = [word, id].map(str::to_lowercase);
    let alike = id.split('/').chain([id.as_str()]).map(|part| strsim::jaro(&word, part));
    (word.len() > 2 && id.contains(&word), (1000.0 * alike.fold(0.0, f64::max)) as u32)
}

// Checks before a run that the cases of a bench target have different names, and that a record can hold these. Of two cases
// with one name only the first would ever be found, and a record that holds both cannot be read.

/// The most characters of a name that a message quotes: enough to find the name.
const MOST_QUOTED: usize = 120;

/// Ids and titles of the cases checked so far, by Criterion's directory.
type Known = BTreeMap<PathBuf, (String, String)>;

/// Checks the names of these groups and of their cases.
///
/// # Errors
/// A name cannot be stored, occurs twice, or shares Criterion's directory with another name. The sentence names both cases.
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
    format!("`{}`", inert::neutralize_line(text, MOST_QUOTED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;

    const GROUPS: &[Group] = &[
        Group::new("known_work", "", || looped(&["add", "multiply"])),
        Group::new("call", "", || looped(&["u64/3"])),
        Group::new("syscall", "", || looped(&["getpid", "getppid"])),
    ];

    fn looped(names: &[&str]) -> Vec<Case> {
        names.iter().map(|name| Case::looped(*name, "", |_| ())).collect()
    }

    fn only(name: &str) -> &'static [Group] {
        std::slice::from_ref(GROUPS.iter().find(|group| group.name == name).expect("a group"))
    }

    fn plan<'a>(groups: &'a [Group], line: &str) -> Result<Vec<Planned<'a>>> {
        plan_groups(groups, GROUPS, &arguments(line))
    }

    fn arguments(line: &str) -> Arguments {
        Arguments::parse(line.split(' ').map(Into::into).collect()).expect("a good line")
    }

    #[test]
    fn a_filter_picks_groups() {
        let planned = plan(GROUPS, "--bench ^known_work/").expect("matches");
        assert_eq!(planned.len(), 1);
        assert_eq!(planned[0].ids, ["known_work/add", "known_work/multiply"]);
    }

    #[test]
    fn the_message_on_a_misspelt_filter_names_similar_ids() {
        let error = plan(GROUPS, "--bench getpdi").err().expect("no match").to_string();
        assert!(error.contains("syscall/getp"), "{error}");
    }

    #[test]
    fn a_name_with_two_letters_swapped_is_nearer_than_a_run_with_the_same_letters() {
        let names = ["20261127T224255-820nctan", "main", "flag"].map(str::to_owned);
        assert!(nearest_names("mian", &names).starts_with("main, "));
    }

    #[test]
    fn a_case_of_another_target_is_found_there() {
        let error = plan(only("call"), "--bench getpid").err().expect("no match").to_string();
        assert!(error.contains("cargo bench --bench syscall -- 'getpid'"), "{error}");
        let mine = [Group::new("mine", "", Vec::new)];
        let error = plan(&mine, "--bench getpid").err().expect("no match").to_string();
        assert!(!error.contains("syscall"), "{error}");
    }

    #[test]
    fn a_prediction_that_has_no_case_is_refused_unless_another_target_may_have_it() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let check = |groups: &[Group], id: &str| {
            std::fs::write(file.path(), format!("[\"{id}\"]\nwhy = \"\"")).expect("written");
            check_predictions(groups, GROUPS, file.path()).map_err(|error| error.to_string())
        };
        let call = only("call");
        assert_eq!(check(call, "syscall/getpid"), Ok(()));
        let error = check(call, "syscall/getpdi").expect_err("misspelt");
        assert!(error.contains("no case syscall/getpdi") && error.contains("syscall/getpid"), "{error}");
        let mine = [Group::new("mine", "", Vec::new)];
        assert_eq!(check(&mine, "yours/parent"), Ok(()));
        assert!(check(&mine, "syscall/getpdi").is_err());
    }

    fn case(name: &str) -> Case {
        Case::looped(name, format!("title of {name}"), |_| ())
    }

    fn sentence(groups: &[Group]) -> String {
        check_names(groups).expect_err("refused").to_string()
    }

    #[test]
    fn cases_or_groups_with_equal_names_are_refused() {
        let twice = || vec![case("a"), Case::looped("a", "another", |_| ())];
        let message = sentence(&[Group::new("g", "", twice)]);
        assert!(message.contains("the id g/a, `title of a` and `another`"), "{message}");
        let once = || vec![case("a")];
        check_names(&[Group::new("g", "", once), Group::new("h", "", once)]).expect("two groups");
        assert!(sentence(&[Group::new("g", "", once), Group::new("g", "", once)]).contains("name g:"));
    }

    #[test]
    fn cases_that_would_share_a_directory_are_refused_with_both_names() {
        let message = sentence(&[Group::new("g", "", || vec![case("x_y"), case("x/y")])]);
        assert!(message.contains("the cases g/x_y and g/x/y would share"), "{message}");
        check_names(&[Group::new("g", "", || vec![case("x/y_z"), case("x/y/z"), case("x?y")])])
            .expect("hashed");
    }

    #[test]
    fn a_name_that_no_record_holds_is_refused() {
        let fault = |cases| sentence(&[Group::new("g", "", cases)]);
        let message = fault(|| vec![case(&"x".repeat(199))]);
        assert!(message.contains("it has 201 bytes, of at most 200"), "{message}");
        assert!(fault(|| vec![case("two\nlines")]).contains("U+000A"));
        assert!(fault(|| vec![case("")]).contains("empty"));
        let long = || vec![Case::looped("a", "t".repeat(LONGEST_SENTENCE + 1), |_| ())];
        assert!(fault(long).contains("the title of the case g/a"));
        for name in ["a/b", "", "a\u{202e}b"] {
            let message = sentence(&[Group::new(name, "", || vec![case("a")])]);
            assert!(message.contains("of the group"), "{message}");
        }
    }
}
