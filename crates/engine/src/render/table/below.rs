//! The text below the table: reasons, distributions, curves, fits, notes and the tally.

use super::column::{Column, DOUBTED, outcome_label, rate};
use super::{Layout, Row, Shape, Sheet, curve_text, wrap_sentence};
use crate::record::quantity::{format_amount, is_instruction_unit};
use crate::record::{GroupRun, Outcome, Tally};
use crate::render::cell::Tone;
use crate::render::figure_line::{derived_line, distribution_line, fit_sentence};
use crate::render::terminal_plot::heat_map;
use crate::study::disturbance::disturbance_sentence;
use crate::study::reference_frequency::frequency_range;
use std::collections::BTreeMap;

/// If the core's frequencies lie within this share of each other, the frequency counts as constant.
const STEADY: f64 = 0.01;

/// The meaning of the interval if no case has several executions.
const ONE_PROCESS: &str = "95 %: the interval of the median of one process, which says nothing of the next";

/// A paragraph and its tone. A paragraph without a tone is a drawing, whose lines are not wrapped.
type Paragraph = (Option<Tone>, String);

/// Everything below the table, its sections separated by empty lines.
pub fn table_notes(sheet: &Sheet<'_>, shape: &Shape, layout: Layout) -> String {
    let mut groups: Vec<&GroupRun> = sheet.rows.iter().map(|row| row.group).collect();
    groups.dedup_by(|a, b| std::ptr::eq(*a, *b));
    let sections = [
        reason_paragraphs(sheet, |outcome| matches!(outcome, Outcome::Failed(_))),
        reason_paragraphs(sheet, |outcome| matches!(outcome, Outcome::Disturbed(_))),
        reason_paragraphs(sheet, |outcome| matches!(outcome, Outcome::Skipped(_))),
        plain_paragraphs(distribution_lines(sheet)),
        plain_paragraphs(derived_lines(sheet, shape)),
        plain_paragraphs(curve_text::event_lines(sheet.rows.iter().map(|row| row.case))),
        heat_map_lines(sheet).into_iter().map(|line| (None, line)).collect(),
        curve_text::drawing_lines(&groups, layout).into_iter().map(|line| (None, line)).collect(),
        plain_paragraphs(curve_text::curve_lines(&groups)),
        plain_paragraphs(
            groups.iter().flat_map(|g| &g.fits).map(|fit| fit_sentence(fit, sheet.unit)).collect(),
        ),
        plain_paragraphs(figure_remarks(sheet)),
        plain_paragraphs(disturbance_sentence(sheet.rows.iter().map(|row| row.case)).into_iter().collect()),
        plain_paragraphs(note_lines(&groups)),
        plain_paragraphs(column_legend(shape, layout, sheet.has_next_run_interval())),
        plain_paragraphs(doubt_legend(sheet)),
        vec![(Some(Tone::Bold), tally_line(sheet))],
    ];
    let width = layout.width.map_or(usize::MAX, usize::from);
    let printed = |section: &Vec<Paragraph>| -> String {
        section
            .iter()
            .map(|(tone, text)| match tone {
                Some(tone) => tone.paint(&wrap_sentence(text, width), layout.color) + "\n",
                None => format!("{text}\n"),
            })
            .collect()
    };
    let sections = sections.iter().filter(|section| !section.is_empty());
    sections.map(|section| format!("\n{}", printed(section))).collect()
}

fn plain_paragraphs(texts: Vec<String>) -> Vec<Paragraph> {
    texts.into_iter().map(|text| (Some(Tone::Plain), text)).collect()
}

/// Paragraphs on why cases have no number. Cases of a group that were skipped for the same reason share a paragraph. Each
/// failure and disturbance has its own, so that its id can be searched for.
fn reason_paragraphs(sheet: &Sheet<'_>, is_asked: fn(&Outcome) -> bool) -> Vec<Paragraph> {
    let of_kind = sheet.rows.iter().filter(|row| is_asked(&row.case.outcome));
    let mut endings: Vec<(&Row<'_>, &str, Vec<&str>)> = Vec::new();
    for row in of_kind {
        let Some(sentence) = row.case.outcome.reason() else { continue };
        let same = |(first, other, _): &&mut (&Row<'_>, &str, _)| {
            let is_skipped = matches!(row.case.outcome, Outcome::Skipped(_));
            is_skipped && std::ptr::eq(first.group, row.group) && *other == sentence
        };
        match endings.iter_mut().find(same) {
            Some((_, _, operations)) => operations.push(row.operation_name()),
            None => endings.push((row, sentence, vec![row.operation_name()])),
        }
    }
    endings.iter().map(|(row, sentence, of)| (Some(row.tone()), reason_line(row, sentence, of))).collect()
}

fn reason_line(row: &Row<'_>, sentence: &str, operations: &[&str]) -> String {
    let word = outcome_label(&row.case.outcome);
    match operations {
        [_] => format!("{word} {}: {sentence}", row.case.id),
        several => {
            format!(
                "{word} {} of {}: {sentence}: {}",
                several.len(),
                row.group.name,
                join_operations(several)
            )
        }
    }
}

/// The names of all operations; if there are more than 40, the first and the last.
fn join_operations(operations: &[&str]) -> String {
    const MOST: usize = 40;
    match operations {
        [first, .., last] if operations.len() > MOST => format!("{first} … {last}"),
        _ => operations.join(", "),
    }
}

fn distribution_lines(sheet: &Sheet<'_>) -> Vec<String> {
    let with = |row: &Row<'_>| {
        let distribution = row.measured()?.distribution.as_ref()?;
        Some(format!("{}: {}", row.case.id, distribution_line(distribution)))
    };
    sheet.rows.iter().filter_map(with).collect()
}

