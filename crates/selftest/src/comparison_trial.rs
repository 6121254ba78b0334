//! Error rates of the comparison of records. The same sessions are divided between two sides in many ways. They are also
//! compared with sessions that were slowed by a known amount.

use crate::statistic::student::mean_interval;
use crate::statistic::{Interval, Random, median, proportion_interval};
use serde::Serialize;
use syscost_analysis::record::bundle::{Head, Run, Value};
use syscost_analysis::study::comparison::{Change, Options, compare};
use syscost_engine::record::Verdict;

/// The number of sessions per side.
pub const SESSIONS: usize = 5;
/// The number of comparisons of slowed with plain sessions: as many as there are ways to split ten sessions into halves.
const DRAWN: usize = 126;

/// The comparisons of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The id of the case.
    pub id: String,
    /// The injected change of all sessions, as a share; `None` without an injection.
    pub injected: Option<f64>,
    /// The number of comparisons with a verdict.
    pub comparisons: usize,
    /// The number of comparisons with the verdict slower. Without an injected slowdown, those with the verdict faster count
    /// too.
    pub found: usize,
    /// The median over all comparisons of the smallest change that would be found 80 times in 100, percent.
    pub detectable_percent: f64,
}

/// The largest accepted share of false alarms.
const ALARMS: f64 = 0.01;
/// The smallest accepted share of found slowdowns.
const FOUND: f64 = 0.8;

/// Comparisons that should find no change, and comparisons that should find the slowdown.
#[derive(Debug, Serialize)]
pub struct Trial {
    /// Plain sessions against plain ones, and slowed ones against slowed ones.
    pub unchanged: Vec<Judged>,
    /// Plain sessions against slowed ones.
    pub slowed: Vec<Judged>,
}

impl Trial {
    /// Judges the plain and the slowed sessions. The seed draws the sessions for the slowed comparisons.
    pub fn from_heads([plain, slowed]: &[Head; 2], seed: u64) -> Self {
        let mut unchanged = judge_against_itself(plain);
        let as_slow = |judged: Judged| Judged { id: format!("{}, both slowed", judged.id), ..judged };
        unchanged.extend(judge_against_itself(slowed).into_iter().map(as_slow));
        Self { unchanged, slowed: judge_against_slowed(plain, slowed, seed) }
    }

    /// Whether the intervals show too many false alarms or too many missed slowdowns, or no comparison was made.
    pub fn has_failed(&self) -> bool {
        let nothing = self.unchanged.is_empty() || self.slowed.is_empty();
        let alarms = found_share(&self.unchanged).low > ALARMS;
        let overlooked = found_share(&self.slowed).high < FOUND;
        nothing || alarms || overlooked
    }

    /// The smallest slowdowns that comparisons of unchanged cases would find four times in five, percent: the median case,
    /// the best and the worst.
    pub fn detectable_percents(&self) -> Interval {
        let seen: Vec<f64> = self.unchanged.iter().map(|judged| judged.detectable_percent).collect();
        let end = |pick: fn(f64, f64) -> f64| seen.iter().copied().reduce(pick).unwrap_or_default();
        Interval { estimate: median(&seen), low: end(f64::min), high: end(f64::max) }
    }
}

/// Divides the sessions of a head between two sides of five in every way, and judges each case.
pub fn judge_against_itself(head: &Head) -> Vec<Judged> {
    let sessions = session_names(head);
    let deals: Vec<_> = half_masks(sessions.len()).map(|half| split_sessions(&sessions, half)).collect();
    judge_deals(head, head, &deals, Verdict::is_change)
}

/// Judges five of the plain sessions against five of the slowed ones, which this seed draws.
pub fn judge_against_slowed(plain: &Head, slowed: &Head, seed: u64) -> Vec<Judged> {
    let (of_plain, of_slowed) = (session_names(plain), session_names(slowed));
    let mut random = Random::new(seed);
    let deals: Vec<_> = (0..DRAWN)
        .map(|_| [draw_sessions(&of_plain, &mut random), draw_sessions(&of_slowed, &mut random)])
        .collect();
    let mut all = judge_deals(plain, slowed, &deals, |verdict| verdict == Verdict::Slower);
    let whole = compare(&[plain.clone(), slowed.clone()], &[], Options::default());
    for judged in &mut all {
        let row = whole.rows.iter().find(|row| row.id == judged.id);
        judged.injected = row.and_then(|row| Some(row.changes().next()?.ratio? - 1.0));
    }
    all
}

