//! Lies by another operation, which returns what the case returns and does less work.

use crate::error::{Error, Result};
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::pattern_file::{PatternFile, Way};
use crate::platform::proc::Source;
use crate::platform::process::inheritance::NoHugePages;
use crate::platform::region::{PAGE, Region};
use crate::platform::resident::{Pages, ResidentMemory};
use crate::platform::{arch, syscall, time};
use memmap2::MmapMut;
use std::cell::Cell;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Mutex;
use syscost::kit::blocks::{Blocks, Pattern, single_block_reads};
use syscost::kit::kernel_call::time_calls;
use syscost::kit::placement::Placement;
use syscost::kit::socket::Transport;
use syscost::kit::socket::dialogue::{GREETING_BYTES, Timed};
use syscost::kit::socket::endpoint::{Blocking, Endpoint};
use syscost::kit::task;
use syscost::suite::chase::operation_ring::{LINE, Spread, Walk};
use syscost::suite::context_switch::Moving;
use syscost::suite::page_fault::touch::{Expected, Touches};
use syscost::suite::socket_round_trip::conversation::Conversation;
use syscost::suite::socket_round_trip::{http, many, operation_batch};
use syscost::suite::stolen_time::spin_set_up;
use syscost::suite::wake_up::request::{Until, request_set_up};
use syscost_engine::case::{Case, Claim, Place, SetUp, Subject, set_up};
use syscost_engine::clock::witness::ITERATIONS;
use syscost_engine::clock::{Clock, Counts, Ticks};

/// Times a loop in one bracket.
pub(super) fn loop_set_up(turns: impl Fn(u64) + Copy + 'static) -> SetUp {
    set_up(move |_| Ok(move |n: u64, clock: &Clock| Ok(clock.time(|| turns(n)))))
}

/// Times a repeated system call.
pub(super) fn call_set_up(once: impl Fn() -> i64 + Copy + 'static) -> SetUp {
    set_up(move |_| Ok(move |n: u64, clock: &Clock| time_calls("a call", n, clock, once)))
}

/// Times a loop around a constant, as a C library that remembers a result makes it.
pub(super) fn constant_loop() -> SetUp {
    loop_set_up(|n| (0..n).for_each(|_| _ = black_box(4711)))
}

pub(super) fn quadratic_loop() -> SetUp {
    loop_set_up(|n| arch::register_loop(n * n.min(1 << 20) / 16))
}

pub(super) fn vdso_entering_kernel() -> SetUp {
    call_set_up(|| time::clock_gettime_entry_ns(libc::CLOCK_MONOTONIC) as i64)
}

/// Times read(2) of a descriptor that is not open.
pub(super) fn refused_read() -> SetUp {
    loop_set_up(|n| (0..n).for_each(|_| _ = black_box(syscall::read_byte(-1, &mut 0))))
}

fn open_dev_zero() -> Result<File> {
    File::open("/dev/zero").map_err(|e| Error::file("/dev/zero", "opening", e))
}

/// Calls read(2) for zero bytes.
pub(super) fn read_no_byte(mut from: &File) -> i64 {
    from.read(&mut []).map_or(-1, |length| length as i64)
}

pub(super) fn empty_read() -> SetUp {
    set_up(|_| {
        let zero = open_dev_zero()?;
        Ok(move |n: u64, clock: &Clock| {
            Ok(clock.time(|| (0..n).for_each(|_| _ = black_box(read_no_byte(&zero)))))
        })
    })
}

/// Times a batch whose first iterations are honest, as many as the first witness sees. The other iterations make another
/// call.
fn switch_past_witness(
    n: u64,
    clock: &Clock,
    mut truly: impl FnMut() -> i64,
    mut otherwise: impl FnMut() -> i64,
) -> Result<Ticks> {
    let few = n.min(ITERATIONS);
    Ok(clock.time(|| {
        (0..few).for_each(|_| _ = black_box(truly()));
        (few..n).for_each(|_| _ = black_box(otherwise()));
    }))
}

