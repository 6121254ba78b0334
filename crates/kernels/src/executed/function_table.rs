//! The difference of one case between two kernels, function by function. All sums are of whole instructions and therefore exact.
//! If only one kernel executes a function, a note says what took over its work in the other: another function with the same
//! caller, or the caller itself.

use super::execution_log::{CaseLog, ExecutionLog};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use syscost_platform::symbols::PROGRAM;

/// A case on two kernels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseDifference {
    /// `group/variant/parameter`.
    pub id: String,
    /// Iterations by which the larger batch exceeds the smaller one.
    pub iterations: u64,
    /// Instructions per iteration in A and in B.
    pub counted: [f64; 2],
    /// Repetitions of string instructions per iteration, which are not in `counted`.
    pub repetitions: [f64; 2],
    /// `counted` less the sum over all functions. It is zero unless the plugin's file is damaged.
    pub remainder: [f64; 2],
    /// The functions, the largest change first.
    pub functions: Vec<FunctionDifference>,
}

/// One function: its numbers per iteration in A and in B.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FunctionDifference {
    /// Its folded name.
    pub name: String,
    /// Its own instructions.
    pub own: [f64; 2],
    /// Executions of its first instruction.
    pub calls: [f64; 2],
    /// Its own instructions and those of the functions it calls; `None` if the order of execution was not written.
    pub inclusive: Option<[f64; 2]>,
    /// Repetitions of its string instructions.
    pub repetitions: [f64; 2],
    /// If only one kernel executes it: what took over its work in the other kernel, as far as that is known.
    pub note: Option<String>,
}

/// A function and its own instructions on both kernels, as a record keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovedFunction {
    /// Its folded name.
    pub name: String,
    /// Its own instructions per iteration in A and in B.
    pub own: [f64; 2],
}

impl FunctionDifference {
    /// B's own instructions per iteration less A's.
    pub fn change(&self) -> f64 {
        self.own[1] - self.own[0]
    }
}

impl CaseDifference {
    /// The difference of the case `id`; `None` if the log of one kernel lacks it.
    pub fn between(logs: [&ExecutionLog; 2], id: &str, iterations: u64) -> Option<Self> {
        let cases = [logs[0].case(id)?, logs[1].case(id)?];
        let per = |number: i64| number as f64 / iterations as f64;
        let of_both = |value: &dyn Fn(&CaseLog) -> i64| cases.map(|case| per(value(case)));
        let rows = Naming::of_both(logs).sums(cases);
        let functions: Vec<_> = rows.into_iter().filter_map(|(name, sums)| sums.row(name, &per)).collect();
        let counted = of_both(&|case| more(case, |batch| batch.total));
        let sums =
            [0, 1].map(|side| functions.iter().map(|row| row.own[side] * iterations as f64).sum::<f64>());
        let remainder =
            [0, 1].map(|side| (counted[side] * iterations as f64 - sums[side]).round() / iterations as f64);
        let repetitions = of_both(&|case| more(case, |batch| batch.repetitions));
        let mut difference = Self { id: id.into(), iterations, counted, repetitions, remainder, functions };
        difference
            .functions
            .sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()).then_with(|| a.name.cmp(&b.name)));
        Some(difference)
    }

    /// The functions whose own instructions changed, the largest change first.
    pub fn moved(&self) -> Vec<MovedFunction> {
        let moved = self.functions.iter().filter(|row| row.change() != 0.0);
        moved.map(|row| MovedFunction { name: row.name.clone(), own: row.own }).collect()
    }
}

/// The value of a case's larger batch less that of the smaller one.
fn more(case: &CaseLog, value: impl Fn(&super::execution_log::BatchLog) -> u64) -> i64 {
    value(&case.batches[1]) as i64 - value(&case.batches[0]) as i64
}

/// Names of the functions of two kernels.
pub struct Naming<'a> {
    logs: [&'a ExecutionLog; 2],
    shared: HashSet<&'a str>,
}

/// Whole instructions of a function, in A and in B.
#[derive(Default)]
struct Sums {
    own: [i64; 2],
    calls: [i64; 2],
    repetitions: [i64; 2],
    inclusive: Option<[i64; 2]>,
}

