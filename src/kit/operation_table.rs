//! Tables of operations. A row states what proves its operation, what it should cost, and how it is prepared. A row whose
//! preparation cannot be undone runs its batches in forked children, which time themselves and report through a pipe.

use crate::kit::contract::*;
use crate::kit::kernel_call::{call_case, time_calls};
use crate::platform::child::Child;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{alarm, pipe2, write};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A row of a table.
pub struct Row {
    /// The case's name.
    pub name: &'static str,
    /// The operation in words.
    pub title: &'static str,
    /// What proves that the operation happened.
    pub proof: Proof,
    /// The predicted core cycles of hardware and software, and the reason.
    pub cycles: (f64, f64, &'static str),
    /// Prepares the operation.
    pub make: fn(&Place, Omit) -> Result<Box<dyn Subject>>,
}

/// What proves that the operation of a row happened.
#[derive(Clone, Copy)]
pub enum Proof {
    /// The operation is repeated in one bracket, and a witness sees these system calls in each iteration.
    Calls(&'static [(&'static str, i64)]),
    /// The operation is repeated in one bracket, and each batch is checked by this sentence.
    Batch(&'static str),
    /// Each operation is timed by itself, and checked by this sentence.
    Each(&'static str),
}

/// What a subject leaves out. In the self-test a liar leaves out the operation, and the check of the row must notice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omit {
    /// Nothing is left out, as in a measurement.
    Nothing,
    /// Everything but the operation happens.
    Operation,
}

/// The system calls of a row, by their constants in libc.
macro_rules! entered {
    ($($name:ident),*) => { $crate::kit::operation_table::Proof::Calls(&[$((stringify!($name), libc::$name)),*]) };
}
pub(crate) use entered;

/// A table: name, title, proof, the core cycles of hardware and software and their reason, and how it is prepared.
macro_rules! operation_rows {
    ($($name:expr, $title:expr, $proof:expr, $hardware:expr, $software:expr, $why:expr, $make:expr;)*) => { &[$(
        $crate::kit::operation_table::Row {
            name: $name, title: $title, proof: $proof, cycles: ($hardware, $software, $why), make: $make,
        }
    ),*] };
}
pub(crate) use operation_rows;

/// The cases of a table. Cases that are not among `by_default` are measured at full scale only.
pub fn table_cases(rows: &'static [Row], by_default: &[&str]) -> Vec<Case> {
    let case = |row: &'static Row| match by_default.contains(&row.name) {
        true => row.case(),
        false => row.case().need(FULL_SCALE),
    };
    rows.iter().map(case).collect()
}

impl Row {
    /// The case of this row, with its claims and its prediction.
    fn case(&'static self) -> Case {
        let set_up = self.set_up(Omit::Nothing);
        let case = match self.proof {
            Proof::Calls(calls) => {
                call_case(self.name, self.title, set_up).claim(Claim::Enters(calls.to_vec()))
            }
            // The preparation of a batch is untimed: 1.2 ms on a busy machine, where the timed part may be one call of 0.2 µs.
            Proof::Batch(sentence) => Case::new(self.name, self.title, set_up)
                .claim(Claim::Checked(sentence))
                .claim(Claim::Linear)
                .timed_share(0.002),
            Proof::Each(sentence) => {
                Case::new(self.name, self.title, set_up).one_by_one().claim(Claim::Checked(sentence))
            }
        };
        let (hardware, software, why) = self.cycles;
        case.predict(hardware, software, why)
    }

    /// The set-up of the case, or of the liar that leaves the operation out.
    pub fn set_up(&'static self, omit: Omit) -> SetUp {
        Box::new(move |place| (self.make)(place, omit))
    }
}

/// A subject that repeats a call in one bracket. The error of any call is the error of the batch.
///
/// # Errors
/// None; the type is that of [`Row::make`].
pub fn repeated(
    call: &'static str,
    mut once: impl FnMut() -> nix::Result<()> + 'static,
) -> Result<Box<dyn Subject>> {
    Ok(Box::new(move |n: u64, clock: &Clock| time_calls(call, n, clock, || answer_of(once()))))
}

/// The outcome of a check of a call's answer, in the form of a call's result.
///
/// # Errors
/// EIO if `answer` is false.
pub fn is_true(answer: bool) -> nix::Result<()> {
    if answer { Ok(()) } else { Err(Errno::EIO) }
}

/// The result in the kernel's form: 0 or a negative error number.
pub fn answer_of(result: nix::Result<()>) -> i64 {
    result.map_or_else(|errno| -i64::from(errno as i32), |()| 0)
}

