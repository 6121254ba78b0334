//! OpenMetrics of a fleet's jobs: when each began and how far it is, for annotations beside what its host did meanwhile.

use crate::record::fleet_record::Job;
use syscost_engine::render::metric_page::{MetricFamily, MetricFormat, MetricKind, MetricPage, Sample};

/// A job that began.
#[derive(Clone, Copy, Debug)]
pub struct Begun<'a> {
    /// The job.
    pub job: Job<'a>,
    /// How far it is: done, running, failed, lost, damaged.
    pub state: &'a str,
    /// When it began, Unix seconds.
    pub at: u64,
}

/// A gauge for each job that began, whose value is that moment.
pub fn job_start_metrics(experiment: &str, jobs: &[Begun<'_>]) -> String {
    const BEGIN: MetricFamily<'_> = MetricFamily {
        name: "syscost_job_begin_timestamp_seconds",
        kind: MetricKind::Gauge,
        help: "When a job of an experiment on many machines began.",
    };
    let sample = |Begun { job, state, at }: &Begun<'_>| {
        let labels = [
            ("experiment", experiment.to_owned()),
            ("host", job.host.to_owned()),
            ("kernel", job.kernel.to_owned()),
            ("repeat", job.repeat.to_string()),
            ("state", (*state).to_owned()),
        ];
        Sample::new(labels.to_vec(), at)
    };
    let mut page = MetricPage::new(MetricFormat::OpenMetrics);
    page.add_family(&BEGIN, jobs.iter().map(sample));
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_a_gauge_of_its_beginning_and_names_are_escaped() {
        let job = Job { host: "a\"b", kernel: "6.12@pti=on", repeat: 2 };
        let text = job_start_metrics("fork", &[Begun { job, state: "running", at: 1_800_000_000 }]);
        let line = text.lines().nth(3).unwrap();
        let labels = r#"{experiment="fork",host="a\"b",kernel="6.12@pti=on",repeat="2",state="running"}"#;
        assert_eq!(line, format!("syscost_job_begin_timestamp_seconds{labels} 1800000000"));
        assert!(text.ends_with("# EOF\n"));
    }
}
