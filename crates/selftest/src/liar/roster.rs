//! The liars. For each of them: the real case that it pretends to be, what it does instead, and the claim that must catch it.

use super::Liar;
use super::stranger::{self, call_set_up, loop_set_up, read_no_byte, read_then_other};
use super::twisted::*;
use crate::platform::syscall;
use std::hint::black_box;
use syscost::suite;
use syscost::suite::lock::waiters::{self, Call, waiter_set_up};
use syscost::suite::wake_up::IDLE;
use syscost::suite::wake_up::every_cpu::every_cpu_set_up;
use syscost::suite::wake_up::load::load_set_up;
use syscost_engine::case::{Case, Cpus, Need, Place, Scale, SetUp};

/// The operation that a liar executes instead of its own.
#[derive(Clone, Copy)]
pub(super) enum Lie {
    /// The real operation, twisted.
    Twisted(Twist),
    /// A thread of the process does the work.
    LeftToThread(Option<Twist>),
    /// Another operation: its description and its set-up.
    Instead(&'static str, fn() -> SetUp),
    /// The row of a table without its operation.
    LeftOut,
}

use Lie::{Instead, LeftOut, LeftToThread, Twisted};

impl Lie {
    fn description(self) -> &'static str {
        match self {
            Twisted(twist) => twist.words,
            LeftToThread(twist) => twist.map_or("leaves the work to another thread", |twist| twist.words),
            Instead(words, _) => words,
            LeftOut => "leaves the operation out",
        }
    }

    /// The value of [`Liar::from`].
    fn from(self) -> u64 {
        match self {
            Twisted(twist) | LeftToThread(Some(twist)) => twist.from,
            Instead(words, _) if words.ends_with(BEYOND) => COUNTED_BEYOND,
            _ => 1,
        }
    }
}

/// The end of the description of a lie that begins beyond the batches of the first witness.
const BEYOND: &str = "beyond the witness's batch";

/// The group name in the ids of [`stranger::find_own`], whose cases belong to no group of the suite.
const OWN: &str = "own";

/// A liar: the id of the real case, the claim that must catch it, and the lie.
type Row = (&'static str, &'static str, Lie);

/// The claim that an operation does later what the first witness saw.
const LATER_WITNESS: &str = "later witness";
/// Stands for the claim where no claim catches the lie yet; the selftest shows such lies.
pub const OPEN: &str = "none yet";

