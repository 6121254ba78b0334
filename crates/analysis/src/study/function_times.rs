//! Which functions make up the time of an operation, or the difference of two sides, and which are lost in noise at this number of
//! samples. An observation is a pair of processes, or one process, and never a sample: processes of one binary differ by more than
//! their samples do.

use crate::record::sampled_process::{FunctionTime, ProcessTimes, SampledCase};
use crate::statistic::student::mean_interval;
use crate::statistic::{Interval, adjusted_p_values, mean, student_upper_quantile, student_upper_tail};
use serde::Serialize;
use std::collections::BTreeSet;

/// The share of functions that are significant by chance, among all that are.
const WRONG: f64 = 0.05;

/// A function or a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeRow {
    /// Its name.
    pub name: String,
    /// Its mean time in an operation on each side, ns.
    pub sides_ns: Vec<f64>,
    /// The difference B less A, or the time where there is one side, ns, with its 95 % interval.
    pub figure: Interval,
    /// The same of the function and all that it calls, ns.
    pub with_callees_ns: f64,
    /// Whether it differs from 0 by more than chance, among all functions of the case.
    pub is_significant: bool,
}

/// The functions of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FunctionTimes {
    /// Id of the case.
    pub id: String,
    /// Pairs, or processes.
    pub observations: usize,
    /// Samples of each side.
    pub samples: Vec<u64>,
    /// What was sampled: `cpu-cycles` or `cpu-clock`.
    pub event: String,
    /// The whole operation.
    pub total: TimeRow,
    /// The functions that are significant, the largest first, then the others in the same order.
    pub functions: Vec<TimeRow>,
    /// The classes likewise.
    pub classes: Vec<TimeRow>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Why there is no figure.
    pub failure: Option<String>,
}

/// The functions of a case that was sampled.
pub fn study_functions(case: &SampledCase) -> FunctionTimes {
    let sides = case.observations.first().map_or(0, Vec::len);
    let samples_of = |side: usize| case.observations.iter().map(|processes| processes[side].samples).sum();
    let total = |process: &ProcessTimes| {
        Some(FunctionTime { own_ns: process.operation_ns, with_callees_ns: process.operation_ns })
    };
    let (total, p) = time_row(case, "", total);
    let function_names = names(case, |process| process.functions.keys());
    let functions = function_names
        .iter()
        .map(|name| time_row(case, name, |process| process.functions.get(*name).copied()));
    let class_names = names(case, |process| process.classes.keys());
    let classes = class_names.iter().map(|name| {
        let time = |process: &ProcessTimes| {
            process.classes.get(*name).map(|ns| FunctionTime { own_ns: *ns, with_callees_ns: *ns })
        };
        time_row(case, name, time)
    });
    FunctionTimes {
        id: case.id.clone(),
        observations: case.observations.len(),
        samples: (0..sides).map(samples_of).collect(),
        event: case.event.clone(),
        total: TimeRow { is_significant: p <= WRONG, ..total },
        functions: rows_in_order(functions.collect()),
        classes: rows_in_order(classes.collect()),
        notes: case.notes.clone(),
        failure: case.failure.clone(),
    }
}

impl FunctionTimes {
    /// The functions that are significant.
    pub fn significant(&self) -> &[TimeRow] {
        let significant = self.functions.iter().take_while(|row| row.is_significant).count();
        &self.functions[..significant]
    }

    /// The functions that chance can explain.
    pub fn unresolved(&self) -> &[TimeRow] {
        &self.functions[self.significant().len()..]
    }

    /// How many times as many samples would make this function significant if its figure is what it seems; `None` where it has none.
    pub fn times_as_many(&self, row: &TimeRow) -> Option<f64> {
        let half = row.figure.high - row.figure.estimate;
        let degrees = self.observations.saturating_sub(1);
        let error = half / student_upper_quantile(0.025, degrees);
        // The level of one among this number of functions.
        let level = WRONG / (2 * self.functions.len().max(1)) as f64;
        let needed = student_upper_quantile(level, degrees) * error / row.figure.estimate.abs();
        (row.figure.estimate != 0.0 && needed.is_finite()).then(|| (needed * needed).max(1.0))
    }
}

fn names<'a, K: Iterator<Item = &'a String>>(
    case: &'a SampledCase,
    keys: impl Fn(&'a ProcessTimes) -> K,
) -> BTreeSet<&'a String> {
    case.observations.iter().flatten().flat_map(keys).collect()
}

