//! The results of an experiment as tables.

use crate::study::fleet_effect::{Alone, CaseEffect, Column, FleetAnswer, MachineEffect};
use std::collections::BTreeMap;
use syscost_engine::record::quantity::format_change;
use syscost_engine::record::{Interval, Verdict};
use syscost_engine::render::cell::Tone;
use syscost_engine::render::metric_page::{MetricFamily, MetricFormat, MetricKind, MetricPage, Sample};
use syscost_engine::render::table::Layout;
use syscost_engine::render::terminal_text::{
    count_with_noun, heading, paint, prose_width, tabbed_rows, table, table_width, wrap,
};

/// The most machines that stand out and are named.
const NAMED: usize = 8;
/// The most rows of a kernel without `--all`.
const ROWS: usize = 30;

/// The results over all machines: the machines, and for each kernel a sentence and a table.
pub fn render_fleet(answer: &FleetAnswer, all: bool, layout: Layout) -> String {
    let mut text = render_head(answer, layout);
    for column in &answer.columns {
        text += &format!("\n{}\n", heading(&column_title(answer, column), table_width(layout), layout));
        text += &wrap("", &column_summary(column), prose_width(layout));
        text += "\n\n";
        let (shown, left) = cases_to_show(column, all);
        text += &case_table(&shown, layout);
        text += &standing_out_lines(answer, column, layout);
        if left > 0 {
            text += &format!("and {}: --all\n", count_with_noun(left, "more case", "more cases"));
        }
        text += &class_lines(answer, &shown, layout);
    }
    text
}

/// The results of one host.
pub fn render_host(answer: &FleetAnswer, host: &str, all: bool, layout: Layout) -> String {
    let mut text = render_head(answer, layout);
    for column in &answer.columns {
        text += &format!(
            "\n{}\n",
            heading(&format!("{host}: {}", column_title(answer, column)), table_width(layout), layout)
        );
        let mut cases: Vec<_> =
            column.cases.iter().flat_map(|case| case.effects.iter().map(move |e| (case, e))).collect();
        cases.retain(|(_, effect)| all || effect.verdict() != Verdict::Same);
        cases.sort_by(|a, b| b.1.ratio.ln().abs().total_cmp(&a.1.ratio.ln().abs()));
        let row = |(case, effect): &(&CaseEffect, &MachineEffect)| {
            (Tone::from_verdict(effect.verdict()), host_row(answer, case, effect))
        };
        let rows: Vec<_> = cases.iter().map(row).collect();
        text += &render_table(
            ["case", "change", "95 % interval", "verdict", "all machines", "machine"],
            &rows,
            layout,
        );
    }
    text
}

fn host_row(answer: &FleetAnswer, case: &CaseEffect, effect: &MachineEffect) -> [String; 6] {
    let own = effect.interval.map(|[low, high]| Interval { estimate: effect.ratio, low, high });
    [
        case.id.clone(),
        format_change(effect.ratio),
        own.map_or("–".into(), |own| interval_text(&own)),
        effect.verdict().to_string(),
        case.ratio.map_or("–".into(), |ratio| format_change(ratio.estimate)),
        answer.machines[effect.machine].name.clone(),
    ]
}

/// The effects of one host for a program: a tab-separated line for each kernel, case and machine state.
pub fn tabbed_host_rows(answer: &FleetAnswer) -> String {
    let of_column = |column: &Column| {
        let cases =
            column.cases.iter().flat_map(|case| case.effects.iter().map(move |effect| (case, effect)));
        let line = |(case, effect): (&CaseEffect, &MachineEffect)| {
            let ends = effect.interval.map_or([f64::NAN; 2], |ends| ends);
            let numbers = [effect.ratio, ends[0], ends[1]].map(number_or_dash);
            let names =
                [answer.machines[effect.machine].name.clone(), column.kernel.clone(), case.id.clone()];
            tabbed_rows(&[[&names[..], &[effect.verdict().to_string()], &numbers[..]].concat()])
        };
        cases.map(line).collect::<String>()
    };
    answer.columns.iter().map(of_column).collect()
}

/// The results over all machines for a program: a tab-separated line for each kernel and case.
pub fn tabbed_case_rows(answer: &FleetAnswer) -> String {
    let line = |column: &Column, case: &CaseEffect| {
        let ratio = case.ratio.map_or([f64::NAN; 3], |r| [r.estimate, r.low, r.high]);
        let out: Vec<_> =
            case.standing_out.iter().map(|e| answer.machines[e.machine].name.as_str()).collect();
        let numbers = [ratio[0], ratio[1], ratio[2], case.between.unwrap_or(f64::NAN)].map(number_or_dash);
        let names = [column.kernel.clone(), case.id.clone(), case.verdict.to_string()];
        tabbed_rows(&[[&names[..], &numbers[..], &[case.machines.to_string(), out.join(",")]].concat()])
    };
    answer.columns.iter().flat_map(|column| column.cases.iter().map(move |case| line(column, case))).collect()
}