/// The share of comparisons that found a change, over all cases. The comparisons of a case share its sessions, so the
/// interval is at least as wide as that of the mean over cases.
pub fn found_share(all: &[Judged]) -> Interval {
    let sum = |field: fn(&Judged) -> usize| all.iter().map(field).sum::<usize>() as u64;
    let alone = proportion_interval(sum(|judged| judged.found), sum(|judged| judged.comparisons));
    let shares: Vec<f64> =
        all.iter().map(|judged| judged.found as f64 / judged.comparisons.max(1) as f64).collect();
    let Some(over_cases) = mean_interval(&shares) else { return alone };
    Interval {
        estimate: alone.estimate,
        low: alone.low.min(over_cases.low).max(0.0),
        high: alone.high.max(over_cases.high).min(1.0),
    }
}

/// The names of the sessions, in the order in which they ran.
fn session_names(head: &Head) -> Vec<String> {
    let mut names: Vec<String> = head.runs.iter().map(|run| run.session.clone()).collect();
    names.dedup();
    names
}

/// The names of the sessions of each side.
type Deal = [Vec<String>; 2];

/// Every way to split the first ten sessions into halves, as a bit mask of the half with the first session. Mirrored splits
/// are left out.
fn half_masks(count: usize) -> impl Iterator<Item = u32> {
    let enough = count >= 2 * SESSIONS;
    (0..1_u32 << (2 * SESSIONS))
        .filter(move |half| enough && half & 1 == 1 && half.count_ones() == SESSIONS as u32)
}

fn split_sessions(sessions: &[String], half: u32) -> Deal {
    let (a, b) = (0..2 * SESSIONS).partition::<Vec<_>, _>(|at| half >> at & 1 == 1);
    [a, b].map(|side| side.into_iter().map(|at| sessions[at].clone()).collect())
}

fn draw_sessions(sessions: &[String], random: &mut Random) -> Vec<String> {
    let mut sessions = sessions.to_vec();
    random.shuffle(&mut sessions);
    sessions.truncate(SESSIONS);
    sessions
}

fn judge_deals(a: &Head, b: &Head, deals: &[Deal], is_found: fn(Verdict) -> bool) -> Vec<Judged> {
    let ids: Vec<String> = a.series.iter().map(|series| series.id.clone()).collect();
    let mut changes: Vec<Vec<Change>> = vec![Vec::new(); ids.len()];
    for [of_a, of_b] in deals {
        let comparison =
            compare(&[select_sessions(a, "A", of_a), select_sessions(b, "B", of_b)], &[], Options::default());
        for row in &comparison.rows {
            if let Some(at) = ids.iter().position(|id| *id == row.id) {
                changes[at].extend(row.changes().cloned());
            }
        }
    }
    ids.into_iter()
        .zip(changes)
        .filter_map(|(id, changes)| summarize_changes(id, &changes, is_found))
        .collect()
}

/// The summary of the changes of one case; `None` if no comparison had a verdict.
fn summarize_changes(id: String, changes: &[Change], is_found: fn(Verdict) -> bool) -> Option<Judged> {
    let detectable: Vec<f64> = changes.iter().filter_map(|change| change.detectable_percent).collect();
    (!detectable.is_empty()).then(|| Judged {
        id,
        injected: None,
        comparisons: detectable.len(),
        found: changes.iter().filter(|change| is_found(change.verdict)).count(),
        detectable_percent: median(&detectable),
    })
}

