//! OpenMetrics, which Prometheus and its relatives take: the figures of the record and the numbers of its cases.

use syscost_engine::record::quantity::{DISPLACED, NANOSECONDS};
use syscost_engine::record::{Interval, Record};
use syscost_engine::render::metric_page::{MetricFamily, MetricFormat, MetricKind, MetricPage, Sample};

/// Nanoseconds of a second, which is the unit that these tools want.
const SECOND: f64 = 1e9;

/// Name, help, and what of an interval it is.
type Gauge = (&'static str, &'static str, fn(Interval) -> f64);

/// Gauges: the run and its machine, the figure and its ends by case, and the number of cases by outcome. A record does not
/// name its `host`, which is left out where it is unknown.
pub fn open_metrics_text(record: &Record, host: Option<&str>) -> String {
    let is_time = [NANOSECONDS, DISPLACED].contains(&&*record.unit);
    let (unit, scale) = if is_time { ("seconds", SECOND) } else { ("events", 1.0) };
    let figures: [Gauge; 3] = [
        ("operation", "What one operation costs.", |figure| figure.estimate),
        ("operation_low", "Lower end of where the next run's figure lies.", |figure| figure.low),
        ("operation_high", "Upper end of where the next run's figure lies.", |figure| figure.high),
    ];
    let mut page = MetricPage::new(MetricFormat::OpenMetrics);
    let run = MetricFamily {
        name: "syscost_run_info",
        kind: MetricKind::Gauge,
        help: "The run of all figures on this page.",
    };
    page.add_family(&run, [Sample::new(run_labels(record, host), 1)]);
    for (name, help, end) in figures {
        let name = format!("syscost_{name}_{unit}");
        let samples = record.cases().filter_map(|(group, case)| {
            let mut labels = vec![("group", group.name.clone()), ("id", case.id.clone())];
            labels.extend((!is_time).then(|| ("event", record.unit.clone())));
            Some(Sample::new(labels, end(case.measured()?.figure()) / scale))
        });
        page.add_family(&MetricFamily { name: &name, kind: MetricKind::Gauge, help }, samples);
    }
    let tally = record.tally();
    let outcomes = [
        ("measured", tally.measured),
        ("skipped", tally.skipped),
        ("disturbed", tally.disturbed),
        ("failed", tally.failed),
    ];
    let cases = MetricFamily {
        name: "syscost_cases",
        kind: MetricKind::Gauge,
        help: "Cases of the run by how they ended.",
    };
    let samples = outcomes.map(|(outcome, count)| Sample::new(vec![("outcome", outcome.into())], count));
    page.add_family(&cases, samples);
    page.finish()
}

/// What tells this run from others: join them to the figures, or look them up by a figure that moved.
fn run_labels(record: &Record, host: Option<&str>) -> Vec<(&'static str, String)> {
    let version = record.tool.trim_start_matches("syscost ");
    let kernel = record.fingerprint.kernel_release.as_deref();
    let labels =
        [("host", host), ("kernel", kernel), ("run", Some(&*record.run)), ("version", Some(version))];
    labels.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))).collect()
}