fn number_or_dash(value: f64) -> String {
    if value.is_finite() { format!("{value:.5}") } else { "-".into() }
}

/// The number of machines, the kernels, the machine classes and the warnings.
fn render_head(answer: &FleetAnswer, layout: Layout) -> String {
    let width = prose_width(layout);
    let mut text = format!(
        "{}: {}, {}\n",
        answer.experiment,
        count_with_noun(answer.machines.len(), "machine", "machines"),
        answer.kernels.join(" → ")
    );
    for class in &answer.classes {
        text += &wrap("  ", &format!("{} × {}", class.machines, class.what), width);
        text.push('\n');
    }
    for warning in &answer.warnings {
        text += &paint(Tone::Yellow, &wrap("! ", warning, width), layout);
        text.push('\n');
    }
    text
}

fn column_title(answer: &FleetAnswer, column: &Column) -> String {
    format!("{} over {}", column.kernel, answer.kernels[0])
}

/// One sentence with the number of cases for each verdict, the largest changes and the outlying machines.
fn column_summary(column: &Column) -> String {
    let count = |verdict| column.cases.iter().filter(|case| case.verdict == verdict).count();
    let largest = |verdict, pick: fn(f64, f64) -> f64| {
        let judged = column.cases.iter().filter(|case| case.verdict == verdict);
        let ratios = judged.filter_map(|case| Some(case.ratio?.estimate));
        ratios.reduce(pick).map(|ratio| format!(", the most {}", format_change(ratio))).unwrap_or_default()
    };
    let out = column.cases.iter().filter(|case| !case.standing_out.is_empty()).count();
    let tail = match out {
        0 => "no machine stands out".to_owned(),
        _ => format!("machines stand out in {}", count_with_noun(out, "case", "cases")),
    };
    format!(
        "Of {}, {} slower{}; {} faster{}; {} the same; {} undecided; {tail}.",
        count_with_noun(column.cases.len(), "case", "cases"),
        count(Verdict::Slower),
        largest(Verdict::Slower, f64::max),
        count(Verdict::Faster),
        largest(Verdict::Faster, f64::min),
        count(Verdict::Same),
        count(Verdict::Inconclusive),
    )
}

/// At most [`ROWS`] changed cases, the largest change first, or with `all` every case; and the number of the other cases.
fn cases_to_show(column: &Column, all: bool) -> (Vec<&CaseEffect>, usize) {
    if all {
        return (column.cases.iter().collect(), 0);
    }
    let mut shown: Vec<_> = column.cases.iter().filter(|case| case.verdict.is_change()).collect();
    let size = |case: &CaseEffect| case.ratio.map_or(0.0, |ratio| ratio.estimate.ln().abs());
    shown.sort_by(|a, b| size(b).total_cmp(&size(a)));
    shown.truncate(ROWS);
    let left = column.cases.len() - shown.len();
    (shown, left)
}

/// The table of a kernel. A wide layout also has the spread between machines and the verdicts of single machines.
fn case_table(shown: &[&CaseEffect], layout: Layout) -> String {
    const WIDE: usize = 100;
    if table_width(layout) < WIDE {
        let rows: Vec<_> =
            shown.iter().map(|case| (Tone::from_verdict(case.verdict), case_row(case))).collect();
        return render_table(["case", "mean", "95 % interval", "verdict"], &rows, layout);
    }
    let rows: Vec<_> =
        shown.iter().map(|case| (Tone::from_verdict(case.verdict), wide_case_row(case))).collect();
    let head = ["case", "mean", "95 % interval", "verdict", "spread", "alone*"];
    let note = "* machines that are slower/faster/the same/undecided by themselves\n";
    render_table(head, &rows, layout) + if rows.is_empty() { "" } else { note }
}

fn case_row(case: &CaseEffect) -> [String; 4] {
    [
        case.id.clone(),
        case.ratio.map_or("–".into(), |ratio| format_change(ratio.estimate)),
        case.ratio.map_or("–".into(), |ratio| interval_text(&ratio)),
        case.verdict.to_string(),
    ]
}