/// The part of a head that these sessions measured, under another name.
fn select_sessions(head: &Head, name: &str, sessions: &[String]) -> Head {
    let mut part = Head { name: name.into(), runs: Vec::new(), ..head.clone() };
    let mut keep = |run: &Run| {
        sessions.contains(&run.session).then(|| {
            part.runs.push(run.clone());
            part.runs.len() - 1
        })
    };
    let places: Vec<Option<usize>> = head.runs.iter().map(&mut keep).collect();
    for series in &mut part.series {
        let kept = |value: &Value| Some(Value { run: (*places.get(value.run)?)?, ..*value });
        series.values = series.values.iter().filter_map(kept).collect();
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_head::{CASES, add_noise, head, join_into_one_boot, scale_cases};

    fn recorded(name: &str, sessions: usize, seed: u64) -> Head {
        let mut head = head(name, sessions, 3);
        add_noise(&mut head, 0.002, 0.003, seed);
        join_into_one_boot(&mut head);
        head
    }

    #[test]
    fn ten_sessions_are_split_in_every_way_once() {
        assert_eq!(half_masks(10).count(), DRAWN);
        assert_eq!(half_masks(9).count(), 0);
        let all = judge_against_itself(&recorded("plain", 10, 1));
        assert_eq!(all.len(), CASES.len());
        assert!(all.iter().all(|judged| (judged.comparisons, judged.found) == (DRAWN, 0)), "{all:?}");
    }

    #[test]
    fn a_selection_has_only_the_values_of_its_sessions() {
        let whole = recorded("plain", 3, 1);
        let part = select_sessions(&whole, "A", &session_names(&whole)[1..2]);
        assert_eq!((part.runs.len(), part.runs[0].name.as_str()), (3, "plain-3"));
        let estimates =
            |head: &Head| head.series[2].values.iter().map(|v| v.median.estimate).collect::<Vec<_>>();
        assert_eq!(estimates(&part), estimates(&whole)[3..6]);
        assert_eq!(part.series[2].values[2].run, 2);
    }

    #[test]
    fn a_slowdown_is_found_with_its_size() {
        let (plain, mut slowed) = (recorded("plain", 10, 1), recorded("slowed", 10, 2));
        scale_cases(&mut slowed, "syscall/getpid", 1.05);
        let all = judge_against_slowed(&plain, &slowed, 1);
        let getpid = all.iter().find(|judged| judged.id == "syscall/getpid").expect("the case");
        assert_eq!(getpid.found, DRAWN);
        assert!((getpid.injected.expect("all sessions") - 0.05).abs() < 0.01, "{getpid:?}");
        assert!(all.iter().all(|judged| judged.id == getpid.id || judged.found == 0), "{all:?}");
    }

    #[test]
    fn a_trial_fails_without_comparisons_and_if_it_misses_the_slowdown() {
        let (plain, mut slowed) = (recorded("plain", 10, 1), recorded("slowed", 10, 2));
        let unslowed = Trial::from_heads(&[plain.clone(), slowed.clone()], 1);
        assert!(unslowed.has_failed(), "no case is slowed, so none is found");
        CASES.iter().for_each(|id| scale_cases(&mut slowed, id, 1.05));
        let trial = Trial::from_heads(&[plain.clone(), slowed], 1);
        assert!(!trial.has_failed(), "{trial:?}");
        assert_eq!(trial.unchanged.len(), 2 * CASES.len());
        let seen = trial.detectable_percents();
        assert!(0.0 < seen.low && seen.low <= seen.estimate && seen.estimate <= seen.high, "{seen:?}");
        assert!(Trial::from_heads(&[recorded("few", 9, 1), plain], 1).has_failed(), "nine sessions");
    }

    #[test]
    fn an_interval_is_as_wide_as_the_spread_of_the_cases() {
        let case = |found| Judged {
            id: String::new(),
            injected: None,
            comparisons: 100,
            found,
            detectable_percent: 1.0,
        };
        let (even, uneven) = (found_share(&[5, 5, 5, 5].map(case)), found_share(&[0, 20, 0, 0].map(case)));
        assert_eq!((even.estimate, uneven.estimate), (0.05, 0.05));
        assert!(even.low > 0.02 && uneven.low == 0.0 && uneven.high > even.high, "{even:?} {uneven:?}");
    }
}
