//! Checks a counter against work with a known count. A hypervisor may accept an event and always answer 0, and a
//! preloaded library may imitate the kernel; their counts must not be believed.

use super::{Counter, EVENTS, Event};
use crate::error::{Error, Result};
use crate::region::Region;
use crate::resident::Pages;
use crate::{arch, cpu, process};
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Duration;

/// How often the work is done. An interrupt raises one count, never all, and lowers none.
const TRIES: usize = 3;
/// Instructions of a loop of half as many turns.
const INSTRUCTIONS: u64 = 200_000;
/// Additions, each of which waits for the one before: a core cycle each.
const CYCLES: u64 = 100_000;
/// Turns of a loop that takes 0.3 ms or more on any processor.
const BUSY_TURNS: u64 = 3_000_000;
/// Number of branches, of which half are taken, in an order that no predictor can learn.
const BRANCHES: u64 = 20_000;
/// Cache lines that are evicted and read again.
const LINES: usize = 4_096;
/// Bytes from one of them to the next: two lines, so that the neighbour is not fetched with it.
const LINE_STRIDE: usize = 128;
/// Pages that are touched for the first time.
const FRESH_PAGES: u64 = 16;
/// Pages of a walk: more than any translation buffer has entries.
const WALKED_PAGES: usize = 4_096;
/// Naps, in each of which the thread gives up its CPU.
const NAPS: u64 = 3;
/// The length of a nap.
const NAP: Duration = Duration::from_micros(50);

/// Work that causes a known number of events.
struct Work {
    /// The work in words.
    what: &'static str,
    /// Every count must reach this number.
    least: u64,
    /// The lowest count must not exceed this number: at least ten times the due one, for interrupts and odd processors.
    most: u64,
    perform: fn() -> Result<()>,
}

const fn new_work(what: &'static str, least: u64, most: u64, perform: fn() -> Result<()>) -> Work {
    Work { what, least, most, perform }
}

/// The known work for this event; `None` if there is none for it.
fn work_for_event(event: &Event) -> Option<Work> {
    Some(match event.name {
        "instructions" => {
            new_work("a loop of 200000 instructions", 190_000, 10 * INSTRUCTIONS, run_instructions)
        }
        "cpu-cycles" => new_work(
            "100000 additions of which each waits for the one before",
            90_000,
            10 * CYCLES,
            run_add_chain,
        ),
        "branch-misses" => {
            new_work("20000 branches drawn by chance", BRANCHES / 10, 10 * BRANCHES, run_random_branches)
        }
        "cache-references" | "cache-misses" => {
            new_work("4096 reads of evicted cache lines", LINES as u64 / 16, u64::MAX, miss_cache)
        }
        "dTLB-load-misses" => {
            let walk = || touch_pages(WALKED_PAGES);
            new_work("a walk over 4096 pages", WALKED_PAGES as u64 / 16, u64::MAX, walk)
        }
        "task-clock" => new_work("a loop of 0.3 ms or more", 100_000, 1_000_000_000, run_busy_loop),
        "page-faults" | "minor-faults" => {
            let touch = || touch_pages(FRESH_PAGES as usize);
            new_work("the first touch of 16 pages", FRESH_PAGES, 100 * FRESH_PAGES, touch)
        }
        "context-switches" => new_work("3 naps", NAPS, 1_000 * NAPS, take_naps),
        // Without a second CPU there is no migration, and 0 is the right count.
        "cpu-migrations" if cpu::allowed_cpus().len() > 1 => {
            new_work("a move to another CPU", 1, 1_000, migrate_thread)
        }
        _ => return None,
    })
}

/// Checks, once per event in a process, that a counter of this event counts known work.
///
/// # Errors
/// [`Error::Missing`] with the count, if it does not; any other error where the counter cannot be opened or read.
pub(super) fn prove_event(event: Event) -> Result<()> {
    static JUDGED: [OnceLock<Option<String>>; EVENTS.len()] = [const { OnceLock::new() }; EVENTS.len()];
    // A major fault needs a device. The kernel counts it in the same place as a minor one.
    let event = if event.name == "major-faults" { Event::from_name("minor-faults") } else { Ok(event) };
    let event = event.map_err(Error::Usage)?;
    let Some(judged) = EVENTS.iter().position(|other| *other == event).and_then(|at| JUDGED.get(at)) else {
        return Ok(());
    };
    if judged.get().is_none() {
        let verdict = judge_event(&event)?;
        let _ = judged.set(verdict);
    }
    judged.get().cloned().flatten().map_or(Ok(()), |sentence| Err(Error::Missing(sentence)))
}