/// The row of a function, and the two-sided p-value of "it is 0" (Student).
fn time_row(
    case: &SampledCase,
    name: &str,
    time: impl Fn(&ProcessTimes) -> Option<FunctionTime>,
) -> (TimeRow, f64) {
    let time = |process: &ProcessTimes| time(process).unwrap_or_default();
    let figures = |ns: fn(FunctionTime) -> f64| -> Vec<f64> {
        let one = |processes: &Vec<ProcessTimes>| match &processes[..] {
            [a, b] => ns(time(b)) - ns(time(a)),
            one => one.iter().map(|process| ns(time(process))).sum(),
        };
        case.observations.iter().map(one).collect()
    };
    let own = figures(|time| time.own_ns);
    let sides = case.observations.first().map_or(0, Vec::len);
    let side = |side: usize| {
        let processes = case.observations.iter().map(|processes| time(&processes[side]).own_ns);
        mean(&processes.collect::<Vec<_>>())
    };
    let unknown = Interval { estimate: mean(&own), low: f64::NEG_INFINITY, high: f64::INFINITY };
    let figure = mean_interval(&own).unwrap_or(unknown);
    let degrees = own.len().saturating_sub(1);
    let error = (figure.high - figure.estimate) / student_upper_quantile(0.025, degrees);
    let p = 2.0 * student_upper_tail(figure.estimate.abs() / error, degrees);
    let row = TimeRow {
        name: name.to_owned(),
        sides_ns: (0..sides).map(side).collect(),
        figure,
        with_callees_ns: mean(&figures(|time| time.with_callees_ns)),
        is_significant: false,
    };
    (row, p)
}

/// Decides which differ from 0, at a false discovery rate of [`WRONG`].
fn rows_in_order(rows: Vec<(TimeRow, f64)>) -> Vec<TimeRow> {
    let (mut rows, p): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    for (row, adjusted) in rows.iter_mut().zip(adjusted_p_values(&p)) {
        row.is_significant = adjusted <= WRONG;
    }
    rows.sort_by(|a, b| {
        b.is_significant
            .cmp(&a.is_significant)
            .then(b.figure.estimate.abs().total_cmp(&a.figure.estimate.abs()))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistic::Random;

    /// Pairs whose sides sample 300 times: `f` takes a tenth of A, and on B this much more; 30 others differ by chance.
    fn sampled(pairs: usize, more_ns: f64, random: &mut Random) -> SampledCase {
        let mut process = |more_ns: f64| {
            let operation_ns = 1_000.0 + more_ns;
            let mut functions = std::collections::BTreeMap::<String, FunctionTime>::new();
            for _ in 0..300 {
                let at = random.number_below(1 << 20) as f64 / f64::from(1 << 20) * operation_ns;
                let name = if at < 100.0 + more_ns { "f".into() } else { format!("g{}", (at as u64) % 30) };
                let time = functions.entry(name).or_default();
                time.own_ns += operation_ns / 300.0;
                time.with_callees_ns += operation_ns / 300.0;
            }
            ProcessTimes { operation_ns, samples: 300, functions, ..ProcessTimes::default() }
        };
        let observations = (0..pairs).map(|_| vec![process(0.0), process(more_ns)]).collect();
        SampledCase { id: "a/b".into(), observations, ..SampledCase::default() }
    }

    #[test]
    fn a_function_that_grew_is_significant_first_with_what_it_grew_by() {
        let study = study_functions(&sampled(16, 50.0, &mut Random::new(3)));
        let [first, ..] = study.significant() else { panic!("{study:?}") };
        assert_eq!((first.name.as_str(), study.samples.clone()), ("f", vec![4_800; 2]));
        assert!(first.figure.low < 50.0 && 50.0 < first.figure.high, "{first:?}");
        assert!((study.total.figure.estimate - 50.0).abs() < 1e-9);
        let sum: f64 = study.functions.iter().map(|row| row.figure.estimate).sum();
        assert!((sum - 50.0).abs() < 1e-6, "the functions sum up to the whole: {sum}");
    }

    #[test]
    fn of_two_equal_sides_hardly_a_function_is_significant() {
        let mut random = Random::new(4);
        let significant = (0..100)
            .filter(|_| !study_functions(&sampled(16, 0.0, &mut random)).significant().is_empty())
            .count();
        assert!(significant <= 10, "{significant} of 100 comparisons of equal sides find a function");
    }

    #[test]
    fn what_is_not_significant_says_how_many_samples_it_needs() {
        let mut random = Random::new(5);
        let study = study_functions(&sampled(8, 4.0, &mut random));
        let row = study.unresolved().iter().find(|row| row.name == "f").expect("too small");
        // Of its true size.
        let row = TimeRow {
            figure: Interval { estimate: 4.0, ..row.figure.map(|x| x - row.figure.estimate + 4.0) },
            ..row.clone()
        };
        let times = study.times_as_many(&row).expect("a number");
        let pairs = (8.0 * times).ceil() as usize;
        assert!((16..4_000).contains(&pairs), "{pairs}");
        let more = study_functions(&sampled(pairs, 4.0, &mut random));
        assert!(more.significant().iter().any(|row| row.name == "f"), "not by {pairs} pairs");
    }

    #[test]
    fn one_process_tells_nothing() {
        let study = study_functions(&sampled(1, 50.0, &mut Random::new(6)));
        assert!(study.significant().is_empty() && study.times_as_many(&study.functions[0]).is_none());
        assert_eq!(study_functions(&SampledCase::default()).functions, []);
    }
}