impl Sums {
    /// The row of these sums, divided by `per`; `None` if no instruction was executed.
    fn row(&self, name: String, per: &dyn Fn(i64) -> f64) -> Option<FunctionDifference> {
        let is_seen = [self.own, self.repetitions].concat().iter().any(|sum| *sum != 0);
        is_seen.then(|| FunctionDifference {
            name,
            own: self.own.map(per),
            calls: self.calls.map(per),
            inclusive: self.inclusive.map(|sums| sums.map(per)),
            repetitions: self.repetitions.map(per),
            note: None,
        })
    }
}

impl<'a> Naming<'a> {
    /// Names by which two kernels can be compared: if a function has several names, one that both kernels have.
    pub fn of_both(logs: [&'a ExecutionLog; 2]) -> Self {
        let [a, b] = logs.map(|log| log.symbols.families());
        Self { logs, shared: a.intersection(&b).copied().collect() }
    }

    /// The name of the function that begins at `start` on this side.
    pub fn name(&self, side: usize, start: Option<u64>) -> &'a str {
        self.logs[side].symbols.family(start, &self.shared)
    }

    /// The name of the function to which an address belongs.
    fn name_at(&self, side: usize, address: u64) -> &'a str {
        if address == 0 { PROGRAM } else { self.name(side, self.logs[side].symbols.start(address)) }
    }

    /// The sums of each function by name: the larger batch less the smaller one, over both kernels.
    fn sums(&self, cases: [&CaseLog; 2]) -> BTreeMap<String, Sums> {
        let mut sums = BTreeMap::<String, Sums>::new();
        for (side, case) in cases.iter().enumerate() {
            for (address, [count, repetitions]) in case.differences() {
                let row = sums.entry(self.name_at(side, address).into()).or_default();
                row.own[side] += count;
                row.repetitions[side] += repetitions;
                if self.logs[side].symbols.is_entry(address) {
                    row.calls[side] += count;
                }
            }
            for (name, inclusive) in self.inclusive(side, case) {
                let row = sums.entry(name.into()).or_default();
                row.inclusive.get_or_insert_default()[side] += inclusive;
            }
        }
        sums
    }

    /// Own instructions of each path, with functions by name: the larger batch less the smaller one.
    pub fn paths(&self, side: usize, case: &CaseLog) -> BTreeMap<Vec<&'a str>, i64> {
        let mut paths = BTreeMap::<Vec<&str>, i64>::new();
        let mut names = HashMap::new();
        for (batch, sign) in case.batches.iter().zip([-1, 1]) {
            for (path, own) in batch.calls.iter().flat_map(|calls| calls.paths()) {
                let mut name = |start: Option<u64>| match start {
                    None => PROGRAM,
                    start => *names.entry(start).or_insert_with(|| self.name(side, start)),
                };
                let mut path: Vec<_> = path.into_iter().map(&mut name).collect();
                // The compiler splits a function into parts, which have one name: they count as one function.
                path.dedup();
                *paths.entry(path).or_default() += sign * own as i64;
            }
        }
        paths.retain(|_, own| *own != 0);
        paths
    }

    /// Instructions of each function and of the functions it calls. A path on which a function occurs twice counts once.
    fn inclusive(&self, side: usize, case: &CaseLog) -> BTreeMap<&'a str, i64> {
        let mut sums = BTreeMap::new();
        for (path, own) in self.paths(side, case) {
            let names: HashSet<&str> = path.into_iter().collect();
            names.into_iter().for_each(|name| *sums.entry(name).or_default() += own);
        }
        sums
    }
}

/// A caller explains a function of only one kernel if its own instructions changed the other way by this share of the function's.
const EXPLAINS: f64 = 0.5;

/// Callers of each function.
type Callers<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Adds the notes to the functions of a case. A function replaces at most one other.
pub fn note_replacements(difference: &mut CaseDifference, naming: &Naming<'_>, cases: [&CaseLog; 2]) {
    let callers = [0, 1].map(|side| callers(naming, side, cases[side]));
    let notes = notes(&difference.functions, &callers);
    difference.functions.iter_mut().zip(notes).for_each(|(row, note)| row.note = note);
}

/// The note of each row. A function of one kernel is paired with the first free one of the other that is called alike.
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

