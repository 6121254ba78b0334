//! Names of runs, records and comparisons. A name begins with its moment, so that sorting names sorts by time, and ends in
//! random characters: containers that share a directory have equal process ids, and start in one second.

use super::quantity::format_utc;
use crate::platform::plain_file::random_word;
use std::time::{SystemTime, UNIX_EPOCH};

/// Random characters of a name, of 5 bits each: of two runs that begin in one millisecond, one pair in 33 million agrees.
const RANDOM: u32 = 5;

/// This moment in Unix seconds, and a fresh name for what begins at it: `20261120T134405-217k3x9q`. Behind the dash stand the
/// milliseconds.
pub fn fresh_run_name() -> (u64, String) {
    // A clock before 1970 only spoils the name.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, milliseconds) = (now.as_secs(), now.subsec_millis());
    (seconds, format!("{}-{milliseconds:03}{}", format_utc(seconds), random_word(RANDOM)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_moment_differ_and_sort_by_time() {
        let names: Vec<_> = (0..100).map(|_| fresh_run_name()).collect();
        let distinct: std::collections::HashSet<_> = names.iter().map(|(_, name)| name).collect();
        assert_eq!(distinct.len(), 100);
        for (seconds, name) in &names {
            let length = "20261120T134405-217k3x9q".len();
            assert!(name.starts_with(&format_utc(*seconds)) && name.len() == length, "{name}");
        }
        let moments: Vec<_> = names.iter().map(|(_, name)| &name[..19]).collect();
        assert!(moments.is_sorted(), "{moments:?}");
    }
}
