//! The columns of the table: their headings and their cells.

use super::{Row, Sheet};
use crate::record::quantity::{
    NANOSECONDS, format_amount, format_count, format_duration, format_half_width, format_interval,
    format_ratio,
};
use crate::record::{Derived, Measured, Outcome, WAITS};
use crate::render::cell::shorten_middle;
use crate::study::basis::{best_cost, ratio_to_prediction};
use crate::study::reference_frequency::core_cycles;

/// A column of the table, in the order from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Operation,
    Hardware,
    Software,
    Predicted,
    Measured,
    /// The median's interval, both ends.
    Interval,
    /// The interval as a share, if both ends do not fit.
    Share,
    Typical,
    /// The cost in core cycles, for cases that do not wait for memory.
    Cycles,
    Net,
    Ratio,
    /// Bytes or elements per time, for cases that state how many they process.
    Rate,
    /// An additional column, by its index in `Sheet::against`.
    Against(usize),
    Evidence,
    /// The evidence as figures only, for a narrow terminal.
    Claims,
}

/// The mark of a time that is in doubt because the clocks contradict each other.
pub const DOUBTED: &str = "!";

/// The word that a row shows in place of a number; empty for a measured case.
pub fn outcome_label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Measured(_) => "",
        Outcome::Failed(_) => "FAILED",
        other => other.status_word(),
    }
}

impl Column {
    /// Every column that this sheet can fill. Predictions, published values and cycles are shown only if the unit is
    /// nanoseconds.
    pub fn all_for_sheet(sheet: &Sheet<'_>) -> Vec<Self> {
        let time = sheet.unit == NANOSECONDS;
        let predicted =
            time && sheet.rows.iter().any(|r| r.measured().is_some_and(|m| m.predicted.is_some()));
        let mut columns = vec![Self::Operation];
        if predicted {
            columns.extend([Self::Hardware, Self::Software, Self::Predicted]);
        }
        columns.extend([Self::Measured, Self::Interval, Self::Typical]);
        columns.extend((time && sheet.rows.iter().any(|r| cycles(r).is_some())).then_some(Self::Cycles));
        columns.push(Self::Net);
        columns.extend(predicted.then_some(Self::Ratio));
        columns.extend(rates(sheet).next().is_some().then_some(Self::Rate));
        columns.extend((0..sheet.against.len()).filter(|_| time).map(Self::Against));
        columns.push(Self::Evidence);
        columns
    }

    /// The name of the column, for its heading and for the line on columns that were left out.
    pub fn name(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Hardware => "hardware",
            Self::Software => "software",
            Self::Predicted => "expected",
            Self::Measured => "quiet",
            Self::Interval => "next run",
            Self::Share => "next",
            Self::Typical => "typical",
            Self::Cycles => "cycles",
            Self::Net => "net",
            Self::Ratio => "ratio",
            Self::Rate => "throughput",
            Self::Against(_) => "",
            Self::Evidence => "evidence",
            Self::Claims => "claims",
        }
    }

    pub fn heading(self, sheet: &Sheet<'_>) -> String {
        match self {
            Self::Against(i) => sheet.against[i].name.into(),
            Self::Measured if sheet.unit != NANOSECONDS => sheet.unit.into(),
            Self::Measured if !sheet.has_next_run_interval() => "measured".into(),
            Self::Interval if !sheet.has_next_run_interval() => "95 % interval".into(),
            Self::Share if !sheet.has_next_run_interval() => "95 %".into(),
            Self::Rate if rates(sheet).all(is_bandwidth) => "bandwidth".into(),
            _ => self.name().into(),
        }
    }

    /// Whether the column is text, which is aligned left; numbers are aligned right.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Operation | Self::Interval | Self::Share | Self::Evidence | Self::Claims)
    }

    /// Blanks after the column. The interval belongs to the measured figure, so only one blank separates them.
    pub fn gap_width(self) -> usize {
        if self == Self::Measured { 1 } else { 2 }
    }

    pub fn cell_text(self, sheet: &Sheet<'_>, row: &Row<'_>, longest: usize) -> String {
        match self {
            Self::Operation => shorten_middle(row.operation_name(), longest),
            Self::Against(i) => {
                let value = sheet.against[i].values.get(&row.case.id);
                value.map(|v| format_duration(*v)).unwrap_or_default()
            }
            Self::Measured if row.measured().is_none() => outcome_label(&row.case.outcome).into(),
            Self::Measured | Self::Typical if row.is_time_in_doubt(sheet.unit) => {
                row.measured().and_then(|m| self.figure_text(m, sheet.unit)).unwrap_or_default() + DOUBTED
            }
            _ => row.measured().and_then(|m| self.figure_text(m, sheet.unit)).unwrap_or_default(),
        }
    }

    fn figure_text(self, measured: &Measured, unit: &str) -> Option<String> {
        let predicted = measured.predicted.as_ref();
        Some(match self {
            Self::Hardware => format_duration(predicted?.hardware),
            Self::Software => format_duration(predicted?.software),
            Self::Predicted => predicted.map(|p| format_duration(p.hardware + p.software))?,
            Self::Measured => format_amount(measured.figure().estimate, unit),
            Self::Interval => format_interval(&measured.figure(), unit),
            Self::Share => format_half_width(&measured.figure()),
            Self::Typical => format_amount(measured.median.estimate, unit),
            Self::Cycles => format_count(core_cycles(measured)?),
            Self::Net => format_amount(best_cost(measured)?.1.estimate, unit),
            Self::Ratio => format_ratio(ratio_to_prediction(measured)?),
            Self::Rate => {
                rate(measured).map(|rate| format!("{} {}", format_count(rate.value.estimate), rate.unit))?
            }
            Self::Evidence => evidence_text(measured),
            Self::Claims => short_evidence_text(measured),
            Self::Operation | Self::Against(_) => return None,
        })
    }
}

