//! A token to a partner and back, and the proof that both ends slept or left the CPU for it.

use crate::Result;
use crate::case::{Place, Report, SetUp, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::kit::alarm::Alarm;
use crate::kit::ipc::{Both, Line};
use crate::kit::placement::{Placement, patience, refused};
use crate::platform::partner::{Class, Kind, Partner, Task};
use std::path::Path;
use std::sync::Arc;

/// How both directions of a line are opened.
pub type Open<L> = fn(&Path) -> Both<L>;

/// The live thing: the lines and who is at their other end.
struct PingPong<L> {
    name: &'static str,
    /// The partner first, then who keeps the CPUs awake.
    partners: Vec<Partner>,
    lines: Arc<[L; 2]>,
    alarm: Alarm,
}

pub fn round_trip<L: Line>(name: &'static str, kind: Kind, open: Open<L>, placement: Placement) -> SetUp {
    Box::new(move |place: &Place| {
        let lines = Arc::new(open(&place.scratch)?);
        let (theirs, nudged) = (Arc::clone(&lines), Arc::clone(&lines));
        let answer = move || match theirs[0].receive() {
            refused if refused < 0 => refused,
            _ => theirs[1].send(),
        };
        let nudge = move || _ = nudged[0].send();
        let at = (placement.cpu(place)?, Class::Ordinary);
        let mut partners = vec![Partner::start(kind, at, answer, nudge)?];
        partners.extend(placement.spinners(place)?);
        Ok(Box::new(PingPong { name, partners, lines, alarm: Alarm::new()? }) as Box<dyn Subject>)
    })
}

impl<L: Line> Subject for PingPong<L> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let [there, back] = &*self.lines;
        let mut answer = 0;
        let ticks = self.alarm.watch(patience(iterations), || {
            clock.time(|| {
                for _ in 0..iterations {
                    answer = there.send().min(back.receive());
                    if answer < 0 {
                        break;
                    }
                }
            })
        });
        if answer < 0 {
            return Err(refused(self.name, answer, &mut self.partners, iterations));
        }
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report { partners: self.partners.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

/// On one CPU nobody can be answered without leaving it.
pub fn both_left(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    let own = delta.counted.voluntary_switches + delta.counted.involuntary_switches;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_switches);
    enough("left the CPU", own, partner, iterations, 1.0)
}

/// Across CPUs an end that finds its answer at once does not sleep. Each must for most round trips.
pub fn both_slept(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    const MOST: f64 = 0.5;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_voluntary);
    enough("slept", delta.counted.voluntary_switches, partner, iterations, MOST)
}

pub fn enough(
    what: &str,
    own: u64,
    partner: u64,
    iterations: u64,
    share: f64,
) -> std::result::Result<String, String> {
    let [each, other] = [own, partner].map(|count| count as f64 / iterations as f64);
    let seen = format!(
        "the measuring end {what} {each:.2} times and its partner {other:.2} times a round trip ({iterations})"
    );
    if each.min(other) < share {
        return Err(format!("{seen}: fewer than a switch to the other end needs"));
    }
    Ok(format!("{seen}, both on their CPUs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Cpus, Scale};
    use crate::kit::ipc::Bytes;
    use Kind::Process;
    use Placement::Same;
    use std::time::{Duration, Instant};

    fn place(scratch: &Path) -> Place {
        Place { scratch: scratch.to_path_buf(), scale: Scale::Smoke, cpus: Cpus::expected() }
    }

    #[test]
    fn a_partner_that_dies_or_hangs_ends_the_case_in_seconds() {
        let directory = tempfile::tempdir().unwrap();
        let place = place(directory.path());
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
            let at = (Same.cpu(&place).unwrap(), Class::Ordinary);
            let partners = vec![Partner::start(Process, at, step, || ()).unwrap()];
            let lines = Arc::new(Bytes::pipes(directory.path()).unwrap());
            let alarm = Alarm::new().unwrap();
            let begun = Instant::now();
            let error = PingPong { name: "pipe", partners, lines, alarm }.run(10, &clock).unwrap_err();
            assert!(begun.elapsed() < Duration::from_secs(15));
            fates.push(error.to_string());
        }
        assert_eq!(fates[0], "pipe: the partner was killed by SIGKILL");
        assert!(fates[1].starts_with("pipe: the partner has not answered for 2 s"), "{fates:?}");
    }

    #[test]
    fn an_end_that_did_not_leave_the_cpu_is_caught() {
        let mut delta = Delta::default();
        delta.counted.voluntary_switches = 100;
        let partners =
            crate::clock::PartnerReport { fewest_switches: 3, fewest_voluntary: 3, ..Default::default() };
        delta.partners = Some(partners);
        for claim in [both_left, both_slept] {
            assert!(claim(&delta, 100).unwrap_err().contains("partner 0.03 times"));
        }
        delta.partners =
            Some(crate::clock::PartnerReport { fewest_switches: 100, fewest_voluntary: 100, ..partners });
        assert!(both_left(&delta, 100).is_ok() && both_slept(&delta, 100).is_ok());
        assert!(both_left(&delta, 101).is_err());
    }
}
