//! The answer of an experiment as tables.

use crate::command::page::{self, Tone};
use crate::record::quantity::change;
use crate::record::{Interval, Verdict};
use crate::render::table::Layout;
use crate::study::fleet_effect::{CaseEffect, Column, FleetAnswer, MachineEffect};

/// Machines that are named in a row.
const NAMED: usize = 3;
/// Rows of a kernel without `--all`.
const ROWS: usize = 30;

/// The answer: who was measured, one table a kernel, and one sentence each.
pub(super) fn of_fleet(answer: &FleetAnswer, all: bool, layout: Layout) -> String {
    let mut text = head(answer, layout);
    for column in &answer.columns {
        text += &format!("\n{}\n", page::heading(&title(answer, column), page::width(layout), layout));
        text += &page::wrap("", &sentence(column), page::prose(layout));
        text += "\n\n";
        let (shown, left) = chosen(column, all);
        let rows: Vec<[String; 6]> = shown.iter().map(|case| row(answer, case)).collect();
        text += &table(
            ["case", "mean change", "95 % interval", "machines ±", "alone", "stand out"],
            &rows,
            &shown,
            layout,
        );
        if left > 0 {
            text += &format!("and {left} more cases: --all\n");
        }
        text += &by_class(answer, &shown, layout);
    }
    text
}

/// One host by itself.
pub(super) fn of_host(answer: &FleetAnswer, host: &str, all: bool, layout: Layout) -> String {
    let mut text = head(answer, layout);
    for column in &answer.columns {
        text += &format!(
            "\n{}\n",
            page::heading(&format!("{host}: {}", title(answer, column)), page::width(layout), layout)
        );
        let mut cases: Vec<_> =
            column.cases.iter().flat_map(|case| case.effects.iter().map(move |e| (case, e))).collect();
        cases.retain(|(_, effect)| all || effect.verdict() != Verdict::Same);
        cases.sort_by(|a, b| b.1.ratio.ln().abs().total_cmp(&a.1.ratio.ln().abs()));
        let rows: Vec<[String; 6]> =
            cases.iter().map(|(case, effect)| host_row(answer, case, effect)).collect();
        let shown: Vec<_> = cases.iter().map(|(case, _)| *case).collect();
        text += &table(
            ["case", "change", "95 % interval", "verdict", "machine", "all machines"],
            &rows,
            &shown,
            layout,
        );
    }
    text
}

fn host_row(answer: &FleetAnswer, case: &CaseEffect, effect: &MachineEffect) -> [String; 6] {
    let own = effect.interval.map(|[low, high]| Interval { estimate: effect.ratio, low, high });
    [
        case.id.clone(),
        change(effect.ratio),
        own.map_or("–".into(), |own| ends(&own)),
        effect.verdict().to_string(),
        answer.machines[effect.machine].name.clone(),
        case.ratio.map_or("–".into(), |ratio| change(ratio.estimate)),
    ]
}

/// The same for a program.
pub(super) fn host_lines(answer: &FleetAnswer) -> String {
    let of_column = |column: &Column| {
        let cases =
            column.cases.iter().flat_map(|case| case.effects.iter().map(move |effect| (case, effect)));
        let line = |(case, effect): (&CaseEffect, &MachineEffect)| {
            let ends = effect.interval.map_or([f64::NAN; 2], |ends| ends);
            let numbers = [effect.ratio, ends[0], ends[1]].map(number);
            let names =
                [answer.machines[effect.machine].name.clone(), column.kernel.clone(), case.id.clone()];
            page::tabbed(&[[&names[..], &[effect.verdict().to_string()], &numbers[..]].concat()])
        };
        cases.map(line).collect::<String>()
    };
    answer.columns.iter().map(of_column).collect()
}

/// The whole answer for a program.
pub(super) fn lines(answer: &FleetAnswer) -> String {
    let line = |column: &Column, case: &CaseEffect| {
        let ratio = case.ratio.map_or([f64::NAN; 3], |r| [r.estimate, r.low, r.high]);
        let out: Vec<_> =
            case.standing_out.iter().map(|e| answer.machines[e.machine].name.as_str()).collect();
        let numbers = [ratio[0], ratio[1], ratio[2], case.between.unwrap_or(f64::NAN)].map(number);
        let names = [column.kernel.clone(), case.id.clone(), case.verdict.to_string()];
        page::tabbed(&[[&names[..], &numbers[..], &[case.machines.to_string(), out.join(",")]].concat()])
    };
    answer.columns.iter().flat_map(|column| column.cases.iter().map(move |case| line(column, case))).collect()
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.5}") } else { "-".into() }
}

/// The machines, and what must be known about the whole.
fn head(answer: &FleetAnswer, layout: Layout) -> String {
    let width = page::prose(layout);
    let mut text = format!(
        "{}: {}, {}\n",
        answer.experiment,
        page::counted(answer.machines.len(), "machine", "machines"),
        answer.kernels.join(" → ")
    );
    for class in &answer.classes {
        text += &page::wrap("  ", &format!("{} × {}", class.machines, class.what), width);
        text.push('\n');
    }
    for warning in &answer.warnings {
        text += &page::paint(Tone::Yellow, &page::wrap("! ", warning, width), layout);
        text.push('\n');
    }
    text
}