/// One line for each case with its derived figures, except those that have a column.
fn derived_lines(sheet: &Sheet<'_>, shape: &Shape) -> Vec<String> {
    let has_column = shape.columns.contains(&Column::Rate);
    let of_case = |row: &Row<'_>| {
        let measured = row.measured()?;
        let shown = rate(measured).filter(|_| has_column);
        let below = measured.derived.iter().filter(|figure| shown.is_none_or(|shown| shown != *figure));
        let figures: Vec<_> = below.map(derived_line).collect();
        (!figures.is_empty()).then(|| format!("{}: {}", row.case.id, figures.join(", ")))
    };
    sheet.rows.iter().filter_map(of_case).collect()
}

fn heat_map_lines(sheet: &Sheet<'_>) -> Vec<String> {
    let of_case = |row: &Row<'_>| {
        let map = heat_map(row.measured()?.matrix.as_ref()?);
        Some([vec![format!("{}, ns between CPUs:", row.case.id)], map].concat())
    };
    sheet.rows.iter().filter_map(of_case).flatten().collect()
}

/// Each note once, with the names of its groups, unless all groups have the note.
fn note_lines(groups: &[&GroupRun]) -> Vec<String> {
    let mut about: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for group in groups {
        for note in &group.notes {
            about.entry(note).or_default().push(&group.name);
        }
    }
    let sentence = |(note, of): (&str, Vec<&str>)| match of.len() {
        n if n == groups.len() => format!("note: {note}"),
        _ => format!("note ({}): {note}", of.join(", ")),
    };
    about.into_iter().map(sentence).collect()
}

/// Sentences on the meaning of short headings, and on the columns that are not shown.
fn column_legend(shape: &Shape, layout: Layout, known: bool) -> Vec<String> {
    let of_several = [
        "quiet: the cost without interference",
        "next run: where the next run's figure lies, 19 times in 20",
        "next: how far off the next run's figure may be, 19 times in 20",
    ];
    let of_one = ["measured: the median", ONE_PROCESS, ONE_PROCESS];
    let [measured, interval, share] = if known { of_several } else { of_one };
    let explained = [
        (
            Column::Net,
            "net: slope less the same loop without the operation, where such a control was measured",
        ),
        (Column::Interval, interval),
        (Column::Measured, measured),
        (Column::Typical, "typical: the median of all samples"),
        (
            Column::Cycles,
            "cycles: of the core, the same at each of its frequencies; of what does not wait for memory",
        ),
        (Column::Ratio, "ratio: the figure over the expected; both net, unless the whole was predicted"),
        (Column::Share, share),
        (Column::Claims, "claims: how many held, samples disturbed, ~ for not settled"),
    ];
    let shown = explained.iter().filter(|(column, _)| shape.columns.contains(column));
    let heads: Vec<&str> = shown.map(|(_, meaning)| *meaning).collect();
    let mut legend = Vec::new();
    if !heads.is_empty() {
        legend.push(heads.join("; ") + ".");
    }
    if let (Some(width), false) = (layout.width, shape.hidden.is_empty()) {
        legend.push(format!(
            "Not shown at {width} columns: {}; `syscost report` in a wider terminal or with `--format markdown` \
             shows them.",
            shape.hidden.join(", ")
        ));
    }
    legend
}

/// The meaning of the mark [`DOUBTED`], if a row has it.
fn doubt_legend(sheet: &Sheet<'_>) -> Vec<String> {
    let is_marked = sheet.rows.iter().any(|row| row.is_time_in_doubt(sheet.unit));
    let meaning = || {
        format!("{DOUBTED}: the clocks contradict each other by more than 1 %, and so may this time be off")
    };
    is_marked.then(meaning).into_iter().collect()
}