#[rustfmt::skip]
pub(super) const LIARS: &[Row] = &[
    ("known_work/multiply", "Executes", Twisted(NINE_TENTHS)),
    ("known_work/multiply", "Executes", Twisted(HALF)),
    ("known_work/multiply", "time that passed", Twisted(REMEMBERED)),
    ("known_work/multiply", "Executes", Twisted(MADE_UP)),
    ("known_work/multiply", "Executes", Twisted(CONSTANT)),
    ("known_work/multiply", "CPU time of threads", LeftToThread(None)),
    ("known_work/multiply", "CPU time of threads", LeftToThread(Some(UNEVEN))),
    ("empty_loop/register", "Executes", Instead("was optimised away", || loop_set_up(|n| _ = black_box(n)))),
    ("known_work/multiply", "Linear", Instead("works more with each iteration", stranger::quadratic_loop)),
    ("call/u64/3", "Calls", Twisted(NINE_TENTHS)),
    ("call/u64/3", "Calls", Instead("was inlined", || loop_set_up(suite::call::operation::control))),
    ("syscall/getppid", "Enters", Twisted(NINE_TENTHS)),
    ("syscall/getppid", "Enters", Twisted(HALF)),
    ("syscall/getppid", "Enters", Instead("answers from memory", stranger::constant_loop)),
    ("syscall/getppid", "Enters", Instead("makes another call as often", || call_set_up(syscall::getpid))),
    ("syscall/read-zero", "Enters", Instead("reads from no descriptor", stranger::refused_read)),
    ("syscall/read-zero", "Answers", Instead("reads no byte", stranger::empty_read)),
    ("syscall/clock-gettime-vdso", "Calls", Twisted(NINE_TENTHS)),
    ("syscall/clock-gettime-vdso", "NeverEnters", Instead("enters the kernel", stranger::vdso_entering_kernel)),
    ("signal/caught", "Enters", Twisted(NINE_TENTHS)),
    ("wait/poll-pipe/10", "Enters", Twisted(NINE_TENTHS)),
    ("scale/pipe/one", "Enters", Twisted(NINE_TENTHS)),
    ("scale/open-close/one", "Enters", Twisted(HALF)),
    ("instruction/latency/divide-64", "Executes", Twisted(HALF)),
    ("instruction/latency/fence", "Executes", Twisted(CONSTANT)),
    ("getdents/list/10", "Enters", Twisted(NINE_TENTHS)),
    ("cached_read/pread/4KiB", "Enters", Twisted(NINE_TENTHS)),
    ("mapping/first-touch/1MiB", "Enters", Twisted(NINE_TENTHS)),
    ("mapping/first-touch/1MiB", "Counted faults", Instead("touches every other page", stranger::half_touched_pages)),
    ("page_fault/anonymous/4KiB", "Checked faults", Instead("touched the pages before", stranger::pages_touched_before)),
    ("page_fault/anonymous/4KiB", "Counted faults", Twisted(NINE_TENTHS)),
    ("page_fault/anonymous/4KiB", "Counted faults", Twisted(REMEMBERED)),
    ("chase/random/16KiB", "Checked ring", Instead("walks half of the ring", stranger::half_ring_walk)),
    ("fork/touched-mib/0", "Counted tasks", Twisted(NINE_TENTHS)),
    ("fork/touched-mib/0", "Counted faults", Instead("shares the memory instead of copying it", stranger::vfork_for_fork)),
    ("thread/same-cpu/join-64KiB", "Counted tasks", Twisted(NINE_TENTHS)),
    ("context_switch/processes-2/0KiB", "Counted switches", Twisted(NINE_TENTHS)),
    ("ping_pong/pipe-processes/same-cpu", "Counted switches", Twisted(NINE_TENTHS)),
    ("ping_pong/pipe-processes/cross-cpu", "Counted transfers", Twisted(NINE_TENTHS)),
    ("ping_pong/pipe-processes/cross-cpu", "Regime sleeps", Twisted(REMEMBERED)),
    ("socket_round_trip/unix-stream-same-cpu/56B", "Counted switches", Twisted(NINE_TENTHS)),
    ("socket_round_trip/unix-stream-same-cpu/56B", "Checked answer", Instead("the partner answers from memory", stranger::remembering_partner)),
    ("wake_up/timerfd/idle", "single times", Twisted(NINE_TENTHS)),
    ("lock/futex-wake/one-by-one-16", "Checked wake-ups", Instead("wakes sleepers of another word", || waiter_set_up(Call::WakeEach, waiters::OTHER))),
    ("context_switch/move/cross-cpu", "Checked CPU", Instead("moves to its own CPU", stranger::moves_to_own_cpu)),
    ("socket_round_trip/http-keep-alive-same-cpu/1KiB", "Checked page", Instead("serves one page for all requests", stranger::one_page_for_all)),
    ("socket_round_trip/tcp-connections-100-same-cpu/56B", "Checked reply", Instead("replies by the first message", stranger::one_reply_for_all)),
    ("socket_round_trip/udp-batch-one-process/mmsg", "Checked messages", Instead("sends nothing", stranger::batches_left_out)),
    ("socket_round_trip/http-keep-alive-same-cpu/1KiB", "Counted switches", Twisted(NINE_TENTHS)),
    ("socket_round_trip/tcp-connections-100-same-cpu/56B", "Counted transfers", Twisted(NINE_TENTHS)),
    ("socket_round_trip/udp-batch-one-process/mmsg", "Enters", Twisted(NINE_TENTHS)),
    ("context_switch/move/cross-cpu", "Counted switches", Twisted(NINE_TENTHS)),
    ("lock/futex-wake/one-by-one-16", "Counted sleeps", Twisted(NINE_TENTHS)),
    ("lock/cascade/futex-mutex-8", "Counted switches", Twisted(REMEMBERED)),
    ("lock/cascade/futex-mutex-8", "Counted switches", Twisted(CAPPED)),
    ("wake_up/request-wake/busy-1-per-cpu", "single times", Twisted(NINE_TENTHS)),
    ("wake_up/request/busy-1-per-cpu", "Checked work", Instead("answers requests without work", stranger::requests_without_work)),
    ("wake_up/load-p99/75", "Checked work", Instead("answers requests at a rate without work", || load_set_up(75, |_| 0))),
    ("wake_up/load-p99/75", "single times", Twisted(NINE_TENTHS)),
    ("wake_up/every-cpu/idle", "Checked wake-ups", Instead("leaves out the other CPUs", || every_cpu_set_up(IDLE, |_, _| 0))),
    ("wake_up/every-cpu/idle", "single times", Twisted(NINE_TENTHS)),
    ("stolen_time/spin/ordinary", "Calls", Twisted(NINE_TENTHS)),
    ("stolen_time/spin/beside-hog", "Checked gaps", Instead("reports no gap", stranger::spin_without_gaps)),
    ("direct_read/random/4KiB", "Counted bytes", Twisted(NINE_TENTHS)),
    ("direct_read/random/4KiB", "Counted bytes", Twisted(HALF)),
    ("direct_read/random/4KiB", "Checked bytes", Instead("reads from the page cache", stranger::cached_instead_of_direct)),
    ("direct_read/random/4KiB", "CPU time of threads", LeftToThread(None)),
    ("known_work/multiply", LATER_WITNESS, Twisted(HALF_BEYOND)),
    ("known_work/multiply", LATER_WITNESS, Twisted(COUNTS_BEYOND)),
    ("known_work/multiply", LATER_WITNESS, Twisted(HALF_LATER)),
    ("known_work/multiply", "time that passed", Twisted(HUNDREDFOLD)),
    ("known_work/multiply", "timed share", Twisted(TENTH)),
    ("known_work/multiply", "timed share", Twisted(HALF_TIMED)),
    ("known_work/multiply", "grows", Twisted(ONE_TIMED)),
    ("known_work/multiply", "timed share", Twisted(OUTSIDE)),
    ("known_work/multiply", "Executes", Twisted(CAPPED)),
    ("empty_loop/register", LATER_WITNESS, Twisted(HALF_LATER)),
    ("call/u64/3", LATER_WITNESS, Twisted(HALF_BEYOND)),
    ("call/u64/3", LATER_WITNESS, Twisted(COUNTS_BEYOND)),
    ("call/u64/3", LATER_WITNESS, Twisted(COUNTS_LATER)),
    ("call/u64/3", "timed share", Twisted(HALF_TIMED)),
    ("call/u64/3", "timed share", Twisted(OUTSIDE)),
    ("syscall/getppid", LATER_WITNESS, Twisted(HALF_BEYOND)),
    ("syscall/getppid", LATER_WITNESS, Twisted(COUNTS_BEYOND)),
    ("syscall/getppid", LATER_WITNESS, Twisted(HALF_LATER)),
    ("syscall/getppid", LATER_WITNESS, Twisted(COUNTS_LATER)),
    ("syscall/getppid", "time that passed", Twisted(HUNDREDFOLD)),
    ("syscall/getppid", "timed share", Twisted(TENTH)),
    ("syscall/getppid", "timed share", Twisted(HALF_TIMED)),
    ("syscall/getppid", "timed share", Twisted(OUTSIDE)),
    ("syscall/getppid", "Enters", Twisted(CAPPED)),
    ("syscall/read-zero", LATER_WITNESS, Twisted(HALF_BEYOND)),
    ("syscall/read-zero", LATER_WITNESS, Twisted(COUNTS_LATER)),
    ("syscall/read-zero", LATER_WITNESS, Instead("is refused beyond the witness's batch", stranger::refused_past_witness)),
    ("syscall/read-zero", LATER_WITNESS, Instead("reads no byte beyond the witness's batch", || read_then_other(read_no_byte))),
    ("syscall/read-zero", LATER_WITNESS, Instead("makes another call beyond the witness's batch", || read_then_other(|_| syscall::getpid()))),
    ("syscall/clock-gettime-vdso", LATER_WITNESS, Twisted(HALF_LATER)),
    ("syscall/clock-gettime-vdso", LATER_WITNESS, Instead("enters the kernel beyond the witness's batch", stranger::entering_past_witness)),
    ("signal/caught", LATER_WITNESS, Twisted(HALF_LATER)),
    ("wait/poll-pipe/10", LATER_WITNESS, Twisted(HALF_LATER)),
    ("wait/poll-pipe/10", LATER_WITNESS, Twisted(COUNTS_LATER)),
    ("getdents/list/10", LATER_WITNESS, Twisted(HALF_LATER)),
    ("cached_read/pread/4KiB", LATER_WITNESS, Twisted(HALF_LATER)),
    ("cached_read/pread/4KiB", LATER_WITNESS, Twisted(COUNTS_LATER)),
    ("mapping/first-touch/1MiB", "Counted faults", Twisted(HALF_LATER)),
    ("page_fault/anonymous/4KiB", "Counted faults", Twisted(HALF_LATER)),
    ("page_fault/anonymous/4KiB", "time that passed", Twisted(HUNDREDFOLD)),
    ("chase/random/16KiB", "time that passed", Twisted(HUNDREDFOLD)),
    ("chase/random/16KiB", "timed share", Twisted(OUTSIDE)),
    ("chase/random/16KiB", "timed share", Twisted(HALF_TIMED)),
    ("fork/touched-mib/0", "Counted tasks", Twisted(HALF_LATER)),
    ("context_switch/processes-2/0KiB", "Counted switches", Twisted(HALF_LATER)),
    ("context_switch/processes-2/0KiB", "time that passed", Twisted(HUNDREDFOLD)),
    ("ping_pong/pipe-processes/same-cpu", "Counted switches", Twisted(HALF_LATER)),
    ("wake_up/timerfd/idle", "single times", Twisted(SINGLES_LEFT_OUT)),
    ("wake_up/timerfd/idle", "time that passed", Twisted(HUNDREDFOLD)),
    ("direct_read/random/4KiB", "Counted bytes", Twisted(HALF_LATER)),
    ("direct_read/random/4KiB", "time that passed", Twisted(HUNDREDFOLD)),
    ("direct_read/random/4KiB", "single times", Twisted(SINGLES_LEFT_OUT)),
    ("direct_read/random/4KiB", "single times", Twisted(BEST_FOR_ALL)),
    ("direct_read/random/4KiB", "single times", Twisted(BEST_IN_ALL)),
    ("direct_read/random/4KiB", "timed share", Instead("times a cached read beside the device's", stranger::timed_cached_reads)),
    ("own/hash", "Executes", Instead("remembers its answer behind a lock", stranger::remembered_hash)),
    ("own/hash", "Executes", Twisted(NINE_TENTHS)),
    ("own/hash", "brackets", Twisted(SEVEN_TENTHS)),
    ("own/hash", "brackets", Twisted(SEVEN_TENTHS_TIMED)),
    ("own/hash", "timed share", Twisted(THREE_TENTHS_BESIDE)),
    ("known_work/multiply", "brackets", Twisted(SEVEN_TENTHS)),
    ("call/u64/3", "brackets", Twisted(SEVEN_TENTHS_TIMED)),
    ("syscall/getppid", "brackets", Twisted(SEVEN_TENTHS)),
    ("syscall/getppid", "timed share", Twisted(THREE_TENTHS_BESIDE)),
    ("own/single", "brackets", Twisted(BEST_FOR_ALL)),
    ("own/single", "single times", Twisted(BEST_IN_ALL)),
    ("syscall/getppid", LATER_WITNESS, Twisted(THREE_QUARTERS_BEYOND_1000)),
    ("syscall/getppid", LATER_WITNESS, Twisted(NINE_TENTHS_BEYOND)),
    ("syscall/getppid", "timed share", Twisted(BEST_TIMES)),
    ("syscall/getppid", OPEN, Twisted(UNWATCHED)),
    ("call/u64/3", LATER_WITNESS, Twisted(THREE_QUARTERS_BEYOND_1000)),
    ("call/u64/3", LATER_WITNESS, Twisted(NINE_TENTHS_BEYOND)),
    ("call/u64/3", LATER_WITNESS, Twisted(COUNTS_BEYOND_100000)),
    ("known_work/multiply", LATER_WITNESS, Twisted(COUNTS_BEYOND_100000)),
    ("known_work/multiply", LATER_WITNESS, Twisted(THREE_QUARTERS_BEYOND_1000)),
    ("known_work/multiply", LATER_WITNESS, Twisted(NINE_TENTHS_BEYOND)),
    ("known_work/multiply", "timed share", Twisted(BEST_TIMES)),
    ("own/hash", OPEN, Twisted(BEST_TIMES)),
    ("known_work/multiply", OPEN, Twisted(UNWATCHED)),
    ("syscall/epoll-ctl", "Enters", Twisted(NINE_TENTHS)),
    ("mapping/msync/4KiB", "Checked pages", LeftOut),
    ("mapping/mremap-move/1MiB", "Checked pages", LeftOut),
    ("mapping/madvise-free/1MiB", "Checked pages", LeftOut),
    ("mapping/madvise-populate/1MiB", "Checked pages", LeftOut),
    ("mapping/madvise-pageout/1MiB", "Checked pages", LeftOut),
    ("mapping/madvise-collapse/2MiB", "Checked pages", LeftOut),
    ("mapping/huge-split/2MiB", "Checked pages", LeftOut),
    ("tracing/seccomp/256", "Checked", LeftOut),
    ("tracing/seccomp-notify", "Checked", LeftOut),
    ("tracing/ptrace-stop", "Checked", LeftOut),
    ("tracing/landlock-open/1", "Checked", LeftOut),
    ("tracing/breakpoint-hit", "Checked", LeftOut),
    ("tracing/uprobe-hit", "Checked", LeftOut),
    ("tracing/bpf-run", "Checked", LeftOut),
    ("container/start", "Checked start", LeftOut),
    ("container/root", "Checked start", LeftOut),
    ("container/filter", "Checked start", LeftOut),
    ("container/exec", "Checked start", LeftOut),
    ("container/cgroup-move", "Checked start", LeftOut),
    ("tracing/seccomp/256", "Linear", Twisted(CONSTANT)),
    ("tracing/bpf-call", "Enters", Twisted(HALF)),
];

