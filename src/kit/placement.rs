//! Where a partner runs, and whether its CPU may fall asleep: part of the id of every case that has one, since
//! the same round trip costs 25 times as much across two sleeping CPUs as on one.

use crate::case::need::{PINNED, TWO_CPUS};
use crate::case::{Case, Place};
use crate::platform::partner::{Class, Partner, spinner};
use crate::{Error, Result};
use nix::errno::Errno;
use std::time::Duration;

/// Where the partner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the measuring CPU.
    Same,
    /// On another, and both may sleep while they wait.
    Cross,
    /// On another, and a task of the idle class keeps each of the two from falling asleep.
    Awake,
}

impl Placement {
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same-cpu",
            Self::Cross => "cross-cpu",
            Self::Awake => "cross-cpu-awake",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "on one CPU",
            Self::Cross => "across two CPUs",
            Self::Awake => "across two CPUs kept awake",
        }
    }

    /// Adds what such a case needs.
    pub fn needed(self, case: Case) -> Case {
        let case = case.need(PINNED);
        if self == Self::Same { case } else { case.need(TWO_CPUS) }
    }

    /// The partner's CPU.
    pub fn cpu(self, place: &Place) -> Result<usize> {
        let cpu = if self == Self::Same { place.cpus.here } else { place.cpus.others.first().copied() };
        cpu.ok_or_else(|| Error::Usage(format!("there is no CPU for a partner {}", self.words())))
    }

    /// Who keeps the CPUs awake.
    pub fn spinners(self, place: &Place) -> Result<Vec<Partner>> {
        if self != Self::Awake {
            return Ok(Vec::new());
        }
        let cpus = [Self::Same.cpu(place)?, self.cpu(place)?];
        cpus.into_iter().map(|cpu| spinner(cpu, Class::Idle)).collect()
    }
}

/// After so long nobody answers any more: a fifth of a second for every hundred round trips is a hundred times
/// what they take, and shorter than any case may last.
pub fn patience(iterations: u64) -> Duration {
    const ALWAYS: Duration = Duration::from_secs(2);
    ALWAYS + Duration::from_millis(2 * iterations.min(10_000))
}

/// Why a call in the timed loop was refused or interrupted: because a partner has ended, or does not answer.
pub fn refused(name: &str, answer: i64, partners: &mut [Partner], iterations: u64) -> Error {
    if let Some(fate) = partners.iter_mut().find_map(Partner::fate) {
        return Error::Usage(format!("{name}: {fate}"));
    }
    let errno = Error::errno(answer);
    if [Errno::EINTR, Errno::ETIMEDOUT].contains(&errno) {
        let seconds = patience(iterations).as_secs();
        return Error::Usage(format!(
            "{name}: the partner has not answered for {seconds} s; it hangs, or others have its CPU"
        ));
    }
    Error::refused(format!("{name}, in the timed loop"), errno)
}
