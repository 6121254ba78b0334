//! The file that the emulator's plugin writes in one boot: lines of text from the guest, and for each case the counts of a smaller
//! and a larger batch. `plugin/execution_counts.rs` describes its lines.

use super::call_tree::CallTree;
use crate::instruction_counts::Count;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use syscost_platform::error::{Error, Result};
use syscost_platform::inert;
use syscost_platform::symbols::{SymbolLine, Symbols};

/// The longest name that is kept, characters.
const LONGEST: usize = 200;

/// The log of one boot.
#[derive(Clone, Debug, Default)]
pub struct ExecutionLog {
    /// The functions of the kernel; empty if the guest was not asked for them.
    pub symbols: Symbols,
    /// The cases in the order in which they ran.
    pub cases: Vec<CaseLog>,
}

/// The log of one case.
#[derive(Clone, Debug, Default)]
pub struct CaseLog {
    /// `group/variant/parameter`.
    pub id: String,
    /// The smaller batch, and the larger one.
    pub batches: Vec<BatchLog>,
}

/// The batch of median length of a turn.
#[derive(Clone, Debug, Default)]
pub struct BatchLog {
    /// Executed instructions; a repeated string instruction is one.
    pub total: u64,
    /// Repetitions of string instructions.
    pub repetitions: u64,
    /// The instructions by their address; the address 0 stands for all code outside the kernel.
    pub sites: BTreeMap<u64, SiteLog>,
    /// The callers of each function, if the order was written.
    pub calls: Option<CallTree>,
}

/// One instruction of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteLog {
    /// How often it was executed.
    pub count: u64,
    /// How often it repeated itself.
    pub repetitions: u64,
    /// Its disassembly; empty if it was not asked for.
    pub text: String,
}

/// The line of text by which a guest announces a case.
pub fn case_line(id: &str) -> String {
    format!("case {id}")
}

/// The line of text by which a guest passes on a line of `/proc/kallsyms`; `None` if that is no function.
pub fn symbol_line(line: &str) -> Option<String> {
    let SymbolLine { address, name, module, is_function } = SymbolLine::parse(line)?;
    let module = module.map_or(String::new(), |module| format!(" {module}"));
    is_function.then(|| format!("k {address} {name}{module}"))
}

impl ExecutionLog {
    /// Reads the plugin's file, and the one with the order of execution if there is one.
    ///
    /// # Errors
    /// A file cannot be read. Damaged lines are left out: a case without two batches has no counts.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |e| Error::file(path, "reading", e);
        let open = || File::open(path).map(BufReader::new).map_err(failed);
        let order = File::open(order_path(path)).ok().map(BufReader::new);
        // The functions are written after the cases, so the file is read twice.
        let symbols = parse_symbols(open()?).map_err(failed)?;
        Self::parse(open()?, symbols, order).map_err(failed)
    }

    pub(crate) fn parse(
        lines: impl BufRead,
        symbols: Symbols,
        mut order: Option<impl Read>,
    ) -> std::io::Result<Self> {
        let mut log = Self { symbols, cases: Vec::new() };
        for line in lines.split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            match line.split_once(' ').unwrap_or_default() {
                ("s", said) => {
                    let id = said.strip_prefix("case ").map(|id| inert::neutralize_line(id, LONGEST));
                    log.cases.extend(id.map(|id| CaseLog { id, batches: Vec::new() }));
                }
                ("w", totals) => {
                    let Some(case) = log.cases.last_mut() else { continue };
                    let [total, repetitions] = parse_numbers(totals).unwrap_or_default();
                    case.batches.push(BatchLog { total, repetitions, ..BatchLog::default() });
                }
                ("o", length) => {
                    let (Some(order), Ok(length)) = (&mut order, length.parse()) else { continue };
                    let calls = CallTree::read(order, length, &log.symbols)?;
                    let batch = log.cases.last_mut().and_then(|case| case.batches.last_mut());
                    let _ = batch.map(|batch| batch.calls = Some(calls));
                }
                (address, counts) => {
                    let batch = log.cases.last_mut().and_then(|case| case.batches.last_mut());
                    let (Some(batch), Ok(address)) = (batch, u64::from_str_radix(address, 16)) else {
                        continue;
                    };
                    batch.add(address, counts);
                }
            }
        }
        Ok(log)
    }

    /// The case of this id, if both of its batches were counted.
    pub fn case(&self, id: &str) -> Option<&CaseLog> {
        self.cases.iter().find(|case| case.id == id && case.batches.len() == 2)
    }
}

/// The file with the order of execution beside the plugin's file.
pub fn order_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".order");
    name.into()
}

