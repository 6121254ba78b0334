//! Which cases of which groups a filter asks for.

use super::Arguments;
use crate::subject::Group;
use crate::{Error, Result};

/// A group with the ids of its matching cases.
pub(super) struct Planned<'a> {
    pub(super) group: &'a Group,
    pub(super) ids: Vec<String>,
}

/// The groups with a matching case, in order.
///
/// # Errors
/// No case matches: the sentence names the nearest ids.
pub(super) fn plan<'a>(groups: &'a [Group], arguments: &Arguments) -> Result<Vec<Planned<'a>>> {
    let matches = arguments.matcher()?;
    let all = |group: &Group| (group.cases)().iter().map(|case| group.id(case)).collect::<Vec<_>>();
    let planned: Vec<_> = groups
        .iter()
        .map(|group| Planned { group, ids: all(group).into_iter().filter(|id| matches(id)).collect() })
        .filter(|planned| !planned.ids.is_empty())
        .collect();
    match &arguments.filter {
        Some(filter) if planned.is_empty() && !arguments.none => {
            let ids: Vec<_> = groups.iter().flat_map(all).collect();
            Err(Error::Usage(nothing_matches(filter, &ids)))
        }
        _ => Ok(planned),
    }
}

fn nothing_matches(filter: &str, ids: &[String]) -> String {
    // Of a filter of any length so much is looked at and shown that its neighbours are still read.
    let told: String = filter.chars().take(100).collect();
    let mut near: Vec<_> = ids.iter().map(|id| (likeness(&told, id), id)).collect();
    near.sort_by_key(|&(likeness, _)| std::cmp::Reverse(likeness));
    let near: Vec<_> = near.iter().take(3).map(|(_, id)| id.as_str()).collect();
    let rest = if told.len() < filter.len() { "…" } else { "" };
    format!(
        "no case matches {told:?}{rest}; the nearest are {}; `cargo bench -- --list` or `syscost list` prints them all",
        near.join(", ")
    )
}

/// How many pairs of neighbouring letters two names share: enough to find a misspelt id.
fn likeness(a: &str, b: &str) -> usize {
    let pairs = |s: &str| s.as_bytes().windows(2).map(<[u8]>::to_ascii_lowercase).collect::<Vec<_>>();
    let theirs = pairs(b);
    pairs(a).iter().filter(|pair| theirs.contains(pair)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::GROUPS;

    fn arguments(line: &str) -> Arguments {
        Arguments::parse(line.split(' ').map(Into::into).collect()).expect("a good line")
    }

    #[test]
    fn a_filter_picks_groups() {
        let planned = plan(GROUPS, &arguments("--bench ^known_work/")).expect("matches");
        assert_eq!(planned.len(), 1);
        assert_eq!(planned[0].ids, ["known_work/add", "known_work/multiply"]);
    }

    #[test]
    fn a_misspelt_filter_names_its_neighbours() {
        let error = plan(GROUPS, &arguments("--bench getpdi")).err().expect("no match").to_string();
        assert!(error.contains("syscall/getp"), "{error}");
    }
}
