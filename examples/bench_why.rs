//! A bench of a library whose operation two environment variables make slower, so that `syscost ab --why` has something to find:
//! `EXTRA_CALLS=64` has each query read the time 64 times more, and `COLD=1` begins each query with cold caches.

use syscost::case::set_up;
use syscost::clock::{Clock, Counts};
use syscost::{Case, Group};

/// What would be a crate of its own. Its functions are not inlined, as those of another crate seldom are, and their loops call no
/// others in builds without optimization.
mod library {
    /// A table of indices, a cache line each, in which every line names the next one.
    pub struct Table(Vec<[u64; 8]>);

    impl Table {
        /// One cycle through all lines, whose number is a power of two.
        pub fn new(lines: u64) -> Self {
            // A linear congruential generator modulo a power of two has the full period (Hull and Dobell 1962).
            Self((0..lines).map(|line| [(line * 1_597 + 51_749) % lines; 8]).collect())
        }
    }

    /// The next tick as a file system stores a time.
    #[inline(never)]
    pub fn current_time(earlier: u64, granularity_ns: u64) -> u64 {
        let now = earlier + 3 * granularity_ns / 2;
        now - now % granularity_ns
    }

    #[inline(never)]
    fn look_up(lines: &[[u64; 8]], key: u64) -> u64 {
        let (mut line, mut left) = (key % lines.len() as u64, lines.len());
        while left > 0 {
            line = lines[line as usize][0];
            left -= 1;
        }
        line
    }

    /// Answers a query.
    #[inline(never)]
    pub fn answer(table: &Table, key: u64, extra_calls: u64) -> u64 {
        let (mut time, mut left) = (current_time(key, 1_000), extra_calls);
        while left > 0 {
            time = current_time(time, 1_000);
            left -= 1;
        }
        look_up(&table.0, key) ^ time
    }
}

/// Lines of the table: 64 KiB, which the second cache of a core holds.
const LINES: u64 = 1_024;
/// Bytes that are walked to make the caches cold: more than those of one core hold.
const COLD_BYTES: usize = 2 << 20;

fn cases() -> Vec<Case> {
    let setting = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let make = move |_: &_| {
        let (extra_calls, is_cold) = (setting("EXTRA_CALLS"), setting("COLD") > 0);
        let table = library::Table::new(LINES);
        let mut walked = vec![0_u8; if is_cold { COLD_BYTES } else { 0 }];
        Ok(move |iterations: u64, clock: &Clock| {
            let prepare = |walked: &mut Vec<u8>| {
                walked.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
                Ok(())
            };
            let answer = |_: &mut Vec<u8>| library::answer(&table, 20_261_127, extra_calls);
            clock.time_each(iterations, &mut walked, prepare, answer, |_, _| Ok(Counts::Yes))
        })
    };
    // Where the caches are made cold, that takes most of the time.
    vec![Case::new("query", "a query of 1024 lines", set_up(make)).timed_share(0.05)]
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("bench_why", include_str!("bench_why.rs"), cases)])
}
