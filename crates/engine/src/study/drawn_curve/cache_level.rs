//! Names the levels of a curve: its steps are matched, in order, with the caches that the kernel reports.

use super::{LevelRecord, Point};
use crate::record::quantity::format_size;
use crate::statistic::{Level, step_midpoint};

/// The least factor by which latency rises at the end of a cache. A smaller step has another cause, such as the reach
/// of a TLB.
const LEAST_RATIO: f64 = 1.5;
/// Penalty for each factor of two between a step and the reported size, in the unit of ln(ratio) of the step.
/// It is small, because a guest that gets a tenth of a cache has the step at a tenth of the reported size.
const OCTAVE_PENALTY: f64 = 0.3;

/// Tolerance of comparisons between sizes, because the sizes of a curve are rounded.
const SLACK: f64 = 1.01;

/// The step at the end of a level: the sizes before and after it, bytes.
struct Step {
    held: u64,
    beyond: u64,
    /// Latency of the next level divided by that of this one.
    ratio: f64,
}

/// The levels with their names, and the sizes between which each ends.
pub(super) fn name_levels(levels: &[Level], points: &[Point], caches: &[(u8, u64)]) -> Vec<LevelRecord> {
    let values: Vec<_> = points.iter().map(|point| point.value).collect();
    let step = |pair: &[Level]| {
        let last = step_midpoint(&values, &pair[0], &pair[1]);
        let ratio = pair[1].value.estimate / pair[0].value.estimate;
        Step { held: points[last].at, beyond: points[last + 1].at, ratio }
    };
    let steps: Vec<Step> = levels.windows(2).map(step).collect();
    let matched = match_caches(&steps, caches);
    let record = |(at, level): (usize, &Level)| LevelRecord {
        name: level_name(at, &matched, caches, points[level.first].at, points[level.last].at),
        first: points[level.first].at,
        last: points[level.last].at,
        latency: level.value,
        step: steps.get(at).map(|step| (step.held, step.beyond)),
        reported: matched.get(at).and_then(|cache| Some(caches[(*cache)?].1)),
        ..LevelRecord::default()
    };
    levels.iter().enumerate().map(record).collect()
}

/// For each step the index of the cache that ends there, if one does. Caches stay in order; the total fitness is the highest.
fn match_caches(steps: &[Step], caches: &[(u8, u64)]) -> Vec<Option<usize>> {
    best_match(steps, caches, 0).1
}

/// The highest total fitness for these steps and the caches from index `from` on, and the cache matched with each step.
fn best_match(steps: &[Step], caches: &[(u8, u64)], from: usize) -> (f64, Vec<Option<usize>>) {
    let Some((step, rest)) = steps.split_first() else { return (0.0, Vec::new()) };
    let with = |own: Option<usize>| {
        let (score, mut matched) = best_match(rest, caches, own.map_or(from, |own| own + 1));
        matched.insert(0, own);
        (score + own.map_or(0.0, |own| fitness(step, caches[own].1)), matched)
    };
    let candidates = (from..caches.len()).filter(|&own| fitness(step, caches[own].1) > 0.0);
    let choices = candidates.map(Some).map(with);
    choices.fold(with(None), |best, other| if other.0 > best.0 { other } else { best })
}

/// How well a step fits the end of a cache of this size; 0 if the cache cannot end there.
fn fitness(step: &Step, reported: u64) -> f64 {
    // A cache cannot hold more than its reported size.
    if step.held as f64 > SLACK * reported as f64 * step.beyond as f64 / step.held as f64 {
        return 0.0;
    }
    let octaves = (step.held as f64 / reported as f64).log2().abs();
    if step.ratio < LEAST_RATIO { 0.0 } else { step.ratio.ln() - OCTAVE_PENALTY * octaves }
}

/// Names a level after the cache that ends at the next matched step, at this level or a later one. If smaller caches without a
/// step lie within the level, the name is a range of caches. A level beyond the last cache is memory.
fn level_name(
    at: usize,
    matched: &[Option<usize>],
    caches: &[(u8, u64)],
    first: u64,
    last: u64,
) -> Option<String> {
    let cache = |own: usize| format!("L{}", caches[own].0);
    if let Some(own) = matched.iter().skip(at).find_map(|own| *own) {
        let next = matched[..at].iter().rev().find_map(|own| *own).map_or(0, |own| own + 1);
        let least = (next..own).find(|other| caches[*other].1 >= first);
        return Some(least.map_or(cache(own), |least| format!("{}{TO}{}", cache(least), cache(own))));
    }
    let next = matched.iter().rev().find_map(|own| *own).map_or(0, |own| own + 1);
    match caches.get(next) {
        None => (!caches.is_empty()).then(|| MEMORY.into()),
        Some((_, bytes)) if last <= *bytes => Some(cache(next)),
        // A level that reaches beyond all caches is memory, even if it begins within the last one, whose step is then invisible.
        Some(_) => caches.iter().all(|(_, bytes)| last as f64 > SLACK * *bytes as f64).then(|| MEMORY.into()),
    }
}