impl CaseLog {
    /// The count of the case from the plugin's log, which replaces the one by the emulator's clock. `None` if the log lacks a batch,
    /// or has no instruction in either: then the case is timed by a clock of its own.
    pub fn count(&self, iterations: u64) -> Option<Count> {
        let [small, large] = &self.batches[..] else { return None };
        (small.total + large.total > 0).then_some(Count {
            iterations,
            batches: [small.total, large.total],
            repetitions: [small.repetitions, large.repetitions],
        })
    }

    /// Executions and repetitions at each address: the larger batch less the smaller one.
    pub fn differences(&self) -> BTreeMap<u64, [i64; 2]> {
        let mut differences = BTreeMap::<u64, [i64; 2]>::new();
        for (batch, sign) in self.batches.iter().zip([-1, 1]) {
            for (address, site) in &batch.sites {
                let difference = differences.entry(*address).or_default();
                difference[0] += sign * (site.count as i64);
                difference[1] += sign * (site.repetitions as i64);
            }
        }
        differences
    }
}

impl BatchLog {
    fn add(&mut self, address: u64, counts: &str) {
        let Some([count, repetitions]) = parse_numbers(counts) else { return };
        let site = self.sites.entry(address).or_default();
        site.count += count;
        site.repetitions += repetitions;
        let text = counts.splitn(3, ' ').nth(2).unwrap_or_default();
        if site.text.is_empty() && !text.is_empty() {
            site.text = inert::neutralize_line(text, LONGEST);
        }
    }
}

fn parse_symbols(lines: impl BufRead) -> std::io::Result<Symbols> {
    let mut functions = Vec::new();
    for line in lines.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        functions.extend(line.strip_prefix("s k ").and_then(parse_function));
    }
    Ok(Symbols::new(functions))
}

fn parse_function(line: &str) -> Option<(u64, String)> {
    let (address, name) = line.split_once(' ')?;
    Some((u64::from_str_radix(address, 16).ok()?, inert::neutralize_line(name, LONGEST)))
}

fn parse_numbers(text: &str) -> Option<[u64; 2]> {
    let mut words = text.split(' ');
    Some([words.next()?.parse().ok()?, words.next()?.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ExecutionLog {
        let symbols = parse_symbols(text.as_bytes()).expect("no error");
        ExecutionLog::parse(text.as_bytes(), symbols, None::<&[u8]>).expect("no error")
    }

    const LOG: &str = "s case a/b\nw 12 3\n0 2 0 \nffffffff81000004 10 3 rep stosq\nw 21 6\n0 1 0 \n0 1 0 \n\
        ffffffff81000004 19 6 rep stosq\ns k ffffffff81000000 f\ns k ffffffff81000100 g [module]\n";

    #[test]
    fn a_case_has_a_smaller_and_a_larger_batch() {
        let log = parse(LOG);
        let case = log.case("a/b").expect("both batches");
        let count = Count { iterations: 3, batches: [12, 21], repetitions: [3, 6] };
        assert_eq!(case.count(3), Some(count));
        assert_eq!(case.differences(), BTreeMap::from([(0, [0, 0]), (0xffff_ffff_8100_0004, [9, 3])]));
        assert_eq!(case.batches[0].sites[&0xffff_ffff_8100_0004].text, "rep stosq");
        assert_eq!(log.symbols.start(0xffff_ffff_8100_0104), Some(0xffff_ffff_8100_0100));
    }

    #[test]
    fn a_damaged_or_missing_batch_gives_no_sound_count() {
        let log = parse(&LOG.replace("w 21", "w x"));
        assert!(log.case("a/b").and_then(|case| case.count(3)).is_some_and(|count| !count.is_sound()));
        assert!(parse("w 1 2\nffff 1 1\no 3\n\nnonsense\ns\n").cases.is_empty());
        assert!(parse(&LOG[..LOG.find("w 21").expect("there")]).case("a/b").is_none());
    }

    #[test]
    fn only_functions_become_symbol_lines() {
        assert_eq!(symbol_line("ffffffff81000000 T _stext").as_deref(), Some("k ffffffff81000000 _stext"));
        assert_eq!(
            symbol_line("ffffffffc0000000 t f\t[ext4]").as_deref(),
            Some("k ffffffffc0000000 f [ext4]")
        );
        assert_eq!(symbol_line("ffffffff82000000 D jiffies"), None);
        assert_eq!(symbol_line(""), None);
    }

    #[test]
    fn a_terminal_is_not_commanded_by_a_symbol() {
        let log = parse("s k 1000 f\u{1b}[2J\ns case a\u{1b}\n");
        assert!(!format!("{log:?}").contains("\\u{1b}"), "{log:?}");
    }
}
