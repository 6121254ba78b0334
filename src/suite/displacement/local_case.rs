//! Cases without a network: computation, a read from a device, a round trip through pipes, a sleep.

use crate::kit::blocks::{DISK, claim_blocks_read};
use crate::kit::contract::*;
use crate::kit::ipc::Bytes;
use crate::kit::placement::Placement;
use crate::kit::round_trip::round_trip_set_up;
use crate::platform::partner::Kind;
use crate::platform::pattern_file::{self, PatternFile, Way};
use crate::platform::{arch, time};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Bytes of a direct read.
const BLOCK: usize = 4096;
/// Blocks of the file that is read.
const BLOCKS: u64 = 1024;
/// The requested duration of a sleep.
const SLEEP: Duration = Duration::from_micros(100);

/// Arithmetic for `us` microseconds. It never waits, so that accounting and displacement must agree.
pub(super) fn compute_case(us: u32) -> Case {
    let title = format!("a chain of multiplications of {us} µs");
    arithmetic_case(format!("compute/{us}us"), title, move || chain_length_for(1e3 * f64::from(us)))
        // At 3 GHz.
        .predict(3_000.0 * f64::from(us), 0.0, "as many microseconds as were asked for")
}

/// The case of a sender's multiplications without its messages.
pub(super) fn sender_computation_case() -> Case {
    const MULTIPLICATIONS: u64 = 120_000;
    const LATENCY: f64 = 3.5;
    let title =
        format!("a chain of {MULTIPLICATIONS} multiplications, as a sender computes between messages");
    let case = arithmetic_case(format!("computation/{MULTIPLICATIONS}"), title, || MULTIPLICATIONS);
    case.predict(LATENCY * MULTIPLICATIONS as f64, 0.0, "each waits for the one before, three or four cycles")
}

/// A chain of multiplications, whose length is found when the case is set up.
fn arithmetic_case(name: String, title: String, length: impl Fn() -> u64 + 'static) -> Case {
    let set_up = set_up(move |_| {
        let chain = length();
        Ok(move |n: u64, clock: &Clock| {
            Ok(clock.time(|| {
                for _ in 0..n {
                    std::hint::black_box(arch::multiply_chain(chain));
                }
            }))
        })
    });
    Case::new(name, title, set_up).claim(Claim::AtMost(check_never_slept))
}

/// A read of one block past the page cache.
pub(super) fn direct_read_case() -> Case {
    let set_up = set_up(|place| {
        let (file, mut buffer) = (make_direct_file(place)?, pattern_file::map_buffer(BLOCK)?);
        let mut next = 0u64;
        Ok(move |n: u64, clock: &Clock| {
            let (file, mut answer) = (file.file(), Ok(()));
            let ticks = clock.time(|| {
                for _ in 0..n {
                    next = (next + 17) % BLOCKS;
                    answer = file.read_exact_at(&mut buffer, next * BLOCK as u64);
                    if answer.is_err() {
                        break;
                    }
                }
            });
            let refused = |cause| Error::Kernel { call: "a read past the page cache".into(), cause };
            answer.map(|()| ticks).map_err(refused)
        })
    });
    Case::new("direct-read/4KiB", "a read of 4 KiB from the device (O_DIRECT)", set_up)
        .need(DISK)
        .claim(Claim::Checked("every read answered 4096 bytes"))
        .claim(claim_blocks_read(BLOCK))
        // If the host took the CPU meanwhile, the device may have answered before the process sleeps.
        .claim(Claim::Regime(check_slept))
        .predict(20_000.0, 40_000.0, "a request, a sleep, the device's interrupt, a wake-up")
}

fn make_direct_file(place: &Place) -> Result<PatternFile> {
    PatternFile::create_filled(&place.scratch, BLOCKS * BLOCK as u64, Way::Direct)
}