/// Remarks that a reader of the figures must know.
fn figure_remarks(sheet: &Sheet<'_>) -> Vec<String> {
    [
        unwitnessed_remark(sheet),
        core_frequency_remark(sheet),
        faster_mode_remark(sheet),
        unsettled_remark(sheet),
        left_out_remark(sheet),
        first_run_remark(sheet),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A sentence with the number of cases with a claim that could not be checked, and the reason for the first.
fn unwitnessed_remark(sheet: &Sheet<'_>) -> Option<String> {
    let open =
        |row: &Row<'_>| Some((row.case.id.clone(), row.measured()?.unwitnessed_claims().next()?.clone()));
    let open: Vec<_> = sheet.rows.iter().filter_map(open).collect();
    let (id, sentence) = open.first()?;
    Some(format!(
        "unwitnessed: {} cases, of which a claim could not be asked, so that what their ids say is not proved; {id}: {sentence}",
        open.len()
    ))
}

/// A sentence on the cases in which one execution met a faster mode.
fn faster_mode_remark(sheet: &Sheet<'_>) -> Option<String> {
    let faster = |row: &Row<'_>| {
        let figure = row.measured()?.quiet?.faster?;
        Some(format!("{} at {}", row.case.id, format_amount(figure, sheet.unit)))
    };
    let met: Vec<_> = sheet.rows.iter().filter_map(faster).collect();
    (!met.is_empty())
        .then(|| format!("a faster mode, met by one execution and left out: {}", first_few(&met)))
}

/// A sentence with the core frequency for which the figures hold, and the range in this run; `None` if it was constant.
fn core_frequency_remark(sheet: &Sheet<'_>) -> Option<String> {
    let [wanted, low, high] = frequency_range(sheet.rows.iter().filter_map(Row::measured))?;
    (high > low * (1.0 + STEADY)).then(|| {
        format!(
            "times hold for a core at {:.2} GHz, as when it is left alone; here it ran at {:.2} to {:.2} GHz, and what does not \
             wait for memory is converted",
            wanted / 1e9,
            low / 1e9,
            high / 1e9
        )
    })
}

/// A sentence with the number of cases that are not settled, and the first of their ids.
fn unsettled_remark(sheet: &Sheet<'_>) -> Option<String> {
    let measured = || sheet.rows.iter().filter_map(|row| Some((row.case.id.as_str(), row.measured()?)));
    let all = measured().count();
    let open: Vec<&str> = measured().filter(|(_, m)| !m.is_settled()).map(|(id, _)| id).collect();
    (!open.is_empty()).then(|| {
        format!(
            "not settled: {} of {all} cases, whose figures in the next run may lie more than 10 % away; more time \
             (SYSCOST_TIME, `--time`), a quieter machine or another run narrows their intervals: {}",
            open.len(),
            first_few(&open)
        )
    })
}

/// The first five texts of a list, and `…` if there are more.
fn first_few(texts: &[impl AsRef<str>]) -> String {
    const FEW: usize = 5;
    let few: Vec<&str> = texts.iter().take(FEW).map(AsRef::as_ref).collect();
    few.join(", ") + if texts.len() > FEW { ", …" } else { "" }
}

/// A sentence with the number of executions that were left out, and the reason for the last one.
fn left_out_remark(sheet: &Sheet<'_>) -> Option<String> {
    let cases = sheet.rows.iter().filter_map(|row| Some((row.case.id.as_str(), &row.measured()?.left_out)));
    let cases: Vec<_> = cases.filter(|(_, left_out)| !left_out.is_empty()).collect();
    let (id, sentence) = cases.last().and_then(|(id, left_out)| Some((id, left_out.last()?)))?;
    let count: usize = cases.iter().map(|(_, left_out)| left_out.len()).sum();
    Some(format!("left out: {count} executions of {} cases, the last one of {id}: {sentence}", cases.len()))
}

/// A warning on the first run of a machine: its intervals may be too narrow.
fn first_run_remark(sheet: &Sheet<'_>) -> Option<String> {
    if is_instruction_unit(sheet.unit) {
        return None;
    }
    let mut quiet = sheet.rows.iter().filter_map(|row| row.measured()?.quiet).peekable();
    let first = quiet.peek().is_some() && quiet.all(|quiet| quiet.earlier == 0);
    first.then(|| {
        "the first run of this machine: how far its figures lie from run to run is not known yet, so the intervals may be \
         too narrow"
            .into()
    })
}

fn tally_line(sheet: &Sheet<'_>) -> String {
    let mut tally = Tally::default();
    sheet.rows.iter().for_each(|row| tally.add(&row.case.outcome));
    tally.to_string()
}