fn cycles(row: &Row<'_>) -> Option<f64> {
    core_cycles(row.measured()?)
}

fn rates<'a>(sheet: &Sheet<'a>) -> impl Iterator<Item = &'a Derived> {
    sheet.rows.iter().filter_map(|row| rate(row.case.measured()?))
}

/// The derived figure of the column `Rate`: a bandwidth in GB/s, or a throughput in elem/s.
pub fn rate(measured: &Measured) -> Option<&Derived> {
    measured
        .derived
        .iter()
        .find(|figure| is_bandwidth(figure) || (figure.name == "throughput" && figure.unit == "elem/s"))
}

fn is_bandwidth(figure: &Derived) -> bool {
    figure.name == "bandwidth" && figure.unit == "GB/s"
}

/// The evidence in words: `✓ 5 claims · 3/50 disturbed · not settled`. If a claim could not be checked:
/// `unwitnessed: 4 claims held, 1 not asked`. A case without claims has no tick mark.
fn evidence_text(measured: &Measured) -> String {
    let is_open = measured.is_unwitnessed();
    let held = match measured.evidence.len() {
        0 => "no claims".into(),
        1 => "1 claim".into(),
        n => format!("{n} claims"),
    };
    let held = match measured.evidence.len() {
        _ if is_open => format!("unwitnessed: {held} held"),
        0 => held,
        _ => format!("✓ {held}"),
    };
    let held = match measured.unasked.len() {
        0 => held,
        n => format!("{held}, {n} not asked"),
    };
    let held = waiting_share(measured).map_or(held.clone(), |share| format!("{held} · waits {share:.0} %"));
    let held = disturbed_share(measured).map_or(held.clone(), |share| format!("{held} · {share} disturbed"));
    if measured.is_settled() { held } else { held + " · not settled" }
}

/// The same evidence in few characters: `✓5 3/50 ~`, or `unwitnessed 4?1` if a claim could not be checked.
fn short_evidence_text(measured: &Measured) -> String {
    let held = match measured.evidence.len() {
        n if measured.is_unwitnessed() => format!("unwitnessed {n}"),
        0 => "none".into(),
        n => format!("✓{n}"),
    };
    let held = match measured.unasked.len() {
        0 => held,
        n => format!("{held}?{n}"),
    };
    let held = disturbed_share(measured).map_or(held.clone(), |share| format!("{held} {share}"));
    if measured.is_settled() { held } else { held + " ~" }
}

/// The share of its time that an operation waits, %; `None` if the record has no such figure.
fn waiting_share(measured: &Measured) -> Option<f64> {
    let figure = measured.derived.iter().find(|figure| figure.name == WAITS);
    figure.map(|figure| figure.value.estimate)
}

/// Disturbed samples and all samples, as in `3/50`; `None` if no sample was disturbed.
fn disturbed_share(measured: &Measured) -> Option<String> {
    let samples = measured.contamination.involuntary_switches.len();
    let disturbed = measured.contamination.count_disturbed();
    (disturbed > 0).then(|| format!("{disturbed}/{samples}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evidence_counts_claims_and_disturbed_samples() {
        let mut measured = Measured { evidence: vec!["a".into(), "b".into()], ..Measured::default() };
        assert_eq!(evidence_text(&measured), "✓ 2 claims");
        measured.contamination.involuntary_switches = vec![0, 1, 0, 2];
        assert_eq!(evidence_text(&measured), "✓ 2 claims · 2/4 disturbed");
        assert_eq!(short_evidence_text(&measured), "✓2 2/4");
        measured.unasked.push(format!("{}a count: time grows", crate::record::NEVER_ASKED));
        assert_eq!(evidence_text(&measured), "✓ 2 claims, 1 not asked · 2/4 disturbed");
        measured.unasked.push("no witness could be called".into());
        assert_eq!(evidence_text(&measured), "unwitnessed: 2 claims held, 2 not asked · 2/4 disturbed");
        assert_eq!(short_evidence_text(&measured), "unwitnessed 2?2 2/4");
        measured.unasked.clear();
        let value = crate::record::Interval::exactly(97.6);
        measured.derived.push(Derived { name: WAITS.into(), unit: "%".into(), value });
        assert_eq!(evidence_text(&measured), "✓ 2 claims · waits 98 % · 2/4 disturbed");
        measured.evidence.clear();
        assert_eq!(short_evidence_text(&measured), "none 2/4");
    }
}