const MEMORY: &str = "memory";

/// Why a cache ends at another size than the kernel reports.
const SHARED_BY_GUESTS: &str =
    "the hypervisor shows the host's cache, and this is what the guest gets beside its neighbours";
const SHARED_BY_OTHERS: &str = "others use it, or the order of the pages in it leaves a part unused";

/// Separates the names of the first and the last cache of a level that spans several.
const TO: &str = " to ";

impl LevelRecord {
    /// Whether the measured and the reported end of the cache differ by at most one step of the measured sizes. `None` if
    /// the level has no end or the kernel reports none.
    pub fn agrees_with_kernel(&self) -> Option<bool> {
        let (held, beyond) = self.step?;
        let wide = SLACK * beyond as f64 / held as f64;
        let off = self.reported? as f64 / held as f64;
        Some((1.0 / wide..=wide).contains(&off))
    }
}

/// Remarks on levels that differ from what the kernel reports, and on steps without a cache.
pub(super) fn level_remarks(levels: &[LevelRecord], caches: &[(u8, u64)], is_guest: bool) -> Vec<String> {
    let other = |level: &LevelRecord| match (level.reported, level.step, &level.name) {
        (None, Some((held, beyond)), Some(name)) => {
            Some(format!("between {} and {} ({name})", format_size(held), format_size(beyond)))
        }
        _ => None,
    };
    let others: Vec<String> = levels.iter().filter_map(other).collect();
    let others = (!others.is_empty()).then(|| {
        format!(
            "no cache that the kernel reports makes the steps {}: most likely the reach of a translation cache, or \
             tables of pages that fall out of a cache themselves",
            others.join(", ")
        )
    });
    let several = levels.iter().filter_map(|level| level.name.as_deref().filter(|name| name.contains(TO)));
    let several = several.map(|name| {
        format!("{name} end in one step: the sizes lie too far apart to tell them, or neighbours use the last of them")
    });
    let otherwise = levels.iter().filter_map(|level| mismatch_remark(level, is_guest));
    otherwise.chain(hidden_cache_remark(levels, caches, is_guest)).chain(several).chain(others).collect()
}

/// A remark on the last cache if the curve does not show it: sizes that fit into this cache are as slow as memory.
fn hidden_cache_remark(levels: &[LevelRecord], caches: &[(u8, u64)], is_guest: bool) -> Option<String> {
    let (cache, bytes) = caches.last()?;
    let memory =
        levels.last().filter(|level| level.name.as_deref() == Some(MEMORY) && level.first <= *bytes)?;
    let why = if is_guest { SHARED_BY_GUESTS } else { SHARED_BY_OTHERS };
    let (reported, from) = (format_size(*bytes), format_size(memory.first));
    Some(format!(
        "the kernel reports {reported} of L{cache}, and from {from} on it is as slow as memory: {why}"
    ))
}

