//! A history as SQL that SQLite and PostgreSQL both read: tables, and a row for each machine, software, series, run and point.
//! Names of rows are hashes of what they are of, so that files of several machines go into one database, and one file twice
//! changes nothing.

use crate::record::history_point::{CaseRatio, HistoryPoint};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;
use syscost_platform::inert;

/// Hexadecimal digits of a name.
const DIGITS: usize = 24;
/// The most characters of a text.
const LONGEST: usize = 10_000;

/// The tables. `ratio` in `point` is to the reference of the run; `bridge_to` is a name where the run is the bridge to a new one.
const TABLES: &str = "\
CREATE TABLE IF NOT EXISTS machine (id TEXT PRIMARY KEY, cpu_model TEXT, microcode TEXT, cpu_count BIGINT, memory_bytes BIGINT, \
hypervisor TEXT, product TEXT);
CREATE TABLE IF NOT EXISTS software (id TEXT PRIMARY KEY, kernel_release TEXT, kernel_version TEXT, kernel_command_line TEXT, \
mitigations TEXT, compiler TEXT, profile TEXT);
CREATE TABLE IF NOT EXISTS series (id TEXT PRIMARY KEY, case_id TEXT NOT NULL, operation_version TEXT NOT NULL, clock TEXT NOT NULL, \
canary BOOLEAN NOT NULL);
CREATE TABLE IF NOT EXISTS run (id TEXT PRIMARY KEY, run TEXT NOT NULL, started BIGINT NOT NULL, label TEXT NOT NULL, reference TEXT NOT \
NULL, bridge_to TEXT, machine TEXT NOT NULL REFERENCES machine (id), software TEXT NOT NULL REFERENCES software (id));
CREATE TABLE IF NOT EXISTS point (run TEXT NOT NULL REFERENCES run (id), series TEXT NOT NULL REFERENCES series (id), ratio DOUBLE \
PRECISION NOT NULL, log_ratio DOUBLE PRECISION NOT NULL, error DOUBLE PRECISION NOT NULL, pairs BIGINT NOT NULL, cost DOUBLE PRECISION NOT \
NULL, PRIMARY KEY (run, series));
";

/// The whole history.
pub(super) fn sql_script(points: &[HistoryPoint]) -> String {
    let mut text = format!("BEGIN;\n{TABLES}");
    let mut said = BTreeSet::new();
    for point in points {
        let machine = insert_row_once("machine", &machine_cells(point), &mut said, &mut text);
        let software = insert_row_once("software", &software_cells(point), &mut said, &mut text);
        let [run, cells] = run_name_and_cells(point, &machine, &software);
        write_insert("run", &run, &cells, &mut text);
        for case in &point.cases {
            let series = insert_row_once("series", &series_cells(point, case), &mut said, &mut text);
            let CaseRatio { log_ratio, error, pairs, cost_ns, .. } = case;
            let cells = format!("'{series}', {}, {log_ratio}, {error}, {pairs}, {cost_ns}", log_ratio.exp());
            write_insert("point", &run, &cells, &mut text);
        }
    }
    text + "COMMIT;\n"
}

/// Writes a row that other rows refer to, unless it was written before; returns its name.
fn insert_row_once(table: &str, cells: &str, said: &mut BTreeSet<String>, text: &mut String) -> String {
    let name = hashed_name(&format!("{table} {cells}"));
    if said.insert(name.clone()) {
        write_insert(table, &name, cells, text);
    }
    name
}

fn write_insert(table: &str, name: &str, cells: &str, text: &mut String) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "INSERT INTO {table} VALUES ('{name}', {cells}) ON CONFLICT DO NOTHING;");
}

fn hashed_name(id: &str) -> String {
    let digest = Sha256::digest(id.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..DIGITS].to_owned()
}

fn machine_cells(point: &HistoryPoint) -> String {
    let fingerprint = &point.fingerprint;
    let texts = [&fingerprint.cpu_model, &fingerprint.microcode].map(quoted_or_null).join(", ");
    let numbers =
        [number_or_null(fingerprint.cpu_count), number_or_null(fingerprint.memory_bytes)].join(", ");
    format!(
        "{texts}, {numbers}, {}",
        [&fingerprint.hypervisor, &fingerprint.product].map(quoted_or_null).join(", ")
    )
}

fn software_cells(point: &HistoryPoint) -> String {
    let fingerprint = &point.fingerprint;
    let mitigations =
        fingerprint.mitigations.iter().map(|(name, state)| format!("{name}: {state}")).collect::<Vec<_>>();
    let kernel = [&fingerprint.kernel_release, &fingerprint.kernel_version, &fingerprint.kernel_command_line]
        .map(quoted_or_null)
        .join(", ");
    let built = [&fingerprint.compiler, &fingerprint.profile].map(quoted_or_null).join(", ");
    format!("{kernel}, {}, {built}", sql_literal(&mitigations.join("; ")))
}

fn series_cells(point: &HistoryPoint, case: &CaseRatio) -> String {
    let clock = point.clock.to_string();
    let texts = [case.id.as_str(), &case.version, &clock].map(sql_literal).join(", ");
    format!("{texts}, {}", if case.canary { "TRUE" } else { "FALSE" })
}

/// The name of a run, and its cells. What its comparison is held against is a part of the name, as in the file.
fn run_name_and_cells(point: &HistoryPoint, machine: &str, software: &str) -> [String; 2] {
    let cells = [
        sql_literal(&point.run),
        point.started.to_string(),
        sql_literal(&point.label),
        sql_literal(&point.reference),
        quoted_or_null(&point.bridge_to),
    ];
    let cells = cells.join(", ");
    let name = hashed_name(&format!("run {:?}", point.identity()));
    [name, format!("{cells}, '{machine}', '{software}'")]
}

fn number_or_null<T: ToString>(number: Option<T>) -> String {
    number.map_or("NULL".into(), |number| number.to_string())
}

fn quoted_or_null(text: &Option<String>) -> String {
    text.as_deref().map_or("NULL".into(), sql_literal)
}

/// A text as an SQL literal. Quotes are doubled; characters that could mislead a terminal, a database (NUL) or a
/// reader are removed. A backslash needs no escape in either database.
fn sql_literal(text: &str) -> String {
    format!("'{}'", inert::neutralize_line(text, LONGEST).replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_text_is_a_literal_on_one_line() {
        assert_eq!(sql_literal("it's"), "'it''s'");
        assert_eq!(sql_literal("'); DROP TABLE run; --"), "'''); DROP TABLE run; --'");
        assert_eq!(sql_literal("a\0b\u{202e}c\nd"), "'a\u{fffd}b\u{fffd}c d'");
        assert_eq!(sql_literal("\\' \\echo"), "'\\'' \\echo'");
    }
}
