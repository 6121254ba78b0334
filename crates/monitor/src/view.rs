//! Shares and rates between two snapshots.

use serde::Serialize;
use std::time::Duration;
use syscost_counters::pressure::{Pressed, Resource, Stalled};
use syscost_counters::snapshot::{Memory, Missing, Snapshot};
use syscost_counters::{Link, Spent, Traffic};

/// The machine between two snapshots.
#[derive(Clone, Debug)]
pub struct View {
    /// The time between the snapshots.
    pub window: Duration,
    /// Shares of all CPUs; `None` if no tick has passed.
    pub all: Option<Shares>,
    /// Shares of each CPU that was online in both snapshots.
    pub cpus: Vec<(usize, Shares)>,
    /// Interrupts per second.
    pub interrupts: Option<f64>,
    /// Context switches per second.
    pub context_switches: Option<f64>,
    /// Tasks created per second.
    pub created: Option<f64>,
    /// Page faults per second.
    pub page_faults: Option<f64>,
    /// Major page faults per second.
    pub major_faults: Option<f64>,
    /// Shares of time for which tasks were stalled, for each resource.
    pub pressure: Vec<(Resource, Stall)>,
    /// Memory in the second snapshot.
    pub memory: Memory,
    /// Interfaces that both snapshots contain, the busiest first.
    pub links: Vec<(String, LinkRate)>,
    /// Disks that both snapshots contain, the busiest first.
    pub disks: Vec<(String, DiskRate)>,
    /// Values that could not be read.
    pub missing: Vec<Missing>,
}

/// Shares of CPU time, percent, by the ticks of the timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Shares {
    /// Share that was neither idle nor waiting for a device.
    pub busy_percent: f64,
    /// Share in user space.
    pub user_percent: f64,
    /// Share in the kernel, without interrupts.
    pub system_percent: f64,
    /// Share in hard and soft interrupts.
    pub interrupts_percent: f64,
    /// Share that the hypervisor gave to other guests.
    pub stolen_percent: f64,
    /// Share that was idle while a task waited for a device.
    pub waiting_percent: f64,
}

/// Shares of the time for which tasks were stalled, percent; `None` if the kernel does not measure it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stall {
    /// Share for which at least one task was stalled.
    pub some_percent: Option<f64>,
    /// Share for which all tasks were stalled.
    pub full_percent: Option<f64>,
}

/// Traffic of an interface per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LinkRate {
    /// Bytes sent per second.
    pub sent_bytes_per_second: f64,
    /// Bytes received per second.
    pub received_bytes_per_second: f64,
    /// Packets sent per second.
    pub sent_packets_per_second: f64,
    /// Packets received per second.
    pub received_packets_per_second: f64,
}

/// Operations and bytes of a disk per second, and its utilisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DiskRate {
    /// Reads per second.
    pub reads_per_second: f64,
    /// Bytes read per second.
    pub read_bytes_per_second: f64,
    /// Writes per second.
    pub writes_per_second: f64,
    /// Bytes written per second.
    pub written_bytes_per_second: f64,
    /// Share of the time with a request in flight, percent, by the ticks of the timer.
    pub busy_percent: f64,
}

impl View {
    /// Compares two snapshots.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let window = after.at.saturating_duration_since(before.at);
        let rate = |before: u64, after: u64| per_second(before, after, window);
        let both = |before: Option<u64>, after: Option<u64>| rate(before?, after?);
        let cpus = after.cpus.iter().filter_map(|(cpu, spent)| {
            let (_, earlier) = before.cpus.iter().find(|(other, _)| other == cpu)?;
            Some((*cpu, Shares::between(earlier, spent)?))
        });
        Self {
            window,
            all: Shares::between(&before.all, &after.all),
            cpus: cpus.collect(),
            interrupts: rate(before.interrupts, after.interrupts),
            context_switches: rate(before.context_switches, after.context_switches),
            created: rate(before.created, after.created),
            page_faults: both(before.page_faults, after.page_faults),
            major_faults: both(before.major_faults, after.major_faults),
            pressure: after
                .pressure
                .iter()
                .filter_map(|now| Stall::between(&before.pressure, now, window))
                .collect(),
            memory: after.memory,
            links: busiest_first(
                &before.links,
                &after.links,
                |b, a| LinkRate::between(b, a, window),
                |rate| rate.sent_bytes_per_second + rate.received_bytes_per_second,
            ),
            disks: busiest_first(
                &before.disks,
                &after.disks,
                |b, a| DiskRate::between(b, a, window),
                |rate| rate.read_bytes_per_second + rate.written_bytes_per_second,
            ),
            missing: after.missing.clone(),
        }
    }
}

impl Shares {
    fn between(before: &Spent, after: &Spent) -> Option<Self> {
        let grown = |field: fn(&Spent) -> u64| field(after).saturating_sub(field(before)) as f64;
        let (user, nice, system) = (grown(|s| s.user), grown(|s| s.nice), grown(|s| s.system));
        let (idle, waiting, stolen) = (grown(|s| s.idle), grown(|s| s.waiting), grown(|s| s.stolen));
        let interrupts = grown(|s| s.interrupts) + grown(|s| s.soft_interrupts);
        let all = user + nice + system + interrupts + stolen + idle + waiting;
        let share = |part: f64| 100.0 * part / all;
        (all > 0.0).then(|| Self {
            busy_percent: share(all - idle - waiting),
            user_percent: share(user + nice),
            system_percent: share(system),
            interrupts_percent: share(interrupts),
            stolen_percent: share(stolen),
            waiting_percent: share(waiting),
        })
    }
}