fn wide_case_row(case: &CaseEffect) -> [String; 6] {
    let Alone { slower, faster, same, undecided } = case.alone;
    let [id, mean, interval, verdict] = case_row(case);
    let spread = case.between.map_or("–".into(), |between| format!("{:.1}%", 100.0 * between));
    [id, mean, interval, verdict, spread, format!("{slower}/{faster}/{same}/{undecided}")]
}

/// A line for each machine that stands out: the number of cases, and the case with the largest change.
fn standing_out_lines(answer: &FleetAnswer, column: &Column, layout: Layout) -> String {
    let mut found: BTreeMap<usize, Vec<(&str, f64)>> = BTreeMap::new();
    for case in &column.cases {
        for effect in &case.standing_out {
            found.entry(effect.machine).or_default().push((&case.id, effect.ratio));
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, cases)| std::cmp::Reverse(cases.len()));
    let of_machine = |(machine, cases): &(usize, Vec<(&str, f64)>)| {
        let largest = cases.iter().max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()));
        let largest =
            largest.map_or_else(String::new, |(id, ratio)| format!("{id} {}", format_change(*ratio)));
        let count = count_with_noun(cases.len(), "case", "cases");
        let said = format!("{} in {count}, such as {largest}", answer.machines[*machine].name);
        paint(Tone::Yellow, &wrap("stands out: ", &said, prose_width(layout)), layout) + "\n"
    };
    let more = found.len().checked_sub(NAMED).filter(|more| *more > 0);
    let more = more.map(|more| {
        format!("and {} more that stand out: --json\n", count_with_noun(more, "machine", "machines"))
    });
    found.iter().take(NAMED).map(of_machine).chain(more).collect()
}

fn interval_text(ratio: &Interval) -> String {
    format!("[{}, {}]", format_change(ratio.low), format_change(ratio.high))
}

/// A table for the terminal; empty without rows.
fn render_table<const N: usize>(head: [&str; N], rows: &[(Tone, [String; N])], layout: Layout) -> String {
    match rows {
        [] => String::new(),
        rows => table(head, rows.iter().cloned(), table_width(layout), layout),
    }
}

/// The mean of each machine class, for cases in which the intervals of two classes do not overlap.
fn class_lines(answer: &FleetAnswer, shown: &[&CaseEffect], layout: Layout) -> String {
    let mut text = String::new();
    for case in shown {
        let apart = |(_, a): &(usize, Interval), (_, b): &(usize, Interval)| a.low > b.high || b.low > a.high;
        if !case.by_class.iter().any(|a| case.by_class.iter().any(|b| apart(a, b))) {
            continue;
        }
        let said = case.by_class.iter().map(|(class, ratio)| {
            format!(
                "{} {} on {}",
                format_change(ratio.estimate),
                interval_text(ratio),
                answer.classes[*class].what
            )
        });
        let said =
            wrap("", &format!("{}: {}", case.id, said.collect::<Vec<_>>().join("; ")), prose_width(layout));
        text += &(said + "\n");
    }
    text
}

/// The jobs that began, as OpenMetrics: a gauge for each job, whose value is the time of its beginning, Unix seconds. Charts of a
/// host can show these times as annotations. A job is given by its host, kernel, repeat and progress.
pub fn job_start_metrics(experiment: &str, jobs: impl IntoIterator<Item = ([String; 4], u64)>) -> String {
    const BEGIN: MetricFamily<'_> = MetricFamily {
        name: "syscost_job_begin_timestamp_seconds",
        kind: MetricKind::Gauge,
        help: "When a job of an experiment on many machines began.",
    };
    let sample = |(job, at): ([String; 4], u64)| {
        let labels = ["host", "kernel", "repeat", "state"].into_iter().zip(job);
        Sample::new(std::iter::once(("experiment", experiment.to_owned())).chain(labels).collect(), at)
    };
    let mut page = MetricPage::new(MetricFormat::OpenMetrics);
    page.add_family(&BEGIN, jobs.into_iter().map(sample));
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gauge_of_a_job_is_its_start_and_labels_are_escaped() {
        let job = ["a\"b", "6.12@pti=on", "2", "running"].map(str::to_owned);
        let text = job_start_metrics("fork", [(job, 1_800_000_000)]);
        let line = text.lines().nth(3).unwrap();
        let labels = r#"{experiment="fork",host="a\"b",kernel="6.12@pti=on",repeat="2",state="running"}"#;
        assert_eq!(line, format!("syscost_job_begin_timestamp_seconds{labels} 1800000000"));
        assert!(text.ends_with("# EOF\n"));
    }
}