/// Whether one function runs only in A and the other only in B, with as many calls and a common caller.
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

/// The side that executes this function, if the other side does not.
fn only_side(row: &FunctionDifference) -> Option<usize> {
    match row.own {
        [a, 0.0] if a > 0.0 => Some(0),
        [0.0, b] if b > 0.0 => Some(1),
        _ => None,
    }
}

/// The note of a function that only one kernel executes; `partner` is the function that replaces it.
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
    use crate::executed::execution_log::{BatchLog, SiteLog};
    use syscost_platform::symbols::Symbols;

    fn log(functions: &[(u64, &str)], batches: [&[(u64, u64, u64)]; 2]) -> ExecutionLog {
        let batch = |sites: &[(u64, u64, u64)]| BatchLog {
            total: sites.iter().map(|site| site.1).sum(),
            repetitions: sites.iter().map(|site| site.2).sum(),
            sites: sites
                .iter()
                .map(|(at, count, repetitions)| {
                    (*at, SiteLog { count: *count, repetitions: *repetitions, text: String::new() })
                })
                .collect(),
            calls: None,
        };
        let functions = functions.iter().map(|(address, name)| (*address, (*name).to_owned()));
        let case = CaseLog { id: "a/b".into(), batches: batches.map(batch).to_vec() };
        ExecutionLog { symbols: Symbols::new(functions.collect()), cases: vec![case] }
    }

    fn difference() -> CaseDifference {
        let a = log(
            &[(0x1000, "f.isra.0"), (0x1100, "g"), (0x1200, "gone")],
            [
                &[(0, 30, 0), (0x1000, 10, 0), (0x1001, 10, 0), (0x1200, 7, 0)],
                &[(0, 60, 0), (0x1000, 20, 0), (0x1001, 20, 0), (0x1200, 7, 0), (0x1201, 10, 80)],
            ],
        );
        let b = log(
            &[(0x5000, "f"), (0x5100, "g")],
            [
                &[(0, 30, 0), (0x5000, 10, 0), (0x5001, 20, 0)],
                &[(0, 60, 0), (0x5000, 20, 0), (0x5001, 40, 0)],
            ],
        );
        CaseDifference::between([&a, &b], "a/b", 10).expect("both")
    }

    #[test]
    fn the_functions_sum_up_to_what_was_counted() {
        let difference = difference();
        assert_eq!(difference.counted, [6.0, 6.0]);
        assert_eq!(difference.remainder, [0.0, 0.0]);
        assert_eq!(difference.repetitions, [8.0, 0.0]);
        for side in [0, 1] {
            let sum: f64 = difference.functions.iter().map(|row| row.own[side]).sum();
            assert_eq!(sum, difference.counted[side]);
        }
    }

    #[test]
    fn split_parts_count_with_their_function_and_the_largest_change_is_first() {
        let difference = difference();
        let names: Vec<_> = difference.functions.iter().map(|row| (row.name.as_str(), row.own)).collect();
        assert_eq!(names, [("f", [2.0, 3.0]), ("gone", [1.0, 0.0]), (PROGRAM, [3.0, 3.0])]);
        assert_eq!(difference.functions[0].calls, [1.0, 1.0]);
        let moved: Vec<_> = difference.moved().into_iter().map(|moved| moved.name).collect();
        assert_eq!(moved, ["f", "gone"], "the program did not move");
    }

    #[test]
    fn a_total_that_differs_from_the_sum_of_functions_leaves_a_remainder() {
        let mut a = log(&[(0x1000, "f")], [&[(0x1000, 10, 0)], &[(0x1000, 20, 0)]]);
        a.cases[0].batches[1].total += 5;
        let difference = CaseDifference::between([&a, &a], "a/b", 10).expect("both");
        assert_eq!((difference.counted, difference.remainder), ([1.5, 1.5], [0.5, 0.5]));
        assert!(CaseDifference::between([&a, &a], "no/such", 10).is_none());
    }

    fn row(name: &str, own: [f64; 2], calls: [f64; 2]) -> FunctionDifference {
        FunctionDifference { name: name.into(), own, calls, ..FunctionDifference::default() }
    }

    #[test]
    fn a_note_names_what_replaced_a_renamed_or_inlined_function() {
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
