//! A token to a partner and back over a pair of channels, and the proofs that both ends slept or left the CPU for it.

use crate::kit::contract::*;
use crate::kit::ipc::{Channel, ChannelPair};
use crate::kit::kernel_call::time_until_refused;
use crate::kit::placement::{Placement, explain_refusal, partner_time_limit};
use crate::kit::watchdog::Alarm;
use crate::platform::partner::{Class, Kind, Partner};
use std::path::Path;
use std::sync::Arc;

/// Opens a channel in each direction; the path is a scratch directory.
pub type Open<C> = fn(&Path) -> ChannelPair<C>;

/// A subject whose iterations wait for partners.
pub struct Exchange<F> {
    /// The name in error messages.
    name: &'static str,
    /// An iteration. This field precedes `partners` so that it is dropped first: the partners may need that to end.
    once: F,
    partners: Vec<Partner>,
    /// How often an iteration waits for a partner; the time limit of a batch grows with it.
    waits: u64,
    alarm: Alarm,
}

impl<F: FnMut() -> i64> Exchange<F> {
    /// `once` is an iteration: it returns zero or more, or the negative error number of a call that was refused or interrupted.
    ///
    /// # Errors
    /// The kernel refuses the alarm.
    pub fn new(name: &'static str, partners: Vec<Partner>, waits: u64, once: F) -> Result<Self> {
        Ok(Self { name, once, partners, waits, alarm: Alarm::new()? })
    }
}

impl<F: FnMut() -> i64> Subject for Exchange<F> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { name, partners, waits, alarm, once } = self;
        let waits = *waits * iterations;
        #[expect(clippy::redundant_closure, reason = "it is inlined, see `take_steps` of a partner")]
        let timed = || time_until_refused(iterations, clock, || once());
        match alarm.run_with_limit(partner_time_limit(waits), timed) {
            (ticks, 0) => Ok(ticks),
            (_, refused) => Err(explain_refusal(name, refused, partners, waits)),
        }
    }

    fn report(&self) -> Report {
        Report { partners: self.partners.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

/// Sets up round trips to a partner that returns every token. `name` stands in error messages.
pub fn round_trip_set_up<C: Channel>(name: &'static str, kind: Kind, open: Open<C>, at: Placement) -> SetUp {
    set_up(move |place| {
        let channels = Arc::new(open(&place.scratch)?);
        let (theirs, nudged) = (Arc::clone(&channels), Arc::clone(&channels));
        let answer = move || match theirs[0].receive() {
            refused if refused < 0 => refused,
            _ => theirs[1].send(),
        };
        let nudge = move || _ = nudged[0].send();
        let cpu = at.partner_cpu(place)?;
        let mut partners = vec![Partner::start(kind, (cpu, Class::Ordinary), answer, nudge)?];
        partners.extend(at.start_spinners(place)?);
        Exchange::new(name, partners, 1, move || channels[0].send().min(channels[1].receive()))
    })
}

/// The claim on one CPU: each end left the CPU at least once a round trip, as it must for the other to answer.
///
/// # Errors
/// A sentence with both counts, where they are too few.
pub fn both_left_cpu(delta: &Delta, iterations: u64) -> Judged {
    let own = delta.counted.voluntary_switches + delta.counted.involuntary_switches;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_switches);
    check_both_counts("left the CPU", own, partner, iterations, 1.0)
}

/// The claim across CPUs: each end sleeps for at least half of the round trips. An end whose token has already
/// arrived does not sleep.
///
/// # Errors
/// A sentence with both counts, where they are too few.
pub fn both_slept(delta: &Delta, iterations: u64) -> Judged {
    const LEAST_SHARE: f64 = 0.5;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_voluntary);
    check_both_counts("slept", delta.counted.voluntary_switches, partner, iterations, LEAST_SHARE)
}

