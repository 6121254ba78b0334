//! A batch in a process of its own: a forked child prepares what a process cannot take back, times the batch, and answers
//! through a pipe.

use crate::clock::Ticks;
use crate::error::{Error, Result};
use crate::platform::child::Child;
use nix::fcntl::OFlag;
use nix::unistd::{alarm, pipe2, write};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Seconds after which the kernel ends a child that hangs.
const LIMIT_SECONDS: u32 = 60;

/// Runs `batch` in a forked child and returns its answer.
///
/// # Errors
/// That of the batch, or [`Error::Child`] if the child did not answer.
pub fn time_in_child(batch: impl FnOnce() -> Result<Ticks>) -> Result<Ticks> {
    let (from, to) = pipe2(OFlag::O_CLOEXEC).map_err(|e| Error::from_errno("pipe2", e))?;
    let child = Child::start(|| {
        alarm::set(LIMIT_SECONDS);
        // The parent sees a child that cannot answer by its silence.
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
    fn a_child_that_panics_is_no_answer() {
        assert!(matches!(time_in_child(|| panic!("on purpose")), Err(Error::Child(_))));
    }
}