/// A sentence on what is wrong with the counter of this event; `None` if it counts.
fn judge_event(event: &Event) -> Result<Option<String>> {
    let Some(work) = work_for_event(event) else { return Ok(None) };
    let counter = Counter::open_with_fallback(*event, 0, 0)?;
    let mut counts = [0; TRIES];
    for count in &mut counts {
        let before = counter.read()?;
        (work.perform)()?;
        *count = counter.count_since(before)?;
    }
    Ok(miscount_message(event.name, &work, &counts))
}

fn miscount_message(name: &str, work: &Work, counts: &[u64]) -> Option<String> {
    let lowest = counts.iter().copied().min()?;
    let due = match () {
        () if lowest < work.least => format!("at least {} were due", work.least),
        () if lowest > work.most => format!("at most {} were due", work.most),
        () => return None,
    };
    Some(format!(
        "{name} cannot be counted here: the counter opens, and does not count: for {} it said {lowest}, and {due}; a hypervisor \
         or a preloaded library stands in for it: measure time, or try `perf stat -e {name} true` outside of it",
        work.what
    ))
}

fn run_instructions() -> Result<()> {
    arch::register_loop(INSTRUCTIONS / 2);
    Ok(())
}

fn run_add_chain() -> Result<()> {
    _ = black_box(arch::add_chain(CYCLES));
    Ok(())
}

fn run_busy_loop() -> Result<()> {
    arch::register_loop(BUSY_TURNS);
    Ok(())
}

fn run_random_branches() -> Result<()> {
    let mut random = 0x9e37_79b9_7f4a_7c15 ^ arch::read() | 1;
    for _ in 0..BRANCHES {
        random = next_random(random);
        // `black_box` in the arm keeps the compiler from making a conditional move of it.
        if random >> 40 & 1 == 1 {
            _ = black_box(random);
        }
    }
    Ok(())
}

/// Marsaglia's xorshift.
fn next_random(mut random: u64) -> u64 {
    random ^= random << 13;
    random ^= random >> 7;
    random ^ random << 17
}

fn miss_cache() -> Result<()> {
    let mut memory = vec![1u8; LINES * LINE_STRIDE];
    _ = black_box(memory.as_mut_ptr());
    let lines = memory.chunks_exact(LINE_STRIDE);
    lines.for_each(arch::evict);
    let mut random = 1;
    for _ in 0..LINES {
        random = next_random(random);
        _ = black_box(memory[(random >> 20) as usize % LINES * LINE_STRIDE]);
    }
    Ok(())
}

/// Touches pages of new memory for the first time.
fn touch_pages(count: usize) -> Result<()> {
    let region = Region::map_anonymous(count * process::page_size() as usize, Pages::Base)?;
    _ = black_box(region.read(0..region.page_count(), 1));
    Ok(())
}

fn take_naps() -> Result<()> {
    (0..NAPS).for_each(|_| std::thread::sleep(NAP));
    Ok(())
}

fn migrate_thread() -> Result<()> {
    let here = cpu::current_cpu();
    match cpu::allowed_cpus().into_iter().find(|cpu| *cpu != here) {
        Some(other) => cpu::run_on_cpu(other, || ()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::print_skipped;

    #[test]
    fn a_counter_with_zero_too_low_or_too_high_counts_is_refused() {
        let work = new_work("a loop", 190, 2_000, || Ok(()));
        for counts in [[0, 0, 0], [200, 150, 200], [9_000, 9_000, 9_001]] {
            let sentence = miscount_message("instructions", &work, &counts).expect("refused");
            assert!(sentence.starts_with("instructions cannot be counted here"), "{sentence}");
        }
        assert_eq!(
            miscount_message("instructions", &work, &[200, 9_000, 201]),
            None,
            "an interrupt adds to one"
        );
    }

    #[test]
    fn every_event_that_this_machine_counts_counts_known_work() {
        for event in EVENTS {
            match prove_event(*event) {
                Ok(()) => {}
                Err(Error::Missing(sentence)) => panic!("{sentence}"),
                Err(error) => print_skipped(&format!("{}: {error}", event.name)),
            }
        }
    }
}