impl Stall {
    fn between(
        before: &[(Resource, Pressed)],
        (resource, now): &(Resource, Pressed),
        window: Duration,
    ) -> Option<(Resource, Self)> {
        let (_, then) = before.iter().find(|(other, _)| other == resource)?;
        let share = |then: Option<Stalled>, now: Option<Stalled>| {
            let stalled = now?.total.saturating_sub(then?.total);
            Some(100.0 * stalled.as_secs_f64() / window.as_secs_f64().max(1e-9))
        };
        let (some_percent, full_percent) = (share(then.some, now.some), share(then.full, now.full));
        Some((*resource, Self { some_percent, full_percent }))
    }
}

impl LinkRate {
    fn between(before: &Link, after: &Link, window: Duration) -> Option<Self> {
        let rate = |field: fn(&Link) -> u64| per_second(field(before), field(after), window);
        Some(Self {
            sent_bytes_per_second: rate(|l| l.bytes_sent)?,
            received_bytes_per_second: rate(|l| l.bytes_received)?,
            sent_packets_per_second: rate(|l| l.packets_sent)?,
            received_packets_per_second: rate(|l| l.packets_received)?,
        })
    }
}

impl DiskRate {
    fn between(before: &Traffic, after: &Traffic, window: Duration) -> Option<Self> {
        let rate = |field: fn(&Traffic) -> u64| per_second(field(before), field(after), window);
        let busy = after.busy.checked_sub(before.busy)?;
        Some(Self {
            // A tick that ends in the window may have begun before it, so the share is limited to 100 %.
            busy_percent: (100.0 * busy.as_secs_f64() / window.as_secs_f64().max(1e-9)).min(100.0),
            reads_per_second: rate(|t| t.reads)?,
            read_bytes_per_second: rate(|t| t.bytes_read)?,
            writes_per_second: rate(|t| t.writes)?,
            written_bytes_per_second: rate(|t| t.bytes_written)?,
        })
    }
}

/// A rate; `None` if the count decreased, as after the replacement of a device.
fn per_second(before: u64, after: u64, window: Duration) -> Option<f64> {
    Some(after.checked_sub(before)? as f64 / window.as_secs_f64().max(1e-9))
}

fn busiest_first<T, R: Copy>(
    before: &[(String, T)],
    after: &[(String, T)],
    rate: impl Fn(&T, &T) -> Option<R>,
    weight: impl Fn(&R) -> f64,
) -> Vec<(String, R)> {
    let rates = after.iter().filter_map(|(name, now)| {
        let (_, earlier) = before.iter().find(|(other, _)| other == name)?;
        Some((name.clone(), rate(earlier, now)?))
    });
    let mut rates: Vec<_> = rates.collect();
    rates.sort_by(|a, b| weight(&b.1).total_cmp(&weight(&a.1)));
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_refer_to_the_sum_of_all_ticks() {
        let before = Spent { user: 10, idle: 100, ..Spent::default() };
        let after = Spent { user: 30, idle: 160, stolen: 10, soft_interrupts: 10, ..Spent::default() };
        let shares = Shares::between(&before, &after).expect("ticks passed");
        let expected = Shares {
            busy_percent: 40.0,
            user_percent: 20.0,
            system_percent: 0.0,
            interrupts_percent: 10.0,
            stolen_percent: 10.0,
            waiting_percent: 0.0,
        };
        assert_eq!(shares, expected);
        assert_eq!(Shares::between(&before, &before), None, "no tick, no share");
    }

    #[test]
    fn the_busiest_is_first_and_a_new_device_is_left_out() {
        let traffic = |bytes_read| Traffic { bytes_read, ..Traffic::default() };
        let before = [("a".to_owned(), traffic(0)), ("b".to_owned(), traffic(0))];
        let after = [
            ("a".to_owned(), traffic(512)),
            ("b".to_owned(), traffic(1024)),
            ("c".to_owned(), traffic(9999)),
        ];
        let second = Duration::from_secs(1);
        let rates = busiest_first(
            &before,
            &after,
            |b, a| DiskRate::between(b, a, second),
            |rate| rate.read_bytes_per_second,
        );
        assert_eq!(rates.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(rates[0].1.read_bytes_per_second, 1024.0);
        let back = busiest_first(
            &after,
            &before,
            |b, a| DiskRate::between(b, a, second),
            |rate| rate.read_bytes_per_second,
        );
        assert!(back.is_empty(), "counts that went back tell nothing");
    }

    #[test]
    fn a_disk_is_busy_for_the_share_of_its_ticks_in_the_window() {
        let busy = |ms| Traffic { busy: Duration::from_millis(ms), ..Traffic::default() };
        let percent = |before, after, window| {
            let rate = DiskRate::between(&busy(before), &busy(after), Duration::from_millis(window));
            rate.map(|rate| rate.busy_percent)
        };
        assert_eq!(percent(1_000, 1_250, 500), Some(50.0));
        assert_eq!(percent(1_000, 1_504, 500), Some(100.0), "a tick too many");
        assert_eq!(percent(1_000, 0, 500), None, "another disk");
    }
}