/// Reads a byte of /dev/zero in the first iterations of a batch, and calls `otherwise` in the others.
pub(super) fn read_then_other(otherwise: fn(&File) -> i64) -> SetUp {
    set_up(move |_| {
        let zero = open_dev_zero()?;
        Ok(move |n: u64, clock: &Clock| {
            switch_past_witness(
                n,
                clock,
                || syscall::read_byte(zero.as_raw_fd(), &mut 0),
                || otherwise(&zero),
            )
        })
    })
}

pub(super) fn refused_past_witness() -> SetUp {
    read_then_other(|_| syscall::read_byte(-1, &mut 0))
}

pub(super) fn entering_past_witness() -> SetUp {
    set_up(|_| {
        Ok(|n: u64, clock: &Clock| {
            let read = || time::clock_gettime_ns(libc::CLOCK_MONOTONIC) as i64;
            switch_past_witness(n, clock, read, || time::clock_gettime_entry_ns(libc::CLOCK_MONOTONIC) as i64)
        })
    })
}

/// The number of pages that are touched before the timing.
const PAGES: usize = 1024;

pub(super) fn pages_touched_before() -> SetUp {
    set_up(|_| {
        let region = Rc::new(Region::map_anonymous(PAGES * PAGE, Pages::Base)?);
        let touched = Rc::clone(&region);
        let prepare = move |pages: usize| {
            region.discard(0..pages)?;
            region.write(0..pages, 1);
            Ok(())
        };
        Ok(Touches::new(PAGES, Expected::OneEach, prepare, move |pages| touched.write(0..pages, 1)))
    })
}

/// Maps 1 MiB and touches only every other page.
pub(super) fn half_touched_pages() -> SetUp {
    set_up(|_| {
        let base_pages = NoHugePages::start();
        Ok(move |n: u64, clock: &Clock| {
            let _held = &base_pages;
            Ok(clock.time(|| {
                for _ in 0..n {
                    if let Ok(mut memory) = MmapMut::map_anon(1 << 20) {
                        memory.iter_mut().step_by(2 * PAGE).for_each(|byte| *byte = 1);
                        black_box(&memory[..1]);
                    }
                }
            }))
        })
    })
}

/// Creates each child process without copying the parent's memory.
pub(super) fn vfork_for_fork() -> SetUp {
    set_up(|_| {
        Ok(|n: u64, clock: &Clock| {
            let mut lowest = 0;
            let ticks = clock.time(|| {
                for _ in 0..n {
                    let child = task::vfork_exit();
                    lowest = lowest.min(child).min(task::reap(child as i32, &mut 0));
                }
            });
            task::check_created("vfork", lowest).map(|()| ticks)
        })
    })
}

/// Walks a ring that leaves out half of its slots.
pub(super) fn half_ring_walk() -> SetUp {
    const SLOTS: u32 = 256;
    set_up(|_| {
        let memory = ResidentMemory::new(SLOTS as usize * LINE, Pages::Base)?;
        let visits: Vec<u32> = (0..SLOTS).map(|slot| slot % (SLOTS / 2)).collect();
        let walk = Walk::<1>::new(memory, Spread::Every(LINE), &visits)?;
        Ok(move |n: u64, clock: &Clock| Ok(clock.time(|| _ = walk.walk_steps(n))))
    })
}

/// The lengths of a file of blocks and of a block, bytes.
const FILE: u64 = 1 << 20;
const BLOCK: usize = 4 << 10;

fn open_blocks(place: &Place, way: Way) -> Result<Blocks> {
    let file = PatternFile::create_filled(&place.scratch, FILE, way)?;
    Blocks::new(file, Pattern::Random, BLOCK, Source::Device)
}

/// Reads through the page cache.
pub(super) fn cached_instead_of_direct() -> SetUp {
    set_up(|place| single_block_reads(open_blocks(place, Way::Cached)?))
}

/// Reads blocks of the device untimed, and times reads of the page cache.
pub(super) fn timed_cached_reads() -> SetUp {
    set_up(|place| {
        let mut direct = single_block_reads(open_blocks(place, Way::Direct)?)?;
        let zero = open_dev_zero()?;
        Ok(move |n: u64, clock: &Clock| {
            direct.run(n, clock)?;
            Ok(clock
                .time(|| (0..n).for_each(|_| _ = black_box(syscall::read_byte(zero.as_raw_fd(), &mut 0)))))
        })
    })
}

