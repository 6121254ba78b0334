//! Groups the runs of bundles by the kernel on which they ran. Each kernel becomes a side of a comparison.

use super::Bundle;
use crate::error::Result;
use std::collections::BTreeSet;
use syscost_engine::record::Record;

/// A bundle for each kernel, in the order of their first runs. Kernels differ by release, build or command line.
///
/// # Errors
/// Runs of one kernel have different units.
pub fn split_by_kernel(mut records: Vec<Record>) -> Result<Vec<Bundle>> {
    records.sort_by_key(|record| record.started);
    let mut sides: Vec<Vec<Record>> = Vec::new();
    for record in records {
        match sides
            .iter_mut()
            .find(|side| side.first().is_some_and(|first| kernel_identity(first) == kernel_identity(&record)))
        {
            Some(side) => side.push(record),
            None => sides.push(vec![record]),
        }
    }
    let firsts: Vec<_> = sides.iter().filter_map(|side| side.first()).collect();
    let common = common_words(&firsts);
    let names: Vec<_> = firsts.iter().map(|first| kernel_name(first, &common)).collect();
    let bundle = |(name, side): (String, Vec<Record>)| {
        let began = side.first().map_or(0, |first| first.started);
        Bundle::from_records(&name, began, side)
    };
    names.into_iter().zip(sides).map(bundle).collect()
}

fn kernel_identity(record: &Record) -> [Option<&String>; 3] {
    let machine = &record.fingerprint;
    [&machine.kernel_release, &machine.kernel_version, &machine.kernel_command_line].map(Option::as_ref)
}

fn command_line_words(record: &Record) -> impl Iterator<Item = &str> {
    record.fingerprint.kernel_command_line.iter().flat_map(|line| line.split_whitespace())
}

/// The words that all kernel command lines share.
fn common_words(records: &[&Record]) -> BTreeSet<String> {
    let word_set = |record: &&Record| command_line_words(record).map(str::to_owned).collect::<BTreeSet<_>>();
    let all = records.iter().map(word_set).reduce(|common, own| common.intersection(&own).cloned().collect());
    all.unwrap_or_default()
}

/// The name of a kernel: its release, and the words of its command line that not all kernels have.
fn kernel_name(record: &Record, common: &BTreeSet<String>) -> String {
    let release = record.fingerprint.kernel_release.as_deref().unwrap_or("an unknown kernel");
    let own = command_line_words(record).filter(|word| !common.contains(*word));
    std::iter::once(release).chain(own).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::fixture_run;

    fn run(at: u64, release: &str, line: &str) -> Record {
        let mut record = Record { run: format!("{at}"), started: at, ..fixture_run::fixture_record() };
        record.fingerprint.kernel_release = Some(release.into());
        record.fingerprint.kernel_command_line = Some(line.into());
        record
    }

    #[test]
    fn each_kernel_is_a_side_in_the_order_in_which_it_ran() {
        let runs = vec![
            run(3, "6.12", "root=… quiet"),
            run(1, "6.12", "root=… quiet"),
            run(2, "6.1", "root=… quiet"),
            run(4, "6.1", "root=… quiet pti=on"),
        ];
        let sides = split_by_kernel(runs).unwrap();
        let found: Vec<_> = sides.iter().map(|side| (side.head.name.as_str(), side.records.len())).collect();
        assert_eq!(found, [("6.12", 2), ("6.1", 1), ("6.1 pti=on", 1)]);
        assert_eq!(sides[0].head.created, 1);
    }

    #[test]
    fn one_kernel_is_one_side() {
        assert_eq!(split_by_kernel(vec![run(1, "6.1", ""), run(2, "6.1", "")]).unwrap().len(), 1);
        assert!(split_by_kernel(Vec::new()).unwrap().is_empty());
    }
}
