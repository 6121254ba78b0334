//! Flame graphs of a case: of A, of B, and of B coloured by its difference from A.

use super::Executed;
use crate::executed::function_table::{CaseDifference, Naming};
use inferno::flamegraph::{Options, from_lines};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use syscost_platform::error::{Error, Result};

/// Writes three graphs of each case; their paths.
///
/// # Errors
/// A file cannot be written.
pub fn write(directory: &Path, executed: &Executed, naming: &Naming<'_>) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "making", e))?;
    let mut written = Vec::new();
    for difference in &executed.cases {
        let stacks = [0, 1].map(|side| {
            let case = executed.logs[side].case(&difference.id);
            case.map_or_else(BTreeMap::new, |case| naming.paths(side, case))
        });
        let lines = [lines_of_side(&stacks[0]), lines_of_side(&stacks[1]), lines_of_both(&stacks)];
        for (lines, what) in lines.iter().zip(["a", "b", "difference"]) {
            let path = directory.join(format!("{}.{what}.svg", difference.id.replace('/', "-")));
            draw(&path, difference, what, lines)?;
            written.push(path);
        }
    }
    Ok(written)
}

type Stacks<'a> = BTreeMap<Vec<&'a str>, i64>;

fn lines_of_side(stacks: &Stacks<'_>) -> Vec<String> {
    let whole = stacks.iter().filter(|(_, count)| **count > 0);
    whole.map(|(path, count)| format!("{} {count}", path.join(";"))).collect()
}

fn lines_of_both(stacks: &[Stacks<'_>; 2]) -> Vec<String> {
    let paths: BTreeSet<_> = stacks.iter().flat_map(BTreeMap::keys).collect();
    let count = |side: usize, path: &Vec<&str>| stacks[side].get(path).copied().unwrap_or(0).max(0);
    paths
        .into_iter()
        .map(|path| format!("{} {} {}", path.join(";"), count(0, path), count(1, path)))
        .collect()
}

fn draw(path: &Path, difference: &CaseDifference, what: &str, lines: &[String]) -> Result<()> {
    let failed = |e: std::io::Error| Error::file(path, "writing", e);
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    let mut options = Options::default();
    options.title = format!("{} {what}", difference.id);
    options.count_name = format!("instructions in {} iterations", difference.iterations);
    options.deterministic = true;
    let drawn = from_lines(&mut options, lines.iter().map(String::as_str), file);
    drawn.map_err(|e| failed(std::io::Error::other(e)))
}
