//! The tables of the displacement paper: the published columns, the columns of a run, and the error terms.

mod rate_sheet;

use super::sheet::Sheet;
use crate::study::paper::{GROUP, Paper, displacement_of, find_displacement};
use syscost_engine::record::{Displaced, Interval, Record};
use syscost_engine::study::executions::pool_intervals;

/// The column heads of the two estimators of a displaced time.
const PAPERS: &str = "paper's";
const OURS: &str = "gap";
/// The note that explains the two estimators.
const ESTIMATORS: &str = "paper's: T(2) − L(2)·τ of the fluid, an operation; gap: the same time from the gaps that the fluid saw, which \
    needs no calibration in another run and stands where the machine was not quiet";

/// A cell without a measurement.
const NOTHING: &str = "–";

/// All tables of the paper, and a table of the error terms.
pub fn paper_sheets(paper: &Paper, record: &Record) -> Vec<Sheet> {
    vec![
        computation_sheet(paper, record),
        send_sheet(paper, record),
        rate_sheet::one_sender_sheet(paper, record),
        rate_sheet::six_senders_sheet(paper, record),
        loops_sheet(paper, record),
        error_sheet(record),
    ]
}

/// For each sheet, the prefixes of the ids of its cases. The last sheet, of error terms, takes every case.
const WAYS: [&[&str]; 6] = [
    &["compute/"],
    &["loopback/", "steered/", "nodes/", "tcp-peer/"],
    &["sender/"],
    &["throughput/"],
    &["loops/"],
    &[""],
];

/// The sheets for which the record has at least one number.
pub fn filled_sheets(paper: &Paper, record: &Record) -> Vec<Sheet> {
    let names = displaced_cases(record).filter_map(|(id, _)| id.strip_prefix(GROUP)?.strip_prefix('/'));
    let names: Vec<_> = names.collect();
    let is_filled = |ways: &[&str]| ways.iter().any(|way| names.iter().any(|name| name.starts_with(way)));
    paper_sheets(paper, record)
        .into_iter()
        .zip(WAYS)
        .filter(|(_, ways)| is_filled(ways))
        .map(|(one, _)| one)
        .collect()
}

/// The cases of the group that have a number, each with its id.
fn displaced_cases(record: &Record) -> impl Iterator<Item = (&str, Displaced)> {
    let cases = record.groups.iter().filter(|run| run.name == GROUP).flat_map(|run| &run.cases);
    cases.filter_map(|case| Some((&*case.id, displacement_of(case)?)))
}

