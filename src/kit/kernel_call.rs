//! A repeated kernel call: the timed loop, its control, and the check that no answer was an error; and why a call
//! was refused.
//!
//! A call with constant arguments is a [`RawCall`], whose loop has a cost that does not depend on its place in memory.
//! Any other call is a closure that returns the kernel's answer: zero or more, or a negative error number.

use crate::kit::contract::*;
use crate::platform::arch::{Answers, repeat_no_syscall};
use crate::platform::kernel_files::KernelFiles;
use crate::platform::syscall::RawCall;
use nix::errno::Errno;
use std::ffi::CString;
use std::hint::black_box;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The path as a zero-terminated string, for a system call.
///
/// # Errors
/// The path holds a zero byte.
pub fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Usage(format!("{}: a path holds a zero byte", path.display())))
}

/// The lock of one byte of a file, for fcntl(2): `F_WRLCK` takes it, `F_UNLCK` releases it.
pub fn byte_lock(byte: usize, kind: i32) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte as libc::off_t,
        l_len: 1,
        l_pid: 0,
    }
}

/// The answers of a call that was not refused.
pub const GRANTED: RangeInclusive<i64> = 0..=i64::MAX;

/// A case of one call an iteration, always with the same arguments. A witness must see the call `entered`, by its name and
/// number, and every answer must be one of `answers`. `open` prepares what the call works on.
/// The control is the same loop without the entry into the kernel.
pub fn raw_case<T: 'static>(
    name: &'static str,
    title: &'static str,
    entered: (&'static str, i64),
    answers: RangeInclusive<i64>,
    open: impl Fn(&Place) -> Result<T> + 'static,
    call: impl Fn(&mut T) -> RawCall + Copy + 'static,
) -> Case {
    call_case(name, title, raw_loop_set_up(name, answers, open, call))
        .control_set_up(no_call_control())
        .claim(Claim::Enters(vec![entered]))
}

/// The loop of [`raw_case`] alone, without claims and control.
pub fn raw_loop_set_up<T: 'static>(
    name: &'static str,
    answers: RangeInclusive<i64>,
    open: impl Fn(&Place) -> Result<T> + 'static,
    call: impl Fn(&mut T) -> RawCall + Copy + 'static,
) -> SetUp {
    set_up(move |place| {
        let (mut on, answers) = (open(place)?, answers.clone());
        Ok(move |n: u64, clock: &Clock| {
            let (mut raw, mut seen) = (call(&mut on), Answers::default());
            let ticks = clock.time(|| seen = raw.repeat(n));
            check_answers(name, &answers, seen).map(|()| ticks)
        })
    })
}

/// A control: the loop of one raw call without the entry into the kernel.
pub fn no_call_control() -> SetUp {
    set_up(|_| Ok(|n: u64, clock: &Clock| Ok(clock.time(|| _ = repeat_no_syscall(0, [0; 6], n)))))
}

/// A case of one call an iteration. Its control is the same loop around the constant 0.
pub fn call_case(name: &'static str, title: impl Into<String>, calls: SetUp) -> Case {
    let control = set_up(move |_| Ok(move |n: u64, clock: &Clock| time_calls(name, n, clock, || 0)));
    Case::new(name, title, calls).control_set_up(control).claim(Claim::AboveControl).claim(Claim::Linear)
}

/// Times `n` calls in one bracket. The loop keeps the lowest answer, which costs a comparison and shows any error.
///
/// # Errors
/// The error of [`check_granted`], if any answer was negative.
#[inline(always)]
pub fn time_calls(call: &str, n: u64, clock: &Clock, mut once: impl FnMut() -> i64) -> Result<Ticks> {
    let mut lowest = 0;
    let ticks = clock.time(|| {
        for _ in 0..n {
            lowest = lowest.min(black_box(once()));
        }
    });
    check_granted(call, lowest).map(|()| ticks)
}

/// Times up to `n` calls in one bracket and stops at the first negative answer, which it returns beside the time; 0 if
/// there was none.
#[inline(always)]
pub fn time_until_refused(n: u64, clock: &Clock, mut once: impl FnMut() -> i64) -> (Ticks, i64) {
    let mut answer = 0;
    let ticks = clock.time(|| {
        for _ in 0..n {
            answer = once();
            if answer < 0 {
                break;
            }
        }
    });
    (ticks, answer.min(0))
}

/// Times up to `n` operations in one bracket and stops at the first error.
///
/// # Errors
/// The error of the operation.
#[inline(always)]
pub fn time_until_error<E>(
    n: u64,
    clock: &Clock,
    mut once: impl FnMut() -> std::result::Result<(), E>,
) -> std::result::Result<Ticks, E> {
    let mut ended = Ok(());
    let ticks = clock.time(|| {
        for _ in 0..n {
            ended = once();
            if ended.is_err() {
                break;
            }
        }
    });
    ended.map(|()| ticks)
}

/// The error number of a call of the standard library; EIO where it has none.
pub fn errno_of(cause: std::io::Error) -> Errno {
    Errno::from_raw(cause.raw_os_error().unwrap_or(libc::EIO))
}