/// A token to a partner on another CPU and back: wake-ups without a network or a device.
pub(super) fn pipe_case() -> Case {
    let placement = Placement::Cross;
    let set_up = round_trip_set_up("pipe", Kind::Process, Bytes::pipe_pair, placement);
    placement
        .add_needs(Case::new("pipe/cross-cpu", "to and fro by pipes, two processes, across two CPUs", set_up))
        .claim(Claim::Regime(check_slept))
        .predict(10_000.0, 40_000.0, "two calls, a sleep, a wake-up by another CPU")
}

/// A sleep: the timer's interrupt and the wake-up.
pub(super) fn nanosleep_case() -> Case {
    let sleep = |n: u64| (0..n).for_each(|_| std::thread::sleep(SLEEP));
    let case = Case::looped("nanosleep/100us", "a sleep of 100 µs", sleep).claim(Claim::Counted(check_slept));
    case.predict(20_000.0, 30_000.0, "a timer set, a sleep, its interrupt, a wake-up")
}

/// Claim of a case that waits: the process gives up the CPU once an operation, unless the reply comes before it
/// sleeps.
///
/// # Errors
/// The evidence sentence, if the process slept in fewer than half of the operations.
pub(super) fn check_slept(delta: &Delta, iterations: u64) -> Judged {
    const LEAST: f64 = 0.5;
    let each = delta.counted.voluntary_switches as f64 / iterations.max(1) as f64;
    let sentence = format!("the process slept {each:.2} times an operation");
    if each < LEAST { Err(sentence + ": it did not wait for what it asked for") } else { Ok(sentence) }
}

/// Claim of a sender that computes while its message is under way: the reply arrives before the sender reads it.
/// A few replies may be late, for example if another task had the server's CPU.
///
/// # Errors
/// The evidence sentence, if the process slept in more than one of twenty operations.
pub(super) fn check_hardly_slept(delta: &Delta, iterations: u64) -> Judged {
    const MOST: f64 = 0.05;
    let each = delta.counted.voluntary_switches as f64 / iterations.max(1) as f64;
    let sentence = format!("the process slept {each:.3} times an operation");
    if each > MOST { Err(sentence + ": the CPU was idle meanwhile") } else { Ok(sentence) }
}

/// The claim of a computation: it never gives up the CPU.
fn check_never_slept(delta: &Delta, iterations: u64) -> Judged {
    let times = delta.counted.voluntary_switches;
    let sentence = format!("the process slept {times} times in {iterations} operations");
    if times > 0 { Err(sentence + ": it should only compute") } else { Ok(sentence) }
}

/// The number of multiplications that take `ns` nanoseconds of this thread's CPU time, which excludes other tasks.
pub(super) fn chain_length_for(ns: f64) -> u64 {
    const TIMED: u64 = 1_000_000;
    let once = || {
        let begun = time::thread_cpu_ns();
        std::hint::black_box(arch::multiply_chain(TIMED));
        time::thread_cpu_ns().saturating_sub(begun) as f64
    };
    let quickest = (0..5).map(|_| once()).fold(f64::INFINITY, f64::min);
    ((ns / quickest * TIMED as f64) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Reading;

    fn sleeping(times: u64) -> Delta {
        Delta { counted: Reading { voluntary_switches: times, ..Reading::default() }, ..Delta::default() }
    }

    #[test]
    fn an_operation_that_did_not_sleep_is_noticed() {
        assert!(check_slept(&sleeping(100), 100).is_ok());
        assert!(check_slept(&sleeping(40), 100).is_err());
    }

    #[test]
    fn a_sender_that_slept_too_often_is_noticed() {
        assert!(check_hardly_slept(&sleeping(5), 100).is_ok());
        assert!(check_hardly_slept(&sleeping(6), 100).is_err());
    }

    #[test]
    fn computation_that_slept_is_noticed() {
        assert!(check_never_slept(&sleeping(0), 100).is_ok());
        assert!(check_never_slept(&sleeping(1), 100).is_err());
    }
}
