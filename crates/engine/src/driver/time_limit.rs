//! When a run began, and the limit after which none of its cases begins (`--time`, `SYSCOST_TIME`).

use std::time::{Duration, Instant};

/// The beginning and the limit of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    pub(super) began: Instant,
    /// Time after which no case begins.
    pub(super) limit: Option<Duration>,
}

impl TimeLimit {
    /// Of a run that begins now.
    pub(super) fn starting_now(limit: Option<Duration>) -> Self {
        Self { began: Instant::now(), limit }
    }

    /// Whether no case may begin any more.
    pub(super) fn is_over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// Time until then.
    pub(super) fn left(&self) -> Option<Duration> {
        self.limit.map(|limit| limit.saturating_sub(self.began.elapsed()))
    }

    /// How many of the planned cases had no time.
    pub(super) fn not_begun_sentence(&self, planned: usize, begun: usize) -> Option<String> {
        let limit = self.limit.filter(|_| self.is_over() && begun < planned)?.as_secs_f64();
        let left = planned - begun;
        Some(format!(
            "the limit of {limit} s was over before {left} of {planned} cases had begun: a larger --time or SYSCOST_TIME measures them"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_case_begins_after_the_limit_and_what_had_no_time_is_counted() {
        let limits = [None, Some(Duration::MAX), Some(Duration::ZERO)];
        let [none, far, over] = limits.map(TimeLimit::starting_now);
        assert_eq!([none, far, over].map(|limit| limit.is_over()), [false, false, true]);
        assert_eq!(
            [none, far, over].map(|limit| limit.not_begun_sentence(5, 3).is_some()),
            [false, false, true]
        );
        assert!(
            over.not_begun_sentence(5, 3).is_some_and(|said| said.contains("of 0 s was over before 2 of 5"))
        );
        assert_eq!(over.not_begun_sentence(5, 5), None);
    }
}
