//! A bench of a library whose operation two environment variables make slower, so that `syscost ab --why` has something to find:
//! `EXTRA_CALLS=64` has each query read the time 64 times more, and `COLD=1` gives each query a table that has left the caches.

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
/// Tables that have their turns: 32 MiB, more than the caches of one core hold.
const COLD_TABLES: u64 = 512;

fn cases() -> Vec<Case> {
    let setting = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    vec![Case::prepared("query", "a query of 1024 lines", move |_| {
        let (extra_calls, is_cold) = (setting("EXTRA_CALLS"), setting("COLD") > 0);
        let count = if is_cold { COLD_TABLES } else { 1 };
        let tables: Vec<_> = (0..count).map(|_| library::Table::new(LINES)).collect();
        let mut turn = 0;
        move || {
            turn = (turn + 1) % tables.len();
            library::answer(&tables[turn], 20_261_127, extra_calls)
        }
    })]
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("bench_why", include_str!("bench_why.rs"), cases)])
}