/// The real case with this id.
fn real_case(id: &str) -> Option<Case> {
    let (group, name) = id.split_once('/')?;
    if group == OWN {
        return stranger::find_own(name);
    }
    let cases = suite::find_group(group)?.cases;
    let mut case = cases().into_iter().find(|case| case.name == name)?;
    case.needs.retain(|need| !is_about_scale(need));
    Some(case)
}

/// Whether a need is met only at full scale. The claims of such a case are judged at any scale.
fn is_about_scale(need: &Need) -> bool {
    let at = |scale| Place { scratch: std::env::temp_dir(), scale, cpus: Cpus::default() };
    need.check_place(&at(Scale::Smoke)).is_err() && need.check_place(&at(Scale::Full)).is_ok()
}

/// All liars.
pub fn liars() -> Vec<Liar> {
    let liar = |&(id, claim, lie): &Row| {
        let case = match lie {
            Twisted(twist) => twist_case(real_case(id)?, twist),
            LeftToThread(twist) => {
                let case = leave_to_thread(id, real_case)?;
                match twist {
                    Some(twist) => twist_case(case, twist),
                    None => case,
                }
            }
            Instead(_, set_up) => Case { set_up: set_up(), ..real_case(id)? },
            LeftOut => Case { set_up: suite::left_out_set_up(id)?, ..real_case(id)? },
        };
        Some(Liar { id: id.into(), lie: lie.description(), claim, from: lie.from(), case })
    };
    LIARS.iter().filter_map(liar).collect()
}

/// The real cases that the liars pretend to be, with their ids.
pub fn real_cases() -> Vec<(String, Case)> {
    let mut ids: Vec<_> = LIARS.iter().map(|(id, ..)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().filter_map(|id| Some((id.to_owned(), real_case(id)?))).collect()
}
