//! The figures of one job: the floor of each case over the job's processes.

use crate::record::fleet_record::{Figure, Job, JobRecord, LAYOUT, inert_line};
use std::collections::BTreeSet;
use syscost_analysis::record::bundle::{Head, Series, Value};
use syscost_engine::record::quantity::NANOSECONDS;
use syscost_platform::error::{Error, Result};
use syscost_statistic::{Floor, median};

/// The record of this job, from the head of the record of its processes.
///
/// # Errors
/// The processes ran in several boots, on a machine that changed meanwhile, or measured something other than time.
pub fn record_of_job(job: Job<'_>, experiment: &str, head: &Head) -> Result<JobRecord> {
    let boots: BTreeSet<_> = head.runs.iter().map(|run| run.boot.as_str()).collect();
    let [fingerprint] = &head.fingerprints[..] else {
        return Err(Error::Disturbed("the machine changed between the processes of this job".into()));
    };
    if boots.len() > 1 || head.unit != NANOSECONDS {
        return Err(Error::Usage("the processes of a job measure time, under one boot".into()));
    }
    // Left out are percentiles, whose ids contain a space, and series with a peer, which depend on two machines.
    let whole = || head.series.iter().filter(|series| !series.id.contains(' ') && series.peer.is_none());
    let why = |series: &Series| series.without.first().map(|text| inert_line(text));
    let lacking = whole().filter(|series| floor_figure(series).is_none());
    Ok(JobRecord {
        fleet_job: LAYOUT,
        tool: head.tool.clone(),
        experiment: experiment.into(),
        host: job.host.into(),
        kernel: job.kernel.into(),
        repeat: job.repeat,
        boot: boots.first().copied().unwrap_or_default().into(),
        started: head.runs.iter().map(|run| run.started).min().unwrap_or(head.created),
        scale: head.scale.clone(),
        fingerprint: fingerprint.clone(),
        cases: whole().filter_map(floor_figure).collect(),
        without: lacking.filter_map(|series| Some((series.id.clone(), why(series)?))).collect(),
    })
}

/// The floor of a series, at the median frequency of the core if each value has its frequency; `None` if it is no positive number.
fn floor_figure(series: &Series) -> Option<Figure> {
    let hz: Option<Vec<f64>> = series.values.iter().map(|value| value.core_hz).collect();
    let core_hz = hz.as_deref().filter(|hz| !hz.is_empty()).map(median);
    let at = |(place, value): (usize, &Value)| {
        let by = core_hz.zip(value.core_hz).map_or(1.0, |(wanted, own)| own / wanted);
        (place, value.median.estimate * by)
    };
    let values: Vec<_> = series.values.iter().enumerate().map(at).collect();
    let ns = Floor::from_values(&values, values.len())?.estimate;
    let (id, version, clock) = (series.id.clone(), series.version.clone(), series.clock.clone());
    (ns > 0.0 && ns.is_finite()).then_some(Figure { id, version, clock, ns, core_hz })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_head::head;

    #[test]
    fn a_job_has_one_boot_and_the_floor_of_its_processes() {
        let job = Job { host: "n1", kernel: "6.1", repeat: 1 };
        let mut head = head("job", 1, 3);
        for (value, ns) in head.series[0].values.iter_mut().zip([120.0, 100.0, 102.0]) {
            value.median.estimate = ns;
            value.core_hz = None;
        }
        let record = record_of_job(job, "fork", &head).unwrap();
        assert_eq!((record.cases[0].ns, &record.cases[0].id), (101.0, &head.series[0].id));
        for (value, hz) in head.series[0].values.iter_mut().zip([2e9, 1e9, 1e9]) {
            value.core_hz = Some(hz);
        }
        let record = record_of_job(job, "fork", &head).unwrap();
        assert_eq!(
            (record.cases[0].ns, record.cases[0].core_hz),
            (101.0, Some(1e9)),
            "240 cycles are not the lowest"
        );
        head.runs[0].boot = "another".into();
        assert!(record_of_job(job, "fork", &head).unwrap_err().to_string().contains("one boot"));
    }

    #[test]
    fn a_case_without_a_number_has_its_reason() {
        let job = Job { host: "n1", kernel: "6.1", repeat: 1 };
        let mut head = head("job", 1, 2);
        head.series[0].values.clear();
        head.series[0].without.push("no io_uring here".into());
        let record = record_of_job(job, "fork", &head).unwrap();
        assert_eq!(record.without[&head.series[0].id], "no io_uring here");
        assert!(record.cases.iter().all(|figure| figure.id != head.series[0].id));
    }
}
