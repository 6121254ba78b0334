//! The hit rate of the last-level cache, from the processor's counters of all CPUs.

use syscost_platform::error::Error;
use syscost_platform::perf_event::{Counter, Event};

/// Counters of each CPU: references to the last level, and misses there.
pub struct CacheHits {
    counters: Vec<[Counter; 2]>,
    before: [u64; 2],
}

impl CacheHits {
    /// Opens the counters of these CPUs.
    ///
    /// # Errors
    /// A sentence why the processor or the kernel gives none.
    pub fn open(cpus: impl Iterator<Item = usize>) -> Result<Self, String> {
        let events = [Event::from_name("cache-references")?, Event::from_name("cache-misses")?];
        let open = |cpu| {
            let [references, misses] = events
                .map(|event| Counter::open_on_cpu(event, cpu).map_err(|error| event.refusal_message(&error)));
            Ok([references?, misses?])
        };
        let counters = cpus.map(open).collect::<Result<_, String>>()?;
        let mut hits = Self { counters, before: [0; 2] };
        hits.hit_percent()?;
        Ok(hits)
    }

    /// Hits since the last call, percent of all references; `None` if there was no reference.
    ///
    /// # Errors
    /// A sentence why the counters say nothing.
    pub fn hit_percent(&mut self) -> Result<Option<f64>, String> {
        let mut now = [0; 2];
        for counters in &self.counters {
            for (sum, counter) in now.iter_mut().zip(counters) {
                *sum += counter.read().map_err(|error: Error| error.to_string())?;
            }
        }
        let before = std::mem::replace(&mut self.before, now);
        let [references, misses] = [0, 1].map(|at: usize| now[at].saturating_sub(before[at]));
        Ok(percent_of_hits(references, misses))
    }
}

/// Prefetches can miss without a reference, so that misses may exceed references.
fn percent_of_hits(references: u64, misses: u64) -> Option<f64> {
    (references > 0).then(|| 100.0 * references.saturating_sub(misses) as f64 / references as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_platform::testing::print_skipped;

    #[test]
    fn hits_are_the_references_without_the_misses() {
        assert_eq!(percent_of_hits(200, 50), Some(75.0));
        assert_eq!(percent_of_hits(200, 0), Some(100.0));
        assert_eq!(percent_of_hits(200, 300), Some(0.0));
        assert_eq!(percent_of_hits(0, 0), None);
    }

    /// Reading memory of which each line is far from the last, and one word again and again.
    #[test]
    fn a_walk_over_much_memory_misses_more_than_one_word() {
        let mut hits = match CacheHits::open(syscost_platform::cpu::allowed_cpus().into_iter()) {
            Ok(hits) => hits,
            Err(why) => return print_skipped(&why),
        };
        let memory = vec![1u8; 256 << 20];
        let mut percent = |stride: usize| {
            let sum: u64 = (0..1 << 22)
                .map(|n: usize| u64::from(std::hint::black_box(&memory)[n * stride % memory.len()]))
                .sum();
            assert_eq!(sum, 1 << 22);
            hits.hit_percent().expect("they count")
        };
        let (near, far) = (percent(0), percent(8 * 4096 + 64));
        assert!(near.is_none_or(|near| far.expect("it referred") < near), "{near:?} {far:?}");
    }
}