fn mismatch_remark(level: &LevelRecord, is_guest: bool) -> Option<String> {
    let ((held, beyond), name) = (level.step?, level.name.as_deref()?);
    let name = name.rsplit(TO).next().unwrap_or(name);
    let why = if is_guest { SHARED_BY_GUESTS } else { SHARED_BY_OTHERS };
    let (found, reported) =
        (format!("{} and {}", format_size(held), format_size(beyond)), format_size(level.reported?));
    (level.agrees_with_kernel() == Some(false))
        .then(|| format!("the kernel reports {reported} of {name}, and it ends between {found}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHES: [(u8, u64); 3] = [(1, 32 << 10), (2, 1 << 20), (3, 32 << 20)];

    fn steps(of: &[(u64, f64)]) -> Vec<Step> {
        of.iter().map(|&(held, ratio)| Step { held, beyond: held * 6 / 5, ratio }).collect()
    }

    #[test]
    fn a_step_at_a_tenth_of_a_reported_size_is_matched_with_that_cache() {
        let found = match_caches(&steps(&[(32 << 10, 3.6), (1 << 20, 3.4), (3 << 20, 10.0)]), &CACHES);
        assert_eq!(found, [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn a_small_step_is_no_cache_even_where_one_is_reported() {
        let steps =
            steps(&[(32 << 10, 3.6), (200 << 10, 1.25), (800 << 10, 2.9), (7 << 20, 10.0), (32 << 20, 1.4)]);
        assert_eq!(match_caches(&steps, &CACHES), [Some(0), None, Some(1), Some(2), None]);
    }

    #[test]
    fn a_level_within_the_next_cache_is_not_named_memory() {
        let found = match_caches(&steps(&[(32 << 10, 3.6)]), &CACHES);
        assert_eq!(level_name(1, &found, &CACHES, 40 << 10, 512 << 10).as_deref(), Some("L2"));
        assert_eq!(level_name(1, &found, &CACHES, 40 << 10, 8 << 20), None);
        assert_eq!(level_name(1, &found, &CACHES, 64 << 20, 128 << 20).as_deref(), Some("memory"));
    }

    #[test]
    fn a_step_beyond_a_cache_is_not_its_end_and_two_caches_may_share_a_step() {
        let found = match_caches(&steps(&[(32 << 10, 3.5), (4 << 20, 41.0)]), &CACHES);
        assert_eq!(found, [Some(0), Some(2)]);
        let level = |at, first, last| level_name(at, &found, &CACHES, first, last);
        assert_eq!(level(0, 4 << 10, 32 << 10).as_deref(), Some("L1"));
        assert_eq!(level(1, 64 << 10, 4 << 20).as_deref(), Some("L2 to L3"));
        assert_eq!(
            level(1, 2 << 20, 4 << 20).as_deref(),
            Some("L3"),
            "a curve that begins beyond the second"
        );
        let levels = [LevelRecord {
            name: level(1, 64 << 10, 4 << 20),
            step: Some((4 << 20, 8 << 20)),
            reported: Some(32 << 20),
            ..LevelRecord::default()
        }];
        let lines = level_remarks(&levels, &CACHES, true);
        assert!(
            lines[0].contains("32 MiB of L3,") && lines[1].contains("L2 to L3 end in one step"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_last_cache_that_is_as_slow_as_memory_is_remarked() {
        let found = match_caches(&steps(&[(32 << 10, 3.5), (2 << 20, 22.0)]), &CACHES[..2]);
        let memory = |caches: &[(u8, u64)]| level_name(2, &found, caches, 4 << 20, 256 << 20);
        assert_eq!(memory(&CACHES).as_deref(), Some("memory"));
        let level = LevelRecord { name: memory(&CACHES), first: 4 << 20, ..LevelRecord::default() };
        let lines = level_remarks(std::slice::from_ref(&level), &CACHES, true);
        assert!(lines[0].contains("32 MiB of L3, and from 4 MiB on it is as slow as memory"), "{lines:?}");
        let beyond = LevelRecord { first: 40 << 20, ..level };
        assert!(level_remarks(&[beyond], &CACHES, true).is_empty());
    }

    #[test]
    fn without_reported_caches_no_level_is_named() {
        let found = match_caches(&steps(&[(32 << 10, 3.6)]), &[]);
        assert_eq!((found.as_slice(), level_name(1, &found, &[], 1, 2)), (&[None][..], None));
    }

    #[test]
    fn agreement_is_within_one_step_of_the_measured_sizes() {
        let level = |held: u64, beyond: u64| LevelRecord {
            name: Some("L2".into()),
            step: Some((held, beyond)),
            reported: Some(1 << 20),
            ..LevelRecord::default()
        };
        for (held, agrees) in
            [(741_440, false), (881_728, true), (1 << 20, true), (1_246_976, true), (2 << 20, false)]
        {
            let level = level(held, held * 119 / 100);
            assert_eq!(level.agrees_with_kernel(), Some(agrees), "{held}");
            assert_eq!(mismatch_remark(&level, true).is_none(), agrees);
        }
        assert!(mismatch_remark(&level(4 << 20, 5 << 20), true).expect("a sentence").contains("hypervisor"));
        assert!(mismatch_remark(&level(4 << 20, 5 << 20), false).expect("a sentence").contains("others"));
        assert_eq!(LevelRecord::default().agrees_with_kernel(), None);
    }
}