/// The claim that the partner has read and written every token, `EACH` in a round trip, where it does so by read(2) and write(2).
/// It is stricter than [`both_slept`], which half of the tokens satisfy. The count may lack the call that is about to
/// return.
///
/// # Errors
/// A sentence with the count, where it is too small.
pub fn partner_passed_tokens<const EACH: u64>(delta: &Delta, iterations: u64) -> Judged {
    match delta.partners.and_then(|partners| partners.fewest_transfers) {
        None => Ok("the kernel does not tell what the partner has read and written".into()),
        Some(calls) if calls + 1 < 2 * EACH * iterations => {
            Err(format!("the partner has read and written {calls} times in {iterations} round trips"))
        }
        Some(calls) => {
            Ok(format!("the partner has read and written {calls} times in {iterations} round trips"))
        }
    }
}

/// Compares the counts of both ends with `share` per round trip; `what` is the verb of the sentence.
///
/// # Errors
/// The sentence, where either count is too small.
pub fn check_both_counts(what: &str, own: u64, partner: u64, iterations: u64, share: f64) -> Judged {
    let [each, other] = [own, partner].map(|count| count as f64 / iterations as f64);
    let seen = format!(
        "the measuring end {what} {each:.2} times and its partner {other:.2} times a round trip ({iterations})"
    );
    ensure(each.min(other) >= share, || format!("{seen}: fewer than a switch to the other end needs"))?;
    Ok(format!("{seen}, both on their CPUs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ipc::Bytes;
    use crate::kit::runnable::test_place;
    use Kind::Process;
    use Placement::Same;
    use std::time::{Duration, Instant};

    #[test]
    fn a_partner_that_dies_or_hangs_ends_the_case_in_seconds() {
        let directory = tempfile::tempdir().unwrap();
        let place = test_place(directory.path(), Scale::Smoke);
        let clock = Clock::start_up();
        let mut fates = Vec::new();
        for dies in [true, false] {
            let step = move || {
                if dies {
                    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
                }
                std::thread::sleep(Duration::from_secs(60));
                0
            };
            let at = (Same.partner_cpu(&place).unwrap(), Class::Ordinary);
            let partners = vec![Partner::start(Process, at, step, || ()).unwrap()];
            let channels = Arc::new(Bytes::pipe_pair(directory.path()).unwrap());
            let once = move || channels[0].send().min(channels[1].receive());
            let begun = Instant::now();
            let error = Exchange::new("pipe", partners, 1, once).unwrap().run(10, &clock).unwrap_err();
            assert!(begun.elapsed() < Duration::from_secs(15));
            fates.push(error.to_string());
        }
        assert_eq!(fates[0], "pipe: the partner was killed by SIGKILL");
        assert!(fates[1].starts_with("pipe: the partner has not answered for 2 s"), "{fates:?}");
    }

    #[test]
    fn a_partner_that_has_not_read_every_token_is_caught() {
        let judged = |calls| {
            let partners = crate::clock::PartnerReport { fewest_transfers: calls, ..Default::default() };
            let delta = Delta { partners: Some(partners), ..Delta::default() };
            [partner_passed_tokens::<1>(&delta, 100), partner_passed_tokens::<10>(&delta, 10)]
        };
        let judged = |calls| judged(calls).into_iter().collect::<std::result::Result<Vec<_>, _>>();
        assert!(judged(Some(200)).is_ok() && judged(Some(199)).is_ok() && judged(None).is_ok());
        assert!(judged(Some(180)).is_err());
    }

    #[test]
    fn an_end_that_did_not_leave_the_cpu_is_caught() {
        let mut delta = Delta::default();
        delta.counted.voluntary_switches = 100;
        let partners =
            crate::clock::PartnerReport { fewest_switches: 3, fewest_voluntary: 3, ..Default::default() };
        delta.partners = Some(partners);
        for claim in [both_left_cpu, both_slept] {
            assert!(claim(&delta, 100).unwrap_err().contains("partner 0.03 times"));
        }
        delta.partners =
            Some(crate::clock::PartnerReport { fewest_switches: 100, fewest_voluntary: 100, ..partners });
        assert!(both_left_cpu(&delta, 100).is_ok() && both_slept(&delta, 100).is_ok());
        assert!(both_left_cpu(&delta, 101).is_err());
    }
}
