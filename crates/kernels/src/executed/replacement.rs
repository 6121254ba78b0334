//! Where the work of a function went that only one kernel executes: into another function that its caller calls instead, or into
//! its caller.

use super::execution_log::CaseLog;
use super::function_table::{CaseDifference, FunctionDifference, Naming};
use std::collections::{BTreeMap, BTreeSet};

/// The share of a function's own instructions by which a caller must have moved the other way to explain it.
const EXPLAINS: f64 = 0.5;

/// Callers of each function.
type Callers<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Adds the notes to the functions of a case. A function takes the place of one other.
pub fn note_replacements(difference: &mut CaseDifference, naming: &Naming<'_>, cases: [&CaseLog; 2]) {
    let callers = [0, 1].map(|side| callers(naming, side, cases[side]));
    let notes = notes(&difference.functions, &callers);
    difference.functions.iter_mut().zip(notes).for_each(|(row, note)| row.note = note);
}

fn notes(rows: &[FunctionDifference], callers: &[Callers<'_>; 2]) -> Vec<Option<String>> {
    let mut partners = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let is_free = |other: &usize| !partners.contains_key(other);
        if is_free(&at) {
            let partner = (at + 1..rows.len())
                .filter(is_free)
                .find(|other| is_called_alike(row, &rows[*other], callers));
            partners.extend(partner.into_iter().flat_map(|other| [(at, other), (other, at)]));
        }
    }
    let partner = |at: usize| partners.get(&at).map(|other| &rows[*other]);
    rows.iter().enumerate().map(|(at, row)| note(row, partner(at), rows, callers)).collect()
}

/// Whether each function is executed by one kernel alone, as often as the other, and for a caller in common.
fn is_called_alike(row: &FunctionDifference, other: &FunctionDifference, callers: &[Callers<'_>; 2]) -> bool {
    let (Some(side), Some(theirs)) = (only_side(row), only_side(other)) else { return false };
    let of = |row: &FunctionDifference, side: usize| callers[side].get(row.name.as_str());
    side != theirs
        && row.calls[side] == other.calls[theirs]
        && of(row, side).zip(of(other, theirs)).is_some_and(|(a, b)| !a.is_disjoint(b))
}

fn callers<'a>(naming: &Naming<'a>, side: usize, case: &CaseLog) -> Callers<'a> {
    let mut callers = Callers::new();
    for path in naming.paths(side, case).into_keys() {
        for pair in path.windows(2) {
            callers.entry(pair[1]).or_default().insert(pair[0]);
        }
    }
    callers
}

/// The side that alone executes a function.
fn only_side(row: &FunctionDifference) -> Option<usize> {
    match row.own {
        [a, 0.0] if a > 0.0 => Some(0),
        [0.0, b] if b > 0.0 => Some(1),
        _ => None,
    }
}

fn note(
    row: &FunctionDifference,
    partner: Option<&FunctionDifference>,
    rows: &[FunctionDifference],
    callers: &[Callers<'_>; 2],
) -> Option<String> {
    let side = only_side(row)?;
    let [label, other] = [["A", "B"], ["B", "A"]][side];
    if let Some(partner) = partner {
        return Some(format!("only in {label}; {other} calls {} instead", partner.name));
    }
    let own = callers[side].get(row.name.as_str());
    let moved_the_other_way = |caller: &&FunctionDifference| {
        own.is_some_and(|own| own.contains(caller.name.as_str()))
            && caller.change() * row.change() < 0.0
            && caller.change().abs() >= EXPLAINS * row.change().abs()
    };
    Some(match rows.iter().find(moved_the_other_way) {
        Some(caller) => {
            format!("only in {label}; its caller {} moved by {:+.2}", caller.name, caller.change())
        }
        None => format!("only in {label}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, own: [f64; 2], calls: [f64; 2]) -> FunctionDifference {
        FunctionDifference { name: name.into(), own, calls, ..FunctionDifference::default() }
    }

    #[test]
    fn a_function_that_was_renamed_or_inlined_is_named_with_what_took_its_place() {
        let rows = [
            row("fdget_pos", [0.0, 74.0], [0.0, 2.0]),
            row("__fget_light", [68.0, 0.0], [2.0, 0.0]),
            row("exit_to_user_mode_prepare", [62.0, 0.0], [2.0, 0.0]),
            row("do_syscall_64", [62.0, 120.0], [2.0, 2.0]),
            row("lonely", [5.0, 0.0], [1.0, 0.0]),
        ];
        let callers = [
            Callers::from([
                ("__fget_light", BTreeSet::from(["ksys_read", "ksys_write"])),
                ("exit_to_user_mode_prepare", BTreeSet::from(["do_syscall_64"])),
            ]),
            Callers::from([("fdget_pos", BTreeSet::from(["ksys_read"]))]),
        ];
        let notes = notes(&rows, &callers);
        assert_eq!(notes[0].as_deref(), Some("only in B; A calls __fget_light instead"));
        assert_eq!(notes[1].as_deref(), Some("only in A; B calls fdget_pos instead"));
        assert_eq!(notes[2].as_deref(), Some("only in A; its caller do_syscall_64 moved by +58.00"));
        assert_eq!((notes[3].as_deref(), notes[4].as_deref()), (None, Some("only in A")));
    }
}
