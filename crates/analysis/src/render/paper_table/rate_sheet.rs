//! The third table of the paper: predicted and measured rates in messages per second. One sheet repeats the paper's own
//! experiment with one sender; the other has six senders that wait for their replies.

use super::{
    NOTHING, NamedCell, OURS, PAPERS, format_fixed, format_percent, format_percent_range, format_signed,
    named_sheet, wire_phrase,
};
use crate::render::sheet::Sheet;
use crate::study::paper::{Paper, Rate, SeparatePrediction, find_displacement};
use syscost_engine::record::{Interval, Record, Throughput};

/// The sheet of one sender, whose computation takes slightly longer than its message and the reply.
pub fn one_sender_sheet(paper: &Paper, record: &Record) -> Sheet {
    let rows = paper.throughput.iter().map(|row| {
        let mut cells = vec![
            ("message", message_size(row)),
            ("1997 real", format_fixed(row.real, 1)),
            ("displ.", format_fixed(row.displacement, 1)),
            ("%", format_signed(row.displacement_percent, 2)),
            ("ioctl", format_fixed(row.accounting, 1)),
            ("%", format_signed(row.accounting_percent, 2)),
        ];
        let ours = SeparatePrediction::from_record(record, &row.sender, &row.send);
        cells.extend(rate_cells(record, &row.sender, ours));
        cells
    });
    let title = format!(
        "Table 3: messages a second of one sender that computes while each is under way, measured and predicted{}",
        wire_phrase(record)
    );
    let notes = [
        "displ., ioctl, paper's, gap, accounting: 1 / (CPU time of a message + that of the computation), as in the paper: the two \
         measured by themselves (`nodes`, `computation`), neither with the other; % is how far that is off the \
         measured rate",
        "computes: for each message, 1.13 times as long as a message and its reply took when the case was set up, \
         on this wire, or longer by steps of that factor until 99 of 100 replies were there in time; in 1997 1.13 times \
         the transmission, and at least 2 ms",
        "whole: the same from the CPU time of both together, measured beside the fluid",
        "µs more: what the parts cost beyond the whole. The message by itself waits asleep for its reply; the sender \
         finds it there, and is spared a sleep, a wake-up and two switches, but is interrupted while it computes",
    ];
    named_sheet(title, rows, notes.map(str::to_owned).to_vec())
}

/// The sheet of six senders, each of which sleeps until its reply arrives, while others compute.
pub fn six_senders_sheet(paper: &Paper, record: &Record) -> Sheet {
    let rows = paper.throughput.iter().map(|row| {
        let ours = SeparatePrediction::from_record(record, &row.id, &row.send);
        [("message", message_size(row))].into_iter().chain(rate_cells(record, &row.id, ours)).collect()
    });
    let title = format!(
        "Table 3 with six senders, each of which waits asleep for its reply while others compute{}",
        wire_phrase(record)
    );
    let note = "as above; the whole is one sender beside the fluid, which waits asleep too";
    named_sheet(title, rows, vec![note.into()])
}

fn message_size(row: &Rate) -> String {
    row.id.trim_start_matches("throughput/").to_owned()
}

fn rate_cells(record: &Record, whole: &str, parts: Option<SeparatePrediction>) -> [NamedCell; 15] {
    let measured = find_displacement(record, whole).and_then(|ours| ours.throughput);
    let rate = |rate: Option<Interval>| rate.map_or(NOTHING.into(), |rate| format_fixed(rate.estimate, 0));
    let throughput = |field: fn(&Throughput) -> Interval| measured.as_ref().map(field);
    let part = |field: fn(&SeparatePrediction) -> Interval| parts.as_ref().map(field);
    let papers = |at: usize| Some(parts.as_ref()?.paper?[at]);
    let us = parts.and_then(|parts| parts.beyond_whole).map(|more| more.map(|ns| 1e-3 * ns));
    [
        ("computes µs", rate(part(|p| p.computation.map(|ns| 1e-3 * ns)))),
        ("real", rate(throughput(|t| t.real))),
        (PAPERS, rate(papers(0))),
        ("%", format_percent(papers(1))),
        (OURS, rate(part(|p| p.displaced))),
        ("%", format_percent(part(|p| p.displaced_off))),
        ("95 %", format_percent_range(part(|p| p.displaced_off))),
        ("accounting", rate(part(|p| p.charged))),
        ("%", format_percent(part(|p| p.charged_off))),
        ("95 %", format_percent_range(part(|p| p.charged_off))),
        ("whole", rate(throughput(|t| t.displaced))),
        ("%", format_percent(throughput(|t| t.displaced_off))),
        ("95 %", format_percent_range(throughput(|t| t.displaced_off))),
        ("µs more", us.map_or(NOTHING.into(), |us| format_signed(us.estimate, 1))),
        ("95 %", us.map_or(String::new(), |us| format!("[{:.1}, {:.1}]", us.low, us.high))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::paper::fixture_paper::{measured_case, record_of_cases, ten_percent_interval};
    use syscost_engine::record::Displaced;

    #[test]
    fn both_predictions_stand_beside_the_measured_rate() {
        let throughput = Throughput {
            real: Interval::exactly(10_000.0),
            displaced: Interval::exactly(9_900.0),
            displaced_off: Interval::exactly(-0.01),
            ..Throughput::default()
        };
        let cost = |ns| Displaced {
            gap: ten_percent_interval(ns),
            charged: ten_percent_interval(0.5 * ns),
            ..Displaced::default()
        };
        let cases = vec![
            measured_case(
                "sender/2000B",
                Displaced { throughput: Some(throughput), computed: 60_000, ..cost(101e3) },
            ),
            measured_case("nodes/2000B", cost(25e3)),
            measured_case("computation/120000", cost(160e3)),
        ];
        let sheet = one_sender_sheet(&Paper::read().expect("four tables"), &record_of_cases(cases));
        let row = &sheet.rows[1];
        assert_eq!(row[..8], ["2000B", "318.5", "314.6", "-1.21", "346.4", "+8.74", "80", "10000"]);
        assert_eq!(row[8..12], [NOTHING, NOTHING, "9524", "-4.8"]);
        assert_eq!(row[13..15], ["19048", "+90.5"]);
        assert_eq!(row[16..18], ["9900", "-1.0"]);
        assert_eq!(row[19], "+4.0");
        assert!(sheet.rows[0][6..].contains(&NOTHING.to_owned()));
    }
}
