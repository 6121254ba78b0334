//! The functions of a case as a table and as CSV; the functions whose instructions changed with their callers as an indented tree;
//! and the executed instructions of one function, each with its executions per iteration.

use crate::executed::execution_log::ExecutionLog;
use crate::executed::function_table::{CaseDifference, FunctionDifference, Naming};
use std::collections::BTreeMap;
use syscost_analysis::render::sheet::{Column, LF, csv_table, number_cell};
use syscost_command_line::page::{self, Tone};
use syscost_engine::render::table::Layout;
use syscost_platform::error::Result;

const HEAD: [&str; 6] =
    ["  difference", "         A", "         B", "     calls A, B", "with callees", "function"];

/// The most functions of a case that are shown.
const ROWS: usize = 20;

/// The table of one case: the functions that differ most, and then the sums over the others.
pub fn table(difference: &CaseDifference, layout: Layout) -> String {
    let (moved, still): (Vec<_>, Vec<_>) = difference.functions.iter().partition(|row| row.change() != 0.0);
    let shown = moved.len().min(ROWS);
    let mut rows: Vec<_> = moved[..shown].iter().map(|row| (Tone::Plain, function_cells(row))).collect();
    let mut add_sum = |label: String, own: [f64; 2]| rows.push((Tone::Plain, sum_cells(own, label)));
    if shown < moved.len() {
        add_sum(format!("{} more that differ", moved.len() - shown), own_sum(&moved[shown..]));
    }
    if !still.is_empty() {
        add_sum(format!("{} that do not differ", still.len()), own_sum(&still));
    }
    if difference.remainder != [0.0; 2] {
        add_sum("in no function: the plugin's file is damaged".into(), difference.remainder);
    }
    rows.push((Tone::Bold, sum_cells(difference.counted, "sum".into())));
    if difference.repetitions != [0.0; 2] {
        let label = "repetitions of string instructions, not in the sum";
        rows.push((Tone::Plain, sum_cells(difference.repetitions, label.into())));
    }
    format!(
        "{}\n{}",
        heading(difference, layout),
        page::table(HEAD, rows, layout.width.map_or(usize::MAX, usize::from), layout)
    )
}

fn heading(difference: &CaseDifference, layout: Layout) -> String {
    let [a, b] = difference.counted;
    let change = 100.0 * (b / a - 1.0);
    let text = format!("{}: {a:.2}, then {b:.2} instructions ({:+.2}, {change:+.2} %)", difference.id, b - a);
    page::paint(Tone::Bold, &text, layout)
}

fn own_sum(rows: &[&FunctionDifference]) -> [f64; 2] {
    [0, 1].map(|side| rows.iter().map(|row| row.own[side]).sum())
}

fn function_cells(row: &FunctionDifference) -> [String; 6] {
    let calls = row.calls.map(|calls| if calls == 0.0 { "–".into() } else { short_number(calls) });
    let note = row.note.as_ref().map_or(String::new(), |note| format!("  {note}"));
    [
        format!("{:+12.2}", row.change()),
        count(row.own[0]),
        count(row.own[1]),
        format!("{:>7} {:>7}", calls[0], calls[1]),
        row.inclusive.map_or(String::new(), |[a, b]| format!("{:+12.2}", b - a)),
        format!("{}{note}", row.name),
    ]
}

fn sum_cells(own: [f64; 2], label: String) -> [String; 6] {
    let [a, b] = own;
    [format!("{:+12.2}", b - a), count(a), count(b), String::new(), String::new(), label]
}

fn count(value: f64) -> String {
    if value == 0.0 { format!("{:>10}", "–") } else { format!("{value:10.2}") }
}

/// The number with at most two decimals.
fn short_number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// All functions of all cases as CSV, one function a row.
///
/// # Errors
/// None that is known.
pub fn csv(cases: &[CaseDifference]) -> Result<String> {
    csv_table(
        LF,
        &csv_columns(),
        cases.iter().flat_map(|case| case.functions.iter().map(move |row| (case, row))),
    )
}

fn csv_columns<'a>() -> [Column<(&'a CaseDifference, &'a FunctionDifference)>; 13] {
    [
        ("case", |(case, _)| case.id.clone()),
        ("function", |(_, row)| row.name.clone()),
        ("a", |(_, row)| row.own[0].to_string()),
        ("b", |(_, row)| row.own[1].to_string()),
        ("difference", |(_, row)| row.change().to_string()),
        ("calls_a", |(_, row)| row.calls[0].to_string()),
        ("calls_b", |(_, row)| row.calls[1].to_string()),
        ("with_callees_a", |(_, row)| number_cell(row.inclusive.map(|both| both[0]))),
        ("with_callees_b", |(_, row)| number_cell(row.inclusive.map(|both| both[1]))),
        ("repetitions_a", |(_, row)| row.repetitions[0].to_string()),
        ("repetitions_b", |(_, row)| row.repetitions[1].to_string()),
        ("iterations", |(case, _)| case.iterations.to_string()),
        ("note", |(_, row)| row.note.clone().unwrap_or_default()),
    ]
}

