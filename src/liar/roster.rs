//! The liars: which real case each pretends to be, what it does instead, and the claim that must catch it.

use super::Liar;
use super::stranger;
use super::twisted::{Twist, left_to_a_thread, twisted};
use crate::case::{Case, SetUp};
use crate::suite;

/// What a liar does instead of its operation.
#[derive(Clone, Copy)]
pub(super) enum Lie {
    /// The operation, twisted.
    Twisted(Twist),
    /// Its thread does the work.
    LeftToThread,
    /// Another operation.
    Instead(fn() -> SetUp),
}

use Lie::{Instead, LeftToThread, Twisted};
use Twist::{
    BestForAll, BestInAll, Capped, Constant, CountsBeyond, CountsLater, Half, HalfBeyond, HalfLater,
    HalfTimed, Hundredfold, MadeUp, NineTenths, OneTimed, Outside, Remembered, SinglesLeftOut, Tenth,
};

/// A liar: the id of the real case, the lie in words, the claim that must catch it, and the lie.
type Row = (&'static str, &'static str, &'static str, Lie);

const TENTH: &str = "does nine tenths of the iterations";
const HALF: &str = "does half of the iterations";
const KEPT: &str = "works once and answers that time again";
const MADE: &str = "makes up a time for each iteration";
const FLAT: &str = "makes up a time for each batch";
const LEFT: &str = "leaves the work to another thread";
const BEYOND: &str = "does half of what is beyond the witness's batch";
const COUNTS: &str = "counts in place of what is beyond the witness's batch";
const LATER: &str = "does half, after a few true batches";
const IDLE: &str = "counts, after a few true batches";
const SIXTEEN: &str = "does 16 iterations at most";
const HUNDRED: &str = "says that it took a hundred times as long";
const LESS: &str = "says that it took a tenth of the time";
const TIMES_HALF: &str = "times half of the batch";
const TIMES_ONE: &str = "times one iteration";
const BESIDE: &str = "works beside the bracket, and counts inside";
const LEFT_OUT: &str = "keeps nine tenths of the single times";
const BEST: &str = "keeps the best single time for each";
const BEST_SUM: &str = "keeps the best single time for each, and answers their sum";

#[rustfmt::skip]
pub(super) const LIARS: &[Row] = &[
    ("known_work/multiply", TENTH, "Executes", Twisted(NineTenths)),
    ("known_work/multiply", HALF, "Executes", Twisted(Half)),
    ("known_work/multiply", KEPT, "time that passed", Twisted(Remembered)),
    ("known_work/multiply", MADE, "Executes", Twisted(MadeUp)),
    ("known_work/multiply", FLAT, "Executes", Twisted(Constant)),
    ("known_work/multiply", LEFT, "CPU time of threads", LeftToThread),
    ("empty_loop/register", "was optimised away", "Executes", Instead(stranger::nothing)),
    ("known_work/multiply", "works more with each iteration", "Linear", Instead(stranger::square)),
    ("call/u64/3", TENTH, "Calls", Twisted(NineTenths)),
    ("call/u64/3", "was inlined", "Calls", Instead(stranger::inlined)),
    ("syscall/getppid", TENTH, "Enters", Twisted(NineTenths)),
    ("syscall/getppid", HALF, "Enters", Twisted(Half)),
    ("syscall/getppid", "answers from memory", "Enters", Instead(stranger::constant)),
    ("syscall/getppid", "makes another call as often", "Enters", Instead(stranger::another_call)),
    ("syscall/read-zero", "reads from no descriptor", "Enters", Instead(stranger::refused_read)),
    ("syscall/read-zero", "reads no byte", "Answers", Instead(stranger::empty_read)),
    ("syscall/clock-gettime-vdso", TENTH, "Calls", Twisted(NineTenths)),
    ("syscall/clock-gettime-vdso", "enters the kernel", "NeverEnters", Instead(stranger::entering_for_vdso)),
    ("signal/caught", TENTH, "Enters", Twisted(NineTenths)),
    ("wait/poll-pipe/10", TENTH, "Enters", Twisted(NineTenths)),
    ("getdents/list/10", TENTH, "Enters", Twisted(NineTenths)),
    ("cached_read/pread/4KiB", TENTH, "Enters", Twisted(NineTenths)),
    ("mapping/first-touch/1MiB", TENTH, "Enters", Twisted(NineTenths)),
    ("mapping/first-touch/1MiB", "touches every other page", "Counted faults", Instead(stranger::half_touched)),
    ("page_fault/anonymous/4KiB", "touched the pages before", "Checked faults", Instead(stranger::touched_before)),
    ("page_fault/anonymous/4KiB", TENTH, "Counted faults", Twisted(NineTenths)),
    ("page_fault/anonymous/4KiB", KEPT, "Counted faults", Twisted(Remembered)),
    ("chase/random/16KiB", "walks half of the ring", "Checked ring", Instead(stranger::half_a_ring)),
    ("fork/touched-mib/0", TENTH, "Counted tasks", Twisted(NineTenths)),
    ("fork/touched-mib/0", "shares the memory instead of copying it", "Counted faults", Instead(stranger::shared_for_copied)),
    ("thread/same-cpu/join-64KiB", TENTH, "Counted tasks", Twisted(NineTenths)),
    ("context_switch/processes-2/0KiB", TENTH, "Counted switches", Twisted(NineTenths)),
    ("ping_pong/pipe-processes/same-cpu", TENTH, "Counted switches", Twisted(NineTenths)),
    ("ping_pong/pipe-processes/cross-cpu", TENTH, "Counted transfers", Twisted(NineTenths)),
    ("ping_pong/pipe-processes/cross-cpu", KEPT, "Regime sleeps", Twisted(Remembered)),
    ("socket_round_trip/unix-stream-same-cpu/56B", TENTH, "Counted switches", Twisted(NineTenths)),
    ("socket_round_trip/unix-stream-same-cpu/56B", "the partner answers from memory", "Checked answer", Instead(stranger::remembering_partner)),
    ("wake_up/timerfd/idle", TENTH, "single times", Twisted(NineTenths)),
    ("direct_read/random/4KiB", TENTH, "Counted bytes", Twisted(NineTenths)),
    ("direct_read/random/4KiB", HALF, "Counted bytes", Twisted(Half)),
    ("direct_read/random/4KiB", "reads from the page cache", "Checked bytes", Instead(stranger::cached_for_direct)),
    ("direct_read/random/4KiB", LEFT, "CPU time of threads", LeftToThread),
    ("known_work/multiply", BEYOND, "later witness", Twisted(HalfBeyond)),
    ("known_work/multiply", COUNTS, "later witness", Twisted(CountsBeyond)),
    ("known_work/multiply", LATER, "later witness", Twisted(HalfLater)),
    ("known_work/multiply", HUNDRED, "time that passed", Twisted(Hundredfold)),
    ("known_work/multiply", LESS, "timed share", Twisted(Tenth)),
    ("known_work/multiply", TIMES_HALF, "timed share", Twisted(HalfTimed)),
    ("known_work/multiply", TIMES_ONE, "grows", Twisted(OneTimed)),
    ("known_work/multiply", BESIDE, "timed share", Twisted(Outside)),
    ("known_work/multiply", SIXTEEN, "Executes", Twisted(Capped)),
    ("empty_loop/register", LATER, "later witness", Twisted(HalfLater)),
    ("call/u64/3", BEYOND, "later witness", Twisted(HalfBeyond)),
    ("call/u64/3", COUNTS, "later witness", Twisted(CountsBeyond)),
    ("call/u64/3", IDLE, "later witness", Twisted(CountsLater)),
    ("call/u64/3", TIMES_HALF, "timed share", Twisted(HalfTimed)),
    ("call/u64/3", BESIDE, "timed share", Twisted(Outside)),
    ("syscall/getppid", BEYOND, "later witness", Twisted(HalfBeyond)),
    ("syscall/getppid", COUNTS, "later witness", Twisted(CountsBeyond)),
    ("syscall/getppid", LATER, "later witness", Twisted(HalfLater)),
    ("syscall/getppid", IDLE, "later witness", Twisted(CountsLater)),
    ("syscall/getppid", HUNDRED, "time that passed", Twisted(Hundredfold)),
    ("syscall/getppid", LESS, "timed share", Twisted(Tenth)),
    ("syscall/getppid", TIMES_HALF, "timed share", Twisted(HalfTimed)),
    ("syscall/getppid", BESIDE, "timed share", Twisted(Outside)),
    ("syscall/getppid", SIXTEEN, "Enters", Twisted(Capped)),
    ("syscall/read-zero", BEYOND, "later witness", Twisted(HalfBeyond)),
    ("syscall/read-zero", IDLE, "later witness", Twisted(CountsLater)),
    ("syscall/read-zero", "is refused beyond the witness's batch", "later witness", Instead(stranger::refused_beyond)),
    ("syscall/read-zero", "reads no byte beyond the witness's batch", "later witness", Instead(stranger::empty_beyond)),
    ("syscall/read-zero", "makes another call beyond the witness's batch", "later witness", Instead(stranger::another_beyond)),
    ("syscall/clock-gettime-vdso", LATER, "later witness", Twisted(HalfLater)),
    ("syscall/clock-gettime-vdso", "enters the kernel beyond the witness's batch", "later witness", Instead(stranger::entering_beyond)),
    ("signal/caught", LATER, "later witness", Twisted(HalfLater)),
    ("wait/poll-pipe/10", LATER, "later witness", Twisted(HalfLater)),
    ("wait/poll-pipe/10", IDLE, "later witness", Twisted(CountsLater)),
    ("getdents/list/10", LATER, "later witness", Twisted(HalfLater)),
    ("cached_read/pread/4KiB", LATER, "later witness", Twisted(HalfLater)),
    ("cached_read/pread/4KiB", IDLE, "later witness", Twisted(CountsLater)),
    ("mapping/first-touch/1MiB", LATER, "Counted faults", Twisted(HalfLater)),
    ("page_fault/anonymous/4KiB", LATER, "Counted faults", Twisted(HalfLater)),
    ("page_fault/anonymous/4KiB", HUNDRED, "time that passed", Twisted(Hundredfold)),
    ("chase/random/16KiB", HUNDRED, "time that passed", Twisted(Hundredfold)),
    ("chase/random/16KiB", BESIDE, "timed share", Twisted(Outside)),
    ("chase/random/16KiB", TIMES_HALF, "timed share", Twisted(HalfTimed)),
    ("fork/touched-mib/0", LATER, "Counted tasks", Twisted(HalfLater)),
    ("context_switch/processes-2/0KiB", LATER, "Counted switches", Twisted(HalfLater)),
    ("context_switch/processes-2/0KiB", HUNDRED, "time that passed", Twisted(Hundredfold)),
    ("ping_pong/pipe-processes/same-cpu", LATER, "Counted switches", Twisted(HalfLater)),
    ("wake_up/timerfd/idle", LEFT_OUT, "single times", Twisted(SinglesLeftOut)),
    ("wake_up/timerfd/idle", HUNDRED, "time that passed", Twisted(Hundredfold)),
    ("direct_read/random/4KiB", LATER, "Counted bytes", Twisted(HalfLater)),
    ("direct_read/random/4KiB", HUNDRED, "time that passed", Twisted(Hundredfold)),
    ("direct_read/random/4KiB", LEFT_OUT, "single times", Twisted(SinglesLeftOut)),
    ("direct_read/random/4KiB", BEST, "single times", Twisted(BestForAll)),
    ("direct_read/random/4KiB", BEST_SUM, "single times", Twisted(BestInAll)),
    ("direct_read/random/4KiB", "times a cached read beside the device's", "timed share", Instead(stranger::cached_beside_direct)),
];

/// The case of this id.
fn real(id: &str) -> Option<Case> {
    let (group, name) = id.split_once('/')?;
    let cases = suite::find(group)?.cases;
    cases().into_iter().find(|case| case.name == name)
}

/// All liars.
pub fn liars() -> Vec<Liar> {
    let liar = |&(id, lie, claim, how): &Row| {
        let case = match how {
            Twisted(twist) => twisted(real(id)?, twist),
            LeftToThread => left_to_a_thread(id, real)?,
            Instead(set_up) => Case { set_up: set_up(), ..real(id)? },
        };
        Some(Liar { id: id.into(), lie, claim, case })
    };
    LIARS.iter().filter_map(liar).collect()
}

/// The real cases that the liars pretend to be, with their ids.
pub fn twins() -> Vec<(String, Case)> {
    let mut ids: Vec<_> = LIARS.iter().map(|(id, ..)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().filter_map(|id| Some((id.to_owned(), real(id)?))).collect()
}