/// Checks an answer of the kernel.
///
/// # Errors
/// A negative answer: [`Error::Forbidden`] if the call is not allowed or unknown here, else [`Error::Kernel`]. [`Error::Disproved`]
/// for the value by which [`only`] replaces an unwanted answer.
pub fn check_granted(call: &str, answer: i64) -> Result<()> {
    match answer {
        0.. => Ok(()),
        NOT_WANTED => Err(Error::Disproved(format!("{call} gave another answer than the right one"))),
        _ => Err(Error::from_case_errno(call, Error::decode_errno(answer))),
    }
}

/// Stands for an answer that is neither a refusal nor the wanted one. It is lower than every negative error number.
const NOT_WANTED: i64 = i64::MIN;

/// For a loop that keeps the lowest answer: 0 for the `wanted` answer, a refusal unchanged, and for any other answer a value that
/// [`check_granted`] turns into [`Error::Disproved`].
#[inline(always)]
pub fn only(wanted: i64, answer: i64) -> i64 {
    match answer {
        ..0 => answer,
        _ if answer == wanted => 0,
        _ => NOT_WANTED,
    }
}

/// Checks that all answers were among those wanted.
///
/// # Errors
/// The error of [`check_granted`] for a refusal, else [`Error::Disproved`].
pub fn check_answers(call: &str, wanted: &RangeInclusive<i64>, seen: Answers) -> Result<()> {
    let Answers { lowest, highest } = seen;
    if lowest >= *wanted.start() && highest <= *wanted.end() {
        return Ok(());
    }
    check_granted(call, if lowest < *wanted.start() { lowest } else { highest })?;
    let all = |from, to| if from == to { format!("{from}") } else { format!("{from} to {to}") };
    let (said, right) = (all(lowest, highest), all(*wanted.start(), *wanted.end()));
    Err(Error::Disproved(format!("{call} answered {said} where {right} is right")))
}

const SWITCH: &str = "proc/sys/kernel/io_uring_disabled";

/// The sentence for a refused io_uring_setup(2): the kernel's error, and what to change.
pub fn io_uring_refusal(cause: &std::io::Error) -> String {
    format!(
        "io_uring_setup: {cause}; {}",
        refusal_remedy(cause.raw_os_error(), KernelFiles::live().read_number(SWITCH))
    )
}

/// What to change after a refusal. `switch`, the value of [`SWITCH`], exists since Linux 6.6, where the kernel has io_uring.
fn refusal_remedy(errno: Option<i32>, switch: Option<u8>) -> String {
    match (errno, switch) {
        (Some(libc::EPERM), Some(level)) if level > 0 => format!("/{SWITCH} is {level}: set it to 0"),
        (Some(libc::EPERM), _) => "a sandbox's filter of system calls denies it: allow it there".into(),
        (Some(libc::ENOSYS), Some(_)) => {
            "this kernel has it, and a sandbox's filter of system calls hides it: allow it there".into()
        }
        (Some(libc::ENOSYS), None) => {
            "this kernel was built without it (CONFIG_IO_URING), or a sandbox's filter of system calls hides it".into()
        }
        (Some(libc::ENOMEM), _) => "it may lock too little memory: raise `ulimit -l`".into(),
        _ => "cases by threads do without it".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keeps_refusals_and_disproves_other_answers() {
        let again = -i64::from(libc::EAGAIN);
        assert_eq!((only(10, 10), only(10, again)), (0, again));
        for other in [0, 9, 11] {
            assert!(matches!(check_granted("read", only(10, other)), Err(Error::Disproved(_))), "{other}");
        }
    }

    #[test]
    fn an_unwanted_answer_is_an_error() {
        let seen = |lowest, highest| check_answers("read", &(1..=1), Answers { lowest, highest });
        assert!(seen(1, 1).is_ok() && check_answers("read", &(1..=1), Answers::default()).is_ok());
        let short = seen(0, 1).expect_err("one byte is wanted");
        assert_eq!(short.to_string(), "read answered 0 to 1 where 1 is right");
        assert!(matches!(seen(-i64::from(libc::EIO), 1), Err(Error::Kernel { .. })));
        let refused = -i64::from(libc::ENOSYS);
        let none =
            |highest| check_answers("none", &(refused..=refused), Answers { lowest: refused, highest });
        assert!(none(refused).is_ok());
        assert!(matches!(none(0), Err(Error::Disproved(_))), "a number that is a call after all");
    }

    #[test]
    fn a_refused_call_is_an_error() {
        assert!(check_granted("getpid", 7).is_ok() && check_granted("getpid", 0).is_ok());
        assert!(matches!(check_granted("madvise", -i64::from(libc::ENOSYS)), Err(Error::Forbidden { .. })));
        assert!(matches!(check_granted("madvise", -i64::from(libc::EINVAL)), Err(Error::Kernel { .. })));
    }

    #[test]
    fn the_kernels_switch_is_blamed_only_where_it_is_set() {
        for (errno, switch, words) in [
            (libc::EPERM, Some(2), "is 2: set it to 0"),
            (libc::EPERM, Some(0), "filter of system calls denies it"),
            (libc::EPERM, None, "filter of system calls denies it"),
            (libc::ENOSYS, Some(0), "this kernel has it"),
            (libc::ENOSYS, None, "CONFIG_IO_URING"),
        ] {
            let sentence = refusal_remedy(Some(errno), switch);
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