/// For each path, the instructions in A and in B of all paths that begin with it, over all iterations.
type Sums = BTreeMap<Vec<String>, [i64; 2]>;

/// The tree of calls of one case, with the instructions per iteration. Paths with equal instructions in A and B are left out.
pub fn call_tree(difference: &CaseDifference, logs: &[ExecutionLog; 2], naming: &Naming<'_>) -> String {
    let per = |count: i64| count as f64 / difference.iterations as f64;
    let mut said = format!("{:>12} {:>10} {:>10}  with callees\n", "difference", "A", "B");
    for (path, sums) in path_sums(difference, logs, naming).into_iter().filter(|(_, [a, b])| a != b) {
        let [a, b] = sums.map(per);
        let name = path.last().map_or("", String::as_str);
        said += &format!("{:+12.2} {a:10.2} {b:10.2}  {}{name}\n", b - a, "  ".repeat(path.len() - 1));
    }
    said
}

/// The sums of all paths of a case on both kernels.
fn path_sums(difference: &CaseDifference, logs: &[ExecutionLog; 2], naming: &Naming<'_>) -> Sums {
    let mut sums = Sums::new();
    for (side, log) in logs.iter().enumerate() {
        let Some(case) = log.case(&difference.id) else { continue };
        for (path, own) in naming.paths(side, case) {
            for length in 1..=path.len() {
                let names = path[..length].iter().map(|name| (*name).to_owned()).collect();
                sums.entry(names).or_default()[side] += own;
            }
        }
    }
    sums
}

/// The executed instructions of this function in A and in B, each with its executions per iteration.
pub fn listing(
    difference: &CaseDifference,
    logs: &[ExecutionLog; 2],
    naming: &Naming<'_>,
    function: &str,
) -> String {
    let mut said = String::new();
    for (side, (log, label)) in logs.iter().zip(["A", "B"]).enumerate() {
        let Some(case) = log.case(&difference.id) else { continue };
        said += &format!("{label}: {function}\n");
        let differences = case.differences();
        let of_function = differences.iter().filter(|(address, _)| {
            **address != 0 && naming.name(side, log.symbols.start(**address)) == function
        });
        let mut is_empty = true;
        for (address, [count, _]) in of_function {
            let text = case.batches.iter().find_map(|batch| batch.sites.get(address)).map(|site| &site.text);
            let count = *count as f64 / difference.iterations as f64;
            said += &format!("{count:10.2}  {address:x}  {}\n", text.map_or("", String::as_str));
            is_empty = false;
        }
        if is_empty {
            said += "            it executes no instruction of this function\n";
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, own: [f64; 2]) -> FunctionDifference {
        FunctionDifference { name: name.into(), own, ..FunctionDifference::default() }
    }

    fn difference() -> CaseDifference {
        CaseDifference {
            id: "syscall/pipe".into(),
            iterations: 100,
            counted: [170.0, 176.0],
            repetitions: [0.0; 2],
            remainder: [0.0; 2],
            functions: vec![row("f", [0.0, 74.0]), row("g", [68.0, 0.0]), row("h", [102.0, 102.0])],
        }
    }

    #[test]
    fn functions_without_a_row_are_in_the_sums() {
        let small = (1..=ROWS).map(|at| row(&format!("small-{at}"), [0.0, 0.01]));
        let mut long = difference();
        let same = long.functions.pop();
        long.functions.extend(small.chain(same));
        let text = table(&long, Layout::default());
        for words in
            ["+6.00, +3.53 %", "+74.00", "-68.00", "2 more that differ", "1 that do not differ", "sum"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("damaged") && !text.contains("repetitions"), "{text}");
    }

    #[test]
    fn a_remainder_and_repetitions_have_rows_of_their_own() {
        let text = table(
            &CaseDifference { remainder: [1.0, 0.0], repetitions: [512.0, 0.0], ..difference() },
            Layout::default(),
        );
        assert!(text.contains("damaged") && text.contains("512.00"), "{text}");
    }

    #[test]
    fn csv_has_all_functions_with_all_decimals() {
        let text = csv(&[difference()]).expect("written");
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("syscall/pipe,f,0,74,74,0,0,,,0,0,100,\n"), "{text}");
    }
}
