//! Activity of the whole machine during a case: counters read before and after it, outside the timed parts.

use crate::clock::USER_HZ;
use crate::counters::Spent;
use crate::counters::snapshot::Snapshot;
use crate::platform::process::process_usage;
use crate::record::Meanwhile;
use nix::sys::resource::Usage;

/// Readings at the start of a case.
pub(super) struct Before {
    machine: Snapshot,
    own: Own,
}

/// Resources charged to this process and to the children that it has waited for (getrusage).
#[derive(Clone, Copy)]
struct Own {
    seconds: f64,
    faults: u64,
    read: u64,
    written: u64,
}

/// Bytes of a block in getrusage(2).
const BLOCK: u64 = 512;

impl Before {
    /// Reads the counters; `None` where `/proc` cannot be read.
    pub(super) fn read() -> Option<Self> {
        Some(Self { machine: Snapshot::take().ok()?, own: Own::read_usage()? })
    }

    /// The activity since.
    pub(super) fn activity_until_now(self) -> Option<Meanwhile> {
        let (own, machine) = (Own::read_usage()?, Snapshot::take().ok()?);
        Some(activity_between(&self, &Self { machine, own }))
    }
}

impl Own {
    fn read_usage() -> Option<Self> {
        let all = process_usage().ok()?;
        let sum = |field: fn(&Usage) -> i64| all.iter().map(field).sum::<i64>().max(0) as u64;
        let micros = sum(|usage| {
            let (user, system) = (usage.user_time(), usage.system_time());
            1_000_000 * (user.tv_sec() + system.tv_sec()) + user.tv_usec() + system.tv_usec()
        });
        Some(Self {
            seconds: micros as f64 / 1e6,
            faults: sum(|usage| usage.minor_page_faults() + usage.major_page_faults()),
            read: BLOCK * sum(Usage::block_reads),
            written: BLOCK * sum(Usage::block_writes),
        })
    }
}

fn activity_between(before: &Before, after: &Before) -> Meanwhile {
    let (was, is) = (&before.machine, &after.machine);
    let ticks = |field: fn(&Spent) -> u64| field(&is.all).saturating_sub(field(&was.all)) as f64 / USER_HZ;
    let busy = ticks(|s| s.user + s.nice + s.system + s.interrupts + s.soft_interrupts);
    let others = |all: u64, own: u64, own_before: u64| all.saturating_sub(own.saturating_sub(own_before));
    let faults = is.page_faults.zip(was.page_faults).map(|(now, then)| now.saturating_sub(then));
    let free = |snapshot: &Snapshot| snapshot.memory.truly_free.unwrap_or(snapshot.memory.free);
    let disks = |field: fn(&crate::counters::Traffic) -> u64| {
        let sum = |snapshot: &Snapshot| snapshot.disks.iter().map(|(_, traffic)| field(traffic)).sum::<u64>();
        sum(is).saturating_sub(sum(was))
    };
    let network = |snapshot: &Snapshot| {
        let beyond = snapshot.links.iter().filter(|(name, _)| name != "lo");
        beyond.map(|(_, link)| link.bytes_sent + link.bytes_received).sum::<u64>()
    };
    Meanwhile {
        seconds: (is.at - was.at).as_secs_f64(),
        // The tick-based sum and getrusage may differ by a few ticks in either direction.
        others_seconds: (busy - (after.own.seconds - before.own.seconds)).max(0.0),
        stolen_seconds: ticks(|s| s.stolen),
        interrupts: is.interrupts.saturating_sub(was.interrupts),
        others_faults: faults.map(|all| others(all, after.own.faults, before.own.faults)),
        free_bytes: (free(was), free(is)),
        others_disk_read: others(disks(|t| t.bytes_read), after.own.read, before.own.read),
        others_disk_written: others(disks(|t| t.bytes_written), after.own.written, before.own.written),
        network_bytes: network(is).saturating_sub(network(was)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn our_own_work_is_not_counted_as_others() {
        let (before, begun) = (Before::read().expect("/proc"), Instant::now());
        let own = || Own::read_usage().expect("getrusage").seconds;
        let worked = own();
        while own() - worked < 0.3 {
            std::hint::black_box(begun);
        }
        let least = begun.elapsed().as_secs_f64();
        let meanwhile = before.activity_until_now().expect("/proc");
        let all = meanwhile.seconds * crate::platform::process::cpus_online() as f64;
        // Our 0.3 s, counted as others', would exceed all CPU time that is left.
        assert!(meanwhile.others_seconds <= all - 0.3 + 0.1, "{meanwhile:?}");
        assert!(meanwhile.seconds >= least && meanwhile.free_bytes.0 > 0, "{least} {meanwhile:?}");
    }
}
