//! Where a partner runs, and whether its CPU may enter an idle state. Both are part of the id of every case with a
//! partner: the same round trip costs 25 times as much across two sleeping CPUs as on one.

use crate::kit::contract::*;
use crate::platform::cpu;
use crate::platform::partner::{Class, Partner, start_spinner};
use nix::errno::Errno;
use std::time::Duration;

/// Where the partner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the measuring CPU.
    Same,
    /// On another CPU; both may enter an idle state while their tasks wait.
    Cross,
    /// On another CPU, and a task of the idle class keeps each of the two out of idle states.
    Awake,
}

impl Placement {
    /// The last part of the case's id.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same-cpu",
            Self::Cross => "cross-cpu",
            Self::Awake => "cross-cpu-awake",
        }
    }

    /// The last part of the case's title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Same => "on one CPU",
            Self::Cross => "across two CPUs",
            Self::Awake => "across two CPUs kept awake",
        }
    }

    /// Adds the needs of this placement to a case.
    pub fn add_needs(self, case: Case) -> Case {
        let case = case.need(PINNED);
        if self == Self::Same { case } else { case.need(TWO_CPUS) }
    }

    /// The partner's CPU.
    ///
    /// # Errors
    /// [`Error::Missing`] without one.
    pub fn partner_cpu(self, place: &Place) -> Result<usize> {
        let cpu = if self == Self::Same { place.cpus.here } else { place.cpus.others.first().copied() };
        cpu.ok_or_else(|| Error::Missing(format!("there is no CPU for a partner {}", self.title())))
    }

    /// The tasks that keep the CPUs awake: two for [`Placement::Awake`], else none.
    ///
    /// # Errors
    /// [`Error::Missing`] without the CPUs; the kernel refuses a task.
    pub fn start_spinners(self, place: &Place) -> Result<Vec<Partner>> {
        if self != Self::Awake {
            return Ok(Vec::new());
        }
        let cpus = [Self::Same.partner_cpu(place)?, self.partner_cpu(place)?];
        cpus.into_iter().map(|cpu| start_spinner(cpu, Class::Idle)).collect()
    }
}

/// Wraps a partner's step: before the first one, the partner drops its binding to the CPU on which it was started.
pub fn roaming(mut step: impl FnMut() -> i64 + Send + 'static) -> impl FnMut() -> i64 + Send + 'static {
    let mut is_free = false;
    move || {
        if !is_free {
            // If this fails because a CPU was taken away meanwhile, the partner stays on its CPU.
            let _ = cpu::allow_cpus(cpu::initial_cpus());
            is_free = true;
        }
        step()
    }
}

/// The time after which the partner of a batch counts as hung: two seconds, and 2 ms for each of the first 10,000 round
/// trips, which is a hundred times what one takes.
pub fn partner_time_limit(iterations: u64) -> Duration {
    const ALWAYS: Duration = Duration::from_secs(2);
    ALWAYS + Duration::from_millis(2 * iterations.min(10_000))
}

/// The negative error number for a reply that does not match the message that was sent.
pub const NOT_THE_MESSAGE: i64 = -(libc::EBADMSG as i64);

/// The error behind a negative answer in the timed loop: [`Error::Disproved`] where a partner has ended,
/// [`Error::Disturbed`] where it does not answer, and otherwise the kernel's refusal.
pub fn explain_refusal(name: &str, answer: i64, partners: &mut [Partner], iterations: u64) -> Error {
    // Polls, 1 ms apart: a partner's connection closes shortly before the partner itself ends.
    const POLLS: u32 = 100;
    let errno = Error::decode_errno(answer);
    if answer == NOT_THE_MESSAGE {
        return Error::Disproved(format!(
            "{name}: an answer was not the message that was sent: another process has this address"
        ));
    }
    let has_closed = [Errno::EPIPE, Errno::ECONNRESET].contains(&errno);
    for _ in 0..if has_closed { POLLS } else { 1 } {
        if let Some(fate) = partners.iter_mut().find_map(Partner::fate) {
            return fate.into_error(&format!("{name}: "));
        }
        std::thread::sleep(Duration::from_millis(u64::from(has_closed)));
    }
    if [Errno::EINTR, Errno::ETIMEDOUT].contains(&errno) {
        let seconds = partner_time_limit(iterations).as_secs();
        return Error::Disturbed(format!(
            "{name}: the partner has not answered for {seconds} s; it hangs, or others have its CPU"
        ));
    }
    Error::from_errno(format!("{name}, in the timed loop"), errno)
}
