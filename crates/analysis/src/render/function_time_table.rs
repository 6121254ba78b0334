//! The functions of a sampled case as a table for a person, as CSV and as JSON.

use super::sheet::{Column, LF, csv_table, number_cell};
use crate::error::Result;
use crate::statistic::Interval;
use crate::study::function_times::{FunctionTimes, TimeRow};
use syscost_engine::render::cell::Tone;
use syscost_engine::render::table::Layout;
use syscost_engine::render::terminal_text::{
    count_with_noun, paint, prose_width, table, table_width, wrap, wrap_sentences,
};

/// The most functions of a case that are shown.
const ROWS: usize = 10;

/// The table of one case.
pub fn function_table(study: &FunctionTimes, layout: Layout) -> String {
    if let Some(failure) = &study.failure {
        return wrap(&format!("{}: ", study.id), failure, prose_width(layout)) + "\n";
    }
    let scale = Scale::for_time(study.total.sides_ns.iter().copied().fold(0.0, f64::max));
    let is_difference = study.samples.len() == 2;
    let mut text = paint(Tone::Bold, &heading(study, &scale), layout) + "\n";
    text += &wrap("", &class_sentence(study, &scale), prose_width(layout));
    text += "\n";
    let significant = study.significant();
    let rows = significant.iter().take(ROWS).map(|row| (Tone::Plain, cells(row, study, &scale)));
    if !significant.is_empty() {
        let figure = if is_difference { ["difference", "A, B"] } else { ["time", "share"] };
        let head = [figure[0], "95 % interval", figure[1], "with callees", "function"];
        text += &table(head, rows, table_width(layout), layout);
    }
    text += &wrap_sentences(rest_sentences(study, &scale).iter().chain(&study.notes), layout);
    text
}

fn heading(study: &FunctionTimes, scale: &Scale) -> String {
    let samples = study.samples.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let (count, total) = (study.observations, &study.total);
    let measured = match total.sides_ns[..] {
        [a, b] => format!(
            "{}, then {}: {}, {:+.1} %; {count} pairs",
            scale.plain(a),
            scale.plain(b),
            scale.with_interval(total.figure, true),
            100.0 * (b / a - 1.0)
        ),
        _ => format!("{}; {count} processes", scale.with_interval(total.figure, false)),
    };
    format!("{}: {measured}, {samples} samples of {}", study.id, study.event)
}

/// One line on the classes that make up the time, or the difference.
fn class_sentence(study: &FunctionTimes, scale: &Scale) -> String {
    let significant = study.classes.iter().filter(|row| row.is_significant);
    let all: Vec<_> = match study.total.sides_ns[..] {
        [_, _] => {
            significant.map(|row| format!("{} {}", row.name, scale.signed(row.figure.estimate))).collect()
        }
        _ => significant
            .map(|row| (row, 100.0 * row.figure.estimate / study.total.figure.estimate))
            .filter(|(_, percent)| *percent >= 0.5)
            .map(|(row, percent)| format!("{} {percent:.0} %", row.name))
            .collect(),
    };
    if all.is_empty() { "no class of functions is significant".into() } else { all.join(", ") }
}

fn cells(row: &TimeRow, study: &FunctionTimes, scale: &Scale) -> [String; 5] {
    let is_difference = study.samples.len() == 2;
    let figure = |ns: f64| if is_difference { scale.signed(ns) } else { scale.plain(ns) };
    let second = match row.sides_ns[..] {
        [a, b] => format!("{}, {}", scale.number(a), scale.number(b)),
        _ => format!("{:.1} %", 100.0 * row.figure.estimate / study.total.figure.estimate),
    };
    [
        figure(row.figure.estimate),
        scale.ends(row.figure, is_difference),
        second,
        figure(row.with_callees_ns),
        row.name.clone(),
    ]
}

/// Sentences on the functions that are not in the table: smaller ones, and those that chance can explain.
fn rest_sentences(study: &FunctionTimes, scale: &Scale) -> Vec<String> {
    let (is_difference, sides) = (study.samples.len() == 2, study.samples.iter().copied());
    let figure = |ns: f64| if is_difference { scale.signed(ns) } else { scale.plain(ns) };
    let sum = |rows: &[TimeRow]| figure(rows.iter().map(|row| row.figure.estimate).sum());
    let (smaller, unresolved) = (study.significant().get(ROWS..).unwrap_or_default(), study.unresolved());
    let mut sentences = Vec::new();
    if !smaller.is_empty() {
        let count = count_with_noun(smaller.len(), "smaller function", "smaller functions");
        sentences.push(format!("{count}, {} together: `--format csv` has all", sum(smaller)));
    }
    if let Some(largest) = unresolved.first() {
        let count = count_with_noun(unresolved.len(), "function", "functions");
        let needed = study.times_as_many(largest).map_or(String::new(), |times| {
            let samples = times * sides.max().unwrap_or(0) as f64;
            let step = 10_f64.powf((samples.log10().floor() - 1.0).max(0.0));
            let each = if is_difference { " a side" } else { "" };
            let (name, seen) = (&largest.name, figure(largest.figure.estimate));
            format!("; {name} ({seen}) needs some {:.0} samples{each}", (samples / step).ceil() * step)
        });
        sentences.push(format!("not significant: {count}, {} together{needed}", sum(unresolved)));
    }
    sentences
}

/// The unit and the number of decimals of a case, chosen by its time.
struct Scale {
    ns: f64,
    unit: &'static str,
    decimals: usize,
}

