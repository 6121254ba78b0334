//! The callers of the functions that moved, as an indented tree.

use super::CaseDifference;
use crate::executed::execution_log::ExecutionLog;
use crate::executed::function_table::Naming;
use std::collections::BTreeMap;

/// Whole instructions of a path and of all that begin with it, in A and in B.
type Sums = BTreeMap<Vec<String>, [i64; 2]>;

/// The tree of one case. A path whose instructions do not differ is left out with all below it.
pub fn tree(difference: &CaseDifference, logs: &[ExecutionLog; 2], naming: &Naming<'_>) -> String {
    let per = |count: i64| count as f64 / difference.iterations as f64;
    let mut said = format!("{:>12} {:>10} {:>10}  with callees\n", "difference", "A", "B");
    for (path, sums) in path_sums(difference, logs, naming).into_iter().filter(|(_, [a, b])| a != b) {
        let [a, b] = sums.map(per);
        let name = path.last().map_or("", String::as_str);
        said += &format!("{:+12.2} {a:10.2} {b:10.2}  {}{name}\n", b - a, "  ".repeat(path.len() - 1));
    }
    said
}

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