/// A subject that times each operation in its own bracket, after an untimed preparation and before an untimed check.
///
/// # Errors
/// None; the type is that of [`Row::make`].
pub fn checked_each<S: 'static>(
    mut state: S,
    omit: Omit,
    mut prepare: impl FnMut(&mut S) -> Result<()> + 'static,
    mut operate: impl FnMut(&mut S) -> Result<()> + 'static,
    mut check: impl FnMut(&mut S) -> Result<()> + 'static,
) -> Result<Box<dyn Subject>> {
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let once = |state: &mut S| if omit == Omit::Nothing { operate(state) } else { Ok(()) };
        let judge =
            |state: &mut S, answer: Result<()>| answer.and_then(|()| check(state)).map(|()| Counts::Yes);
        clock.time_each(n, &mut state, &mut prepare, once, judge)
    }))
}

/// A subject that runs each batch in a fresh child, which prepares what cannot be undone, times itself, and exits.
///
/// # Errors
/// None; the type is that of [`Row::make`].
pub fn batches_in_child(batch: impl Fn(u64, &Clock) -> Result<Ticks> + 'static) -> Result<Box<dyn Subject>> {
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let ticks = time_in_child(|| batch(n, clock))?;
        Ok(clock.record_bracket(ticks))
    }))
}

/// A subject that runs each operation in a fresh child.
///
/// # Errors
/// None; the type is that of [`Row::make`].
pub fn each_in_child(once: impl Fn(&Clock) -> Result<Ticks> + 'static) -> Result<Box<dyn Subject>> {
    Ok(Box::new(move |n: u64, clock: &Clock| {
        (0..n).map(|_| Ok(clock.record_bracket(time_in_child(|| once(clock))?))).sum()
    }))
}

/// Seconds after which the kernel ends a child that hangs.
const LIMIT_SECONDS: u32 = 60;

/// Runs `batch` in a forked child and returns its answer.
///
/// # Errors
/// The error of the batch, or [`Error::Child`] if the child did not answer.
pub fn time_in_child(batch: impl FnOnce() -> Result<Ticks>) -> Result<Ticks> {
    let (from, to) = pipe2(OFlag::O_CLOEXEC).map_err(|e| Error::from_errno("pipe2", e))?;
    let child = Child::start(|| {
        alarm::set(LIMIT_SECONDS);
        // If the child cannot write its answer, the parent finds the pipe empty.
        let _ = write(&to, &encode_answer(batch()));
    })?;
    drop(to);
    let answer = read_answer(from);
    child.wait_for_success(Duration::from_secs(LIMIT_SECONDS.into()))?;
    answer
}

/// The answer as text, after a byte for its kind.
fn encode_answer(answer: Result<Ticks>) -> Vec<u8> {
    let (kind, text) = match answer {
        Ok(ticks) => ('t', ticks.0.to_string()),
        Err(error) if error.is_machine_limitation() => ('m', error.to_string()),
        Err(error @ Error::Disproved(_)) => ('d', error.to_string()),
        Err(error @ Error::Contradicted(_)) => ('c', error.to_string()),
        Err(error @ Error::Disturbed(_)) => ('b', error.to_string()),
        Err(error) => ('f', error.to_string()),
    };
    format!("{kind}{text}").into_bytes()
}

/// Reads what [`encode_answer`] has written, up to the end of the pipe.
fn read_answer(from: OwnedFd) -> Result<Ticks> {
    let mut answer = String::new();
    let read = File::from(from).read_to_string(&mut answer);
    read.map_err(|cause| Error::Kernel { call: "read of a pipe".into(), cause })?;
    let text = answer.get(1..).unwrap_or_default().to_owned();
    match answer.chars().next() {
        Some('t') => text.parse().map(Ticks).map_err(|_| Error::Child("it answered no time".into())),
        Some('m') => Err(Error::Missing(text)),
        Some('d') => Err(Error::Disproved(text)),
        Some('c') => Err(Error::Contradicted(text)),
        Some('b') => Err(Error::Disturbed(text)),
        Some(_) => Err(Error::Child(text)),
        None => Err(Error::Child("it ended without an answer".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_child_is_that_of_its_batch() {
        assert_eq!(time_in_child(|| Ok(Ticks(4711))).expect("answered"), Ticks(4711));
        let answer = |error: Error| time_in_child(|| Err(error)).expect_err("an error");
        assert!(matches!(answer(Error::Disproved("no".into())), Error::Disproved(text) if text == "no"));
        assert!(answer(Error::from_case_errno("unshare", nix::errno::Errno::EPERM)).is_machine_limitation());
        assert!(matches!(answer(Error::Contradicted("odd".into())), Error::Contradicted(_)));
        assert!(matches!(answer(Error::Disturbed("busy".into())), Error::Disturbed(_)));
        assert!(matches!(answer(Error::Usage("odd".into())), Error::Child(_)));
    }

    #[test]
    fn a_child_that_panics_is_an_error() {
        assert!(matches!(time_in_child(|| panic!("on purpose")), Err(Error::Child(_))));
    }
}