/// A cell and the name of its column.
type NamedCell = (&'static str, String);

/// A sheet of named cells. The names become the head. There must be at least one row.
fn named_sheet(title: String, rows: impl Iterator<Item = Vec<NamedCell>>, notes: Vec<String>) -> Sheet {
    let mut sheet = Sheet { title, notes, ..Sheet::default() };
    for row in rows {
        let (names, cells): (Vec<_>, Vec<_>) = row.into_iter().unzip();
        sheet.head = header_cells(&names);
        sheet.rows.push(cells);
    }
    sheet
}

fn computation_sheet(paper: &Paper, record: &Record) -> Sheet {
    let rows = paper.compute.iter().map(|row| {
        let ours = find_displacement(record, &row.id);
        let column = |field: fn(&Displaced) -> Option<Interval>| ours.as_ref().and_then(field);
        let charged = column(|o| o.charged);
        let (theirs, free) = (column(|o| o.paper), column(|o| o.daemon_free));
        vec![
            ("asked", row.id.trim_start_matches("compute/").to_owned()),
            ("1997 ioctl", format_fixed(row.accounting, 0)),
            ("displ.", format_fixed(row.displacement, 0)),
            ("%", format_signed(row.percent, 2)),
            ("accounting", format_microseconds(charged)),
            (PAPERS, format_microseconds(theirs)),
            ("%", format_papers_more(ours.as_ref())),
            (OURS, format_microseconds(column(|o| o.gap))),
            ("%", format_percent_more(column(|o| o.gap), charged)),
            ("daemon-free", format_microseconds(free)),
            ("%", format_percent_more(free, charged)),
        ]
    });
    let source = format!("1997: {}; % is how much more than accounting", paper.source);
    let notes = vec![source, ESTIMATORS.into(), quiet_note(record, &["compute"])];
    named_sheet("Table 1: plain computation, µs an operation".into(), rows, notes)
}

/// The ways over which the second table sends, as prefixes of case ids.
const SENT: [&str; 4] = ["loopback", "steered", "nodes", "tcp-peer"];

fn send_sheet(paper: &Paper, record: &Record) -> Sheet {
    let rows = paper.send.iter().map(|row| {
        let ours = SENT.map(|way| find_displacement(record, &format!("{way}/{}", row.id)));
        let cells = ours.iter().flat_map(|ours| {
            let column = |field: fn(&Displaced) -> Option<Interval>| ours.as_ref().and_then(field);
            let difference = column(|o| o.difference);
            [
                format_microseconds(column(|o| o.charged)),
                format_microseconds(column(|o| o.paper)),
                format_papers_more(ours.as_ref()),
                format_microseconds(column(|o| o.gap)),
                format_percent(difference),
                format_percent_range(difference),
            ]
        });
        let published = [
            row.id.clone(),
            format_fixed(row.accounting, 0),
            format_fixed(row.displacement, 0),
            format_signed(row.percent, 2),
        ];
        published.into_iter().chain(cells).collect()
    });
    let way = |name: &str| {
        [format!("{name} acc."), PAPERS.into(), "%".into(), OURS.into(), "%".into(), "95 %".into()]
    };
    let ways = ["loopback", "steered", "2 nodes", "peer"].into_iter().flat_map(way);
    Sheet {
        title: format!("Table 2: TCP send of a message (its bytes), and a reply of one, µs an operation{}", wire_phrase(record)),
        head: header_cells(&["message", "1997 ioctl", "displ.", "%"]).into_iter().chain(ways).collect(),
        rows: rows.collect(),
        notes: vec![
            ESTIMATORS.into(),
            "%: how much more displacement finds than accounting; below nothing is an over-charge".into(),
            "loopback and steered are not the paper's case, whose server is another node: \"2 nodes\" is, by `scripts/two-nodes`"
                .into(),
            "2 nodes: frames that are acknowledged while the message is still being sent interrupt the sender itself and \
             are charged to it. On a wire that is slow beside the CPU, as in 1997 and by `scripts/two-nodes`, they come \
             while it waits; with `--wire none` the percentage falls from four frames on"
                .into(),
            "peer: another machine, with `--peer`; the receive work of the interface is in it as far as it is done on the measuring \
             CPU (its interrupt's affinity, or receive steering)"
                .into(),
            quiet_note(record, &SENT),
        ],
    }
}

fn loops_sheet(paper: &Paper, record: &Record) -> Sheet {
    let rows = paper.loops.iter().map(|row| {
        let ours = find_displacement(record, &row.id);
        let column = |field: fn(&Displaced) -> Option<Interval>| ours.as_ref().and_then(field);
        let (gap, papers) = (column(|o| o.gap), column(|o| o.paper));
        let deviation = ours.as_ref().map(|ours| ours.deviation / 1e3);
        let share = gap.zip(deviation).map(|(gap, deviation)| 100.0 * deviation / (gap.estimate / 1e3));
        let plain = |value: Option<f64>| value.map_or(NOTHING.into(), |value| format_fixed(value, 2));
        let half = |value: Option<Interval>| plain(value.map(|value| (value.high - value.estimate) / 1e3));
        vec![
            ("loops", row.id.trim_start_matches("loops/").to_owned()),
            ("1997 mean", format_fixed(row.mean, 2)),
            ("sd", format_fixed(row.deviation, 2)),
            ("%", format_fixed(row.percent, 2)),
            ("± 95 %", format_fixed(row.half, 2)),
            (PAPERS, format_microseconds(papers)),
            ("± 95 %", half(papers)),
            (OURS, format_microseconds(gap)),
            ("sd", plain(deviation)),
            ("%", plain(share)),
            ("± 95 %", half(gap)),
            ("unspoilt runs", ours.map_or(NOTHING.into(), |ours| ours.kept.0.to_string())),
        ]
    });
    let note = "ours: Student's t over the runs; those of 1997 are 1.3 times as wide as t makes them from the deviations \
                beside them";
    named_sheet(
        "Table 4: a send of 2 KB, by the loops of a run, µs an operation".into(),
        rows,
        vec![note.into(), ESTIMATORS.into()],
    )
}

fn error_sheet(record: &Record) -> Sheet {
    let rows = displaced_cases(record).map(|(id, ours)| {
        let terms = [ours.error_daemons, ours.error_start, ours.error_resolution, ours.error_cache];
        let terms = [terms[0], terms[1], terms[2], terms[3], terms.iter().sum()];
        let name = id.trim_start_matches(GROUP).trim_start_matches('/').to_owned();
        let cost = ours.gap.map_or(NOTHING.into(), |gap| format_fixed(gap.estimate, 0));
        let turns = ours.turns.map(|turns| if turns > 0.0 { format_fixed(turns, 0) } else { NOTHING.into() });
        [name, cost].into_iter().chain(terms.map(|term| format_fixed(term, 3))).chain(turns).collect()
    });
    Sheet {
        title: "Error terms of section 3, ns an operation".into(),
        head: header_cells(&["case", "cost", "daemons", "start", "± resolution", "cache", "error", "L(1)", "L(2)"]),
        rows: rows.collect(),
        notes: vec![
            "daemons: in the paper's estimate alone; start: taken off; cache: what the fluid's turns took more after an \
             interruption, which is in the cost"
                .into(),
            "error: their sum, e_daemons + e_cache + e_res + e_start, as section 3 has it for the paper's estimate; ours has no \
             daemons in it, and start is taken off"
                .into(),
            "L(1), L(2): turns of the fluid in one window of its calibration and in the run. They are not equal: ± resolution is \
             Δ (1 + L(2)/L(1)) / 2 L_PUT, with a turn for Δ"
                .into(),
        ],
    }
}

/// The wire between the two nodes, for a title.
fn wire_phrase(record: &Record) -> String {
    // A wire with a kernel release at its far end leads to a peer; a wire without one leads to a node of this machine.
    let wire = record.groups.iter().find(|run| run.name == GROUP).and_then(|run| run.wire.as_deref());
    match wire.filter(|wire| wire.far.fingerprint.kernel_release.is_none()).map(|wire| wire.rate.as_deref()) {
        Some(Some(rate)) => format!("; 2 nodes on a wire of {rate}"),
        Some(None) => "; 2 nodes on a wire that takes no time".into(),
        None => String::new(),
    }
}

/// A note with the number of the cases of these ways that were measured on a quiet machine.
fn quiet_note(record: &Record, ways: &[&str]) -> String {
    let is_of_way = |id: &str| ways.iter().any(|way| id.starts_with(&format!("{GROUP}/{way}/")));
    let all: Vec<_> = displaced_cases(record).filter(|(id, _)| is_of_way(id)).collect();
    let quiet = all.iter().filter(|(_, displaced)| displaced.quiet).count();
    format!(
        "ours: the machine was quiet in {quiet} of {} cases; where it was not, the paper's estimate is missing",
        all.len()
    )
}

fn header_cells(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn format_fixed(value: f64, places: usize) -> String {
    format!("{value:.places$}")
}

fn format_signed(value: f64, places: usize) -> String {
    format!("{value:+.places$}")
}

/// The estimate in microseconds, with two decimals below 100 µs and one from there on.
fn format_microseconds(interval: Option<Interval>) -> String {
    interval.map_or(NOTHING.into(), |interval| {
        let us = interval.estimate / 1e3;
        format_fixed(us, if us < 100.0 { 2 } else { 1 })
    })
}

fn format_percent_more(one: Option<Interval>, than: Option<Interval>) -> String {
    let ratio = one.zip(than).map(|(one, than)| 100.0 * (one.estimate / than.estimate - 1.0));
    ratio.map_or(NOTHING.into(), |percent| format_signed(percent, 2))
}

/// The percentage by which the paper's estimate exceeds accounting. Only executions with the estimate count, each against its
/// own accounting.
fn format_papers_more(ours: Option<&Displaced>) -> String {
    let more = |one: &Displaced| Some(Interval::exactly(one.paper?.estimate / one.charged?.estimate - 1.0));
    let pooled = ours.and_then(|ours| pool_intervals(ours.each_execution().iter().filter_map(more)));
    pooled.map_or(NOTHING.into(), |more| format_signed(100.0 * more.estimate, 2))
}

fn format_percent(share: Option<Interval>) -> String {
    share.map_or(NOTHING.into(), |share| format_signed(100.0 * share.estimate, 1))
}

fn format_percent_range(share: Option<Interval>) -> String {
    share.map_or(String::new(), |share| format!("[{:.1}, {:.1}]", 100.0 * share.low, 100.0 * share.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::paper::fixture_paper::{measured_case, record_of_cases, ten_percent_interval};
    use syscost_engine::environment::Wire;

    #[test]
    fn a_cell_without_a_measurement_says_so_and_the_published_ones_stay() {
        let paper = Paper::read().expect("four tables");
        let sheets = paper_sheets(&paper, &record_of_cases(Vec::new()));
        assert_eq!(sheets.len(), 6);
        for sheet in &sheets[..5] {
            assert!(sheet.rows.iter().all(|row| row.len() == sheet.head.len()), "{}", sheet.title);
            assert!(sheet.rows.iter().all(|row| row.contains(&NOTHING.to_owned())), "{}", sheet.title);
        }
        assert_eq!(sheets[0].rows[1][1..4], ["902", "936", "+3.77"]);
    }

    #[test]
    fn a_table_without_a_number_of_the_record_can_be_left_out() {
        let paper = Paper::read().expect("four tables");
        let titles = |cases| {
            let sheets = filled_sheets(&paper, &record_of_cases(cases));
            sheets.iter().map(|sheet| sheet.title[..7].to_owned()).collect::<Vec<_>>()
        };
        assert!(titles(Vec::new()).is_empty());
        assert_eq!(
            titles(vec![measured_case("steered/3000B", Displaced::default())]),
            ["Table 2", "Error t"]
        );
        assert_eq!(titles(vec![measured_case("pipe", Displaced::default())]), ["Error t"]);
    }

    #[test]
    fn our_columns_are_beside_the_published_ones() {
        let displaced = Displaced {
            quiet: true,
            charged: ten_percent_interval(10e3),
            paper: ten_percent_interval(15e3),
            gap: ten_percent_interval(20e3),
            difference: ten_percent_interval(1.0),
            ..Displaced::default()
        };
        let paper = Paper::read().expect("four tables");
        let sheets =
            paper_sheets(&paper, &record_of_cases(vec![measured_case("nodes/3000B", displaced.clone())]));
        let row = &sheets[1].rows[2];
        assert_eq!(row[..4], ["3000B", "777", "1280", "+64.74"]);
        // The columns after those of loopback and steered, which have six each.
        let named = &sheets[1].head[16..22];
        assert_eq!(named, ["2 nodes acc.", "paper's", "%", "gap", "%", "95 %"]);
        assert_eq!(row[16..22], ["10.00", "15.00", "+50.00", "20.00", "+100.0", "[90.0, 110.0]"]);
        assert!(
            sheets[1].notes.iter().any(|note| note.contains("quiet in 1 of 1 cases")),
            "{:?}",
            sheets[1].notes
        );
        let sheets = paper_sheets(&paper, &record_of_cases(vec![measured_case("loopback/3000B", displaced)]));
        assert!(
            sheets[1].notes.iter().any(|note| note.contains("quiet in 1 of 1 cases")),
            "every way: {:?}",
            sheets[1].notes
        );
    }

    #[test]
    fn an_execution_without_the_papers_estimate_does_not_count() {
        let execution = |charged: f64, paper: Option<f64>| Displaced {
            charged: ten_percent_interval(charged),
            paper: paper.and_then(ten_percent_interval),
            ..Displaced::default()
        };
        let executions = vec![execution(20e3, Some(21e3)), execution(40e3, None)];
        let pooled = Displaced { executions, ..execution(30e3, Some(21e3)) };
        assert_eq!(format_papers_more(Some(&pooled)), "+5.00");
        assert_eq!(format_papers_more(Some(&execution(20e3, None))), NOTHING);
    }

    #[test]
    fn small_error_terms_are_not_rounded_to_nothing() {
        let displaced =
            Displaced { gap: ten_percent_interval(20e3), error_cache: 0.004, ..Displaced::default() };
        let sheet = error_sheet(&record_of_cases(vec![measured_case("nodes/3000B", displaced)]));
        assert_eq!(
            sheet.rows,
            [["nodes/3000B", "20000", "0.000", "0.000", "0.000", "0.004", "0.004", NOTHING, NOTHING]]
        );
    }

    #[test]
    fn the_title_names_the_wire_if_there_was_one() {
        let over = |wire: Option<Wire>| {
            let mut record = record_of_cases(Vec::new());
            record.groups[0].wire = wire.map(Box::new);
            let paper = Paper::read().expect("four tables");
            send_sheet(&paper, &record).title
        };
        assert!(over(None).ends_with("µs an operation"));
        assert!(
            over(Some(Wire { rate: Some("300mbit".into()), ..Wire::default() }))
                .ends_with("a wire of 300mbit")
        );
        assert!(over(Some(Wire::default())).ends_with("takes no time"));
    }
}