/// A partner that sends the answer to the first message again for every message.
pub(super) fn remembering_partner() -> SetUp {
    const BYTES: usize = 56;
    set_up(|place| {
        let [near, far] = Transport::UnixStream.connected_pair()?;
        let (mut end, mut first, mut next) = (Blocking::new(far)?, [0; BYTES], [0; BYTES]);
        let mut steps = 0u64;
        let step = move || {
            steps += 1;
            match steps {
                1 => end.send(&(std::process::id() as i32).to_ne_bytes()[..GREETING_BYTES]),
                2 => end.receive(&mut first).min(end.send(&first)),
                _ => end.receive(&mut next).min(end.send(&first)),
            }
        };
        let at = (Placement::Same.partner_cpu(place)?, Class::Ordinary);
        let partner = Partner::start(Kind::Process, at, step, || ())?;
        Conversation::await_greeting(
            "unix-stream",
            Blocking::new(near)?,
            (BYTES, Timed::Together),
            vec![partner],
        )
    })
}

/// Moves the thread to the CPU on which it already runs.
pub(super) fn moves_to_own_cpu() -> SetUp {
    set_up(|place| {
        let mut moving = Moving::new(place, Placement::Cross)?;
        moving.sets[0] = moving.sets[1];
        Ok(moving)
    })
}

pub(super) fn one_page_for_all() -> SetUp {
    http::request_set_up(Placement::Same, true, |_, _| ())
}

/// A server that answers each message as it answered the first.
pub(super) fn one_reply_for_all() -> SetUp {
    set_up(|place| {
        let first: Cell<Option<many::Message>> = Cell::new(None);
        many::connect(place, 100, move |message| {
            first.set(first.get().or(Some(message)));
            first.get().unwrap_or(message)
        })
    })
}

pub(super) fn batches_left_out() -> SetUp {
    operation_batch::batch_set_up(|_, _, _| operation_batch::MESSAGES as i64)
}

pub(super) fn requests_without_work() -> SetUp {
    request_set_up(Until::WorkIsDone, 1, |_| 0)
}

/// Reads the clock and reports no gap.
pub(super) fn spin_without_gaps() -> SetUp {
    spin_set_up(false, true, |readings, _| {
        let first = time::monotonic_raw_ns();
        [first, (1..readings).fold(first, |_, _| black_box(time::monotonic_raw_ns()))]
    })
}

/// The number of multiplications in a hash, which take one instruction each.
const MULTIPLICATIONS: u64 = 4_096;
/// The number of additions in a single operation: half a microsecond, which is only a few steps of some clocks.
const ADDITIONS: u64 = 2_000;

/// The case with this name.
pub(super) fn find_own(name: &str) -> Option<Case> {
    match name {
        "hash" => Some(
            Case::looped("hash", "a hash of 4096 multiplications", run_hashes)
                .claim(Claim::Executes(4_000.0))
                .claim(Claim::Linear),
        ),
        "single" => Some(Case::new("single", "single short operations", single_additions()).one_by_one()),
        _ => None,
    }
}

fn hash() -> u64 {
    arch::multiply_chain(black_box(MULTIPLICATIONS))
}

fn run_hashes(n: u64) {
    (0..n).for_each(|_| _ = black_box(hash()));
}

/// A hash that is computed once and then kept behind a lock.
pub(super) fn remembered_hash() -> SetUp {
    set_up(|_| {
        let answer: Mutex<Option<u64>> = Mutex::new(None);
        Ok(move |n: u64, clock: &Clock| {
            Ok(clock.time(|| {
                for _ in 0..n {
                    let mut kept = answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    _ = black_box(*kept.get_or_insert_with(hash));
                }
            }))
        })
    })
}

fn single_additions() -> SetUp {
    set_up(|_| {
        Ok(|n: u64, clock: &Clock| {
            let add = |(): &mut ()| arch::add_chain(ADDITIONS);
            clock.time_each(n, &mut (), |()| Ok(()), add, |(), _| Ok(Counts::Yes))
        })
    })
}