fn title(answer: &FleetAnswer, column: &Column) -> String {
    format!("{} over {}", column.kernel, answer.kernels[0])
}

/// What a person would say.
fn sentence(column: &Column) -> String {
    let count = |verdict| column.cases.iter().filter(|case| case.verdict == verdict).count();
    let largest = |verdict, pick: fn(f64, f64) -> f64| {
        let of = column.cases.iter().filter(|case| case.verdict == verdict);
        let ratios = of.filter_map(|case| Some(case.ratio?.estimate));
        ratios.reduce(pick).map(|ratio| format!(", the most {}", change(ratio))).unwrap_or_default()
    };
    let out = column.cases.iter().filter(|case| !case.standing_out.is_empty()).count();
    let tail = match out {
        0 => "no machine stands out".to_owned(),
        _ => format!("machines stand out in {}", page::counted(out, "case", "cases")),
    };
    format!(
        "Of {}, {} slower{}; {} faster{}; {} the same; {} undecided; {tail}.",
        page::counted(column.cases.len(), "case", "cases"),
        count(Verdict::Slower),
        largest(Verdict::Slower, f64::max),
        count(Verdict::Faster),
        largest(Verdict::Faster, f64::min),
        count(Verdict::Same),
        count(Verdict::Inconclusive),
    )
}

/// The rows that matter, the largest change first, and how many there are besides.
fn chosen(column: &Column, all: bool) -> (Vec<&CaseEffect>, usize) {
    if all {
        return (column.cases.iter().collect(), 0);
    }
    let mut shown: Vec<_> = column
        .cases
        .iter()
        .filter(|case| case.verdict.is_change() || !case.standing_out.is_empty())
        .collect();
    let size = |case: &CaseEffect| case.ratio.map_or(0.0, |ratio| ratio.estimate.ln().abs());
    shown.sort_by(|a, b| size(b).total_cmp(&size(a)));
    shown.truncate(ROWS);
    let left = column.cases.len() - shown.len();
    (shown, left)
}

fn row(answer: &FleetAnswer, case: &CaseEffect) -> [String; 6] {
    let alone = [
        (case.alone.slower, "slower"),
        (case.alone.faster, "faster"),
        (case.alone.same, "same"),
        (case.alone.undecided, "open"),
    ];
    let alone = alone.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    [
        case.id.clone(),
        case.ratio.map_or("–".into(), |ratio| format!("{} {}", change(ratio.estimate), case.verdict)),
        case.ratio.map_or("–".into(), |ratio| ends(&ratio)),
        case.between.map_or("–".into(), |between| format!("{:.1}%", 100.0 * between)),
        alone.collect::<Vec<_>>().join(", "),
        standing_out(answer, &case.standing_out),
    ]
}

fn standing_out(answer: &FleetAnswer, machines: &[MachineEffect]) -> String {
    let name =
        |effect: &MachineEffect| format!("{} {}", answer.machines[effect.machine].name, change(effect.ratio));
    let named = machines.iter().take(NAMED).map(name);
    let more = machines.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("{more} more"));
    named.chain(more).collect::<Vec<_>>().join(", ")
}

fn ends(ratio: &Interval) -> String {
    format!("[{}, {}]", change(ratio.low), change(ratio.high))
}

fn table(head: [&str; 6], rows: &[[String; 6]], shown: &[&CaseEffect], layout: Layout) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(rows.iter().cloned()).collect();
    let lines = page::aligned(&rows, page::width(layout)).into_iter().enumerate();
    let painted = lines.map(|(at, line)| match at.checked_sub(1).map(|at| shown[at].verdict) {
        None | Some(Verdict::Faster) => page::paint(Tone::Bold, &line, layout),
        Some(Verdict::Slower) => page::paint(Tone::Red, &line, layout),
        Some(Verdict::Inconclusive | Verdict::Incomparable) => page::paint(Tone::Yellow, &line, layout),
        Some(Verdict::Same) => line,
    });
    painted.map(|line| line + "\n").collect()
}

/// The mean of each class, of the rows in which classes differ by more than both their intervals.
fn by_class(answer: &FleetAnswer, shown: &[&CaseEffect], layout: Layout) -> String {
    let mut text = String::new();
    for case in shown {
        let apart = |(_, a): &(usize, Interval), (_, b): &(usize, Interval)| a.low > b.high || b.low > a.high;
        if !case.by_class.iter().any(|a| case.by_class.iter().any(|b| apart(a, b))) {
            continue;
        }
        let said = case.by_class.iter().map(|(class, ratio)| {
            format!("{} {} on {}", change(ratio.estimate), ends(ratio), answer.classes[*class].what)
        });
        let said = page::wrap(
            "",
            &format!("{}: {}", case.id, said.collect::<Vec<_>>().join("; ")),
            page::prose(layout),
        );
        text += &(said + "\n");
    }
    text
}
