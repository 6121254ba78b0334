//! OpenMetrics of a fleet's jobs: when each began and how far it is, for annotations beside what its host did meanwhile.

use crate::record::fleet_record::Job;
use std::fmt::Write;
use syscost::render::foreign::open_metrics::escape_label;

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
    const NAME: &str = "syscost_job_begin_timestamp_seconds";
    let mut text = format!(
        "# TYPE {NAME} gauge\n# UNIT {NAME} seconds\n# HELP {NAME} When a job of an experiment on many machines began.\n"
    );
    for Begun { job, state, at } in jobs {
        let [experiment, host, kernel] = [experiment, job.host, job.kernel].map(escape_label);
        let repeat = job.repeat;
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "{NAME}{{experiment=\"{experiment}\",host=\"{host}\",kernel=\"{kernel}\",repeat=\"{repeat}\",state=\"{state}\"}} {at}"
        );
    }
    text + "# EOF\n"
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
