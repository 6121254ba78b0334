//! What a guest is asked: cases, each with a fixed number of iterations, since the size of a batch enters its figure.

use serde::{Deserialize, Serialize};

/// The version of questions and answers. A program of another version refuses them.
pub const VERSION: u32 = 2;

/// A case to be counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// `group/variant/parameter`.
    pub id: String,
    /// Iterations of the smaller batch; the larger one has twice as many.
    pub iterations: u64,
}

/// All questions to one boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions {
    /// [`VERSION`].
    pub version: u32,
    /// The cases, in the order in which they are counted.
    pub cases: Vec<Question>,
    /// Whether the guest says the addresses of its kernel's functions.
    #[serde(default)]
    pub wants_symbols: bool,
}

/// Iterations of a case that the table below does not name.
const USUAL: u64 = 8;

/// Prefixes and suffixes of ids whose cost is the kernel's path, and iterations that make a batch some hundred thousand
/// instructions: shorter than the 4 ms between two timer interrupts, and long beside the reading of the clock.
const TABLE: &[(&str, &str, u64)] = &[
    ("call/u64/3", "", 1000),
    ("syscall/", "/cold", 0),
    ("syscall/stat", "", 100),
    ("syscall/open-close", "", 50),
    ("syscall/pipe", "", 100),
    ("syscall/sched-yield", "", 200),
    ("syscall/", "", 500),
    ("signal/timer", "", 0),
    ("signal/", "", 100),
    ("page_fault/major", "", 0),
    ("page_fault/cached", "", 0),
    ("page_fault/", "/2MiB", 2),
    ("page_fault/", "", 32),
    ("mapping/", "/64MiB", 0),
    ("mapping/", "/16MiB", 0),
    ("mapping/", "/1MiB", 2),
    ("mapping/", "", 32),
    ("ping_pong/", "/same-cpu", 64),
    ("context_switch/processes-2/", "/0KiB", 64),
    ("context_switch/processes-8/", "/0KiB", 32),
    ("context_switch/threads-2/", "/0KiB", 64),
    ("context_switch/threads-8/", "/0KiB", 32),
    ("lock/futex-mutex/free", "", 1000),
    ("lock/pthread-mutex/free", "", 1000),
    ("lock/sysv-semaphore/free", "", 200),
    ("fork/touched-mib/0", "", 4),
    ("fork/touched-mib/16", "", 2),
    ("fork/returns-mib/0", "", 4),
    ("fork/mappings/1", "", 4),
    ("fork/mappings/100", "", 4),
    ("fork/", "/tiny", 2),
    ("fork/", "/true", 0),
    ("fork/vfork", "", 8),
    ("fork/clone-vm", "", 8),
    ("thread/same-cpu/", "", 8),
    ("wait/", "/500", 0),
    ("wait/", "/100", 0),
    ("wait/", "", 32),
    ("socket_round_trip/", "-same-cpu/1B", 32),
    ("socket_round_trip/", "-same-cpu/56B", 32),
    ("socket_connect/", "-peer", 0),
    ("socket_connect/", "-peer-one-end", 0),
    ("socket_connect/", "/tcp", 16),
    ("socket_connect/", "/unix-stream", 16),
    ("cached_read/", "/4KiB", 64),
    ("cached_read/pread-by-file", "", 0),
    ("cached_read/file-cache", "", 0),
    ("file_ops/", "/1", 16),
    ("getdents/list/10", "", 16),
];

/// The iterations of this case: `None` if it is not in the default set.
fn default_iterations(id: &str) -> Option<u64> {
    let fits = |(prefix, suffix, _): &&(&str, &str, u64)| {
        let whole =
            suffix.is_empty() && !prefix.ends_with('/') && !prefix.ends_with(|c: char| c.is_ascii_digit());
        let begins = if whole {
            id.starts_with(prefix)
        } else {
            id == *prefix || (prefix.ends_with('/') && id.starts_with(prefix))
        };
        begins && id.ends_with(suffix)
    };
    TABLE.iter().find(fits).map(|row| row.2).filter(|iterations| *iterations > 0)
}

/// Whether no kernel can change this case's cost: if its count moves, the program has changed, not the kernel.
pub fn is_canary(id: &str) -> bool {
    id.starts_with("call/")
}

/// The questions about these cases: those of the default set, or with `all` every one.
pub fn select_questions(ids: impl Iterator<Item = String>, all: bool) -> Questions {
    let ask = |id: String| {
        let iterations = default_iterations(&id).or_else(|| all.then_some(USUAL))?;
        Some(Question { id, iterations })
    };
    Questions { version: VERSION, cases: ids.filter_map(ask).collect(), wants_symbols: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost::suite::GROUPS;

    fn ids() -> impl Iterator<Item = String> {
        GROUPS.iter().flat_map(|group| (group.cases)().iter().map(|case| group.id(case)).collect::<Vec<_>>())
    }

    #[test]
    fn the_default_set_has_sixty_cases_and_a_canary() {
        let asked = select_questions(ids(), false).cases;
        assert!(asked.len() >= 60, "{}", asked.len());
        assert_eq!(asked.iter().filter(|question| is_canary(&question.id)).count(), 1);
        assert!(asked.iter().all(|question| !question.id.contains("cross-cpu")));
    }

    #[test]
    fn every_row_of_the_table_is_of_a_case() {
        for (prefix, suffix, _) in TABLE {
            assert!(ids().any(|id| id.starts_with(prefix) && id.ends_with(suffix)), "{prefix}…{suffix}");
        }
    }

    #[test]
    fn a_number_at_the_end_of_a_row_is_the_whole_number() {
        assert_eq!(default_iterations("fork/touched-mib/1024"), None);
        assert_eq!(default_iterations("fork/mappings/1000"), None);
        assert_eq!(default_iterations("fork/mappings/100"), Some(4));
        assert_eq!(default_iterations("syscall/getpid/cold"), None);
        assert_eq!(default_iterations("syscall/getpid"), Some(500));
    }

    #[test]
    fn all_cases_are_asked_on_demand() {
        assert_eq!(select_questions(ids(), true).cases.len(), ids().count());
    }
}