impl Scale {
    fn for_time(ns: f64) -> Self {
        let (scale, unit) = match ns {
            ns if ns < 10e3 => (1.0, "ns"),
            ns if ns < 10e6 => (1e3, "µs"),
            _ => (1e6, "ms"),
        };
        let decimals = match ns / scale {
            value if value < 10.0 => 3,
            value if value < 1_000.0 => 1,
            _ => 0,
        };
        Self { ns: scale, unit, decimals }
    }

    fn number(&self, ns: f64) -> String {
        format!("{:.*}", self.decimals, ns / self.ns)
    }

    fn signed_number(&self, ns: f64) -> String {
        format!("{:+.*}", self.decimals, ns / self.ns)
    }

    fn plain(&self, ns: f64) -> String {
        format!("{} {}", self.number(ns), self.unit)
    }

    fn signed(&self, ns: f64) -> String {
        format!("{} {}", self.signed_number(ns), self.unit)
    }

    fn ends(&self, interval: Interval, is_signed: bool) -> String {
        let end = |ns| if is_signed { self.signed_number(ns) } else { self.number(ns) };
        format!("[{}, {}]", end(interval.low), end(interval.high))
    }

    fn with_interval(&self, interval: Interval, is_signed: bool) -> String {
        let estimate = interval.estimate;
        let figure = if is_signed { self.signed(estimate) } else { self.plain(estimate) };
        format!("{figure} {}", self.ends(interval, is_signed))
    }
}

/// A line of CSV: its case, its kind and its figures.
type CsvLine<'a> = (&'a FunctionTimes, &'static str, &'a TimeRow);

fn csv_columns<'a>() -> [Column<CsvLine<'a>>; 11] {
    [
        ("case", |(study, ..)| study.id.clone()),
        ("kind", |(_, kind, _)| (*kind).to_owned()),
        ("name", |(.., row)| row.name.clone()),
        ("a_ns", |(.., row)| number_cell(row.sides_ns.first().copied())),
        ("b_ns", |(.., row)| number_cell(row.sides_ns.get(1).copied())),
        ("figure_ns", |(.., row)| row.figure.estimate.to_string()),
        ("low_ns", |(.., row)| row.figure.low.to_string()),
        ("high_ns", |(.., row)| row.figure.high.to_string()),
        ("with_callees_ns", |(.., row)| row.with_callees_ns.to_string()),
        ("significant", |(.., row)| row.is_significant.to_string()),
        ("samples", |(study, ..)| study.samples.iter().sum::<u64>().to_string()),
    ]
}

/// All functions and classes of all cases as CSV.
///
/// # Errors
/// No known case: the text is made in memory.
pub fn function_times_csv(cases: &[FunctionTimes]) -> Result<String> {
    let rows = cases.iter().filter(|study| study.failure.is_none()).flat_map(|study| {
        let total = [(study, "total", &study.total)].into_iter();
        let classes = study.classes.iter().map(move |row| (study, "class", row));
        total.chain(classes).chain(study.functions.iter().map(move |row| (study, "function", row)))
    });
    csv_table(LF, &csv_columns(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, sides_ns: &[f64], ns: f64, is_significant: bool) -> TimeRow {
        TimeRow {
            name: name.into(),
            sides_ns: sides_ns.to_vec(),
            figure: Interval::around(ns, 2.0),
            with_callees_ns: ns,
            is_significant,
        }
    }

    fn compared() -> FunctionTimes {
        FunctionTimes {
            id: "syscall/pipe".into(),
            observations: 16,
            samples: vec![900, 1_000],
            event: "cpu-clock".into(),
            total: row("", &[100.0, 151.0], 51.0, true),
            functions: vec![row("filter", &[0.0, 50.0], 50.0, true), row("f", &[9.0, 10.0], 1.0, false)],
            classes: vec![row("files", &[0.0, 50.0], 50.0, true)],
            ..FunctionTimes::default()
        }
    }

    #[test]
    fn a_difference_has_its_interval_and_insignificant_functions_have_no_row() {
        let text = function_table(&compared(), Layout::default());
        for words in [
            "100.0 ns, then 151.0 ns: +51.0 ns [+49.0, +53.0], +51.0 %; 16 pairs, 900 and 1000 samples of cpu-clock",
            "files +50.0 ns",
            "+50.0 ns    [+48.0, +52.0]",
            "0.0, 50.0",
            "not significant: 1 function, +1.0 ns together; f (+1.0 ns) needs some",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(text.lines().filter(|line| line.ends_with("  f")).count(), 0, "{text}");
    }

    #[test]
    fn of_one_side_times_and_shares_are_shown() {
        let study = FunctionTimes {
            samples: vec![900],
            total: row("", &[20e3], 20e3, true),
            functions: vec![row("f", &[5e3], 5e3, true)],
            classes: vec![row("entry", &[5e3], 5e3, true)],
            ..compared()
        };
        let text = function_table(&study, Layout::default());
        for words in ["20.0 µs", "entry 25 %", "25.0 %", "16 processes, 900 samples"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn csv_has_every_row_of_a_case_that_was_sampled() {
        let failed =
            FunctionTimes { id: "a".into(), failure: Some("why".into()), ..FunctionTimes::default() };
        let text = function_times_csv(&[compared(), failed.clone()]).expect("written");
        assert_eq!(text.lines().count(), 1 + 4, "{text}");
        assert!(text.contains("syscall/pipe,function,filter,0,50,50,48,52,50,true,1900"), "{text}");
        assert_eq!(function_table(&failed, Layout::default()), "a: why\n");
    }
}
