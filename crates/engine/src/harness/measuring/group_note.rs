//! The messages of a measuring process about itself: its group, its clock, and notes on both.

use crate::case::{Group, Scale};
use crate::clock::{Clock, USER_HZ};
use crate::counters::Spent;
use crate::counters::snapshot::Snapshot;
use crate::driver::{Assignment, Message, Sender, open_counter};
use crate::environment::Accounting;
use crate::error::Result;
use crate::platform::cpu;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::process::{cpu_time_us, process_usage};
use crate::record::quantity::{DISPLACED, NANOSECONDS, is_time_unit};
use crate::record::{ClockRun, GroupRun, Meanwhile};
use crate::trial::{self, CaseEnd};
use nix::sys::resource::Usage;
use std::sync::{Mutex, PoisonError};

/// Notes that hold for the whole run.
fn run_notes(assignment: &Assignment) -> Vec<String> {
    let (mut notes, unit) = (Vec::new(), assignment.unit.as_str());
    if assignment.scale == Scale::Smoke {
        notes.push(
            "smoke scale: few samples and small parameters, cold is not cold; no number to keep".into(),
        );
    }
    if unit == DISPLACED {
        notes.extend(Accounting::read(&KernelFiles::live()).setting_sentences());
    } else if open_counter(unit).is_ok_and(|counter| counter.user_space_only) {
        notes.push(format!("{unit} are counted in user space only: perf_event_paranoid keeps the kernel's"));
    }
    notes
}

/// Returns the record of the group, still without cases, with notes on the clock and the run.
pub(super) fn prepare_group_run(
    group: &Group,
    clock: &Clock,
    cpu: Option<usize>,
    mut notes: Vec<String>,
    assignment: &Assignment,
) -> GroupRun {
    notes.extend(run_notes(assignment));
    if let Some(reason) = clock.unfit_reason() {
        notes.push(format!("measured by {} because {reason}", clock.source()));
    }
    let step_ns = clock.step_ns();
    if assignment.unit == NANOSECONDS && step_ns >= 2.0 && (group.cases)().iter().any(|case| case.one_by_one)
    {
        notes.push(format!(
            "the counter moves in steps of {step_ns:.2} ns: single operations are multiples of it"
        ));
    }
    notes.extend(coarse_clock_note(clock).filter(|_| is_time_unit(&assignment.unit)));
    if let Some(ppm) = clock.calibration().published_error_ppm().filter(|ppm| ppm.abs() > 500.0) {
        notes.push(format!("the clock's measured frequency differs from the published one by {ppm:.0} ppm"));
    }
    GroupRun {
        name: group.name.into(),
        version: group.version_of_copies(assignment.copy.as_ref().map_or(1, |copy| copy.cpus.len())),
        clock: describe_clock(clock),
        cpu,
        notes,
        ..GroupRun::default()
    }
}

/// A note on a kernel's clock that moves in steps of half a microsecond or more.
fn coarse_clock_note(clock: &Clock) -> Option<String> {
    const NOTED_NS: u64 = 500;
    let step_ns = clock.kernel_step_ns();
    let what = match clock.unfit_reason() {
        None => {
            format!("the counter's frequency is known to ±{:.0} ppm", clock.calibration().uncertainty_ppm)
        }
        Some(_) => {
            "batches are as long as hundreds of them, and single operations are multiples of one".into()
        }
    };
    (step_ns >= NOTED_NS).then(|| format!("the kernel's clock moves in steps of {step_ns} ns: {what}"))
}

/// The clock as the record keeps it.
fn describe_clock(clock: &Clock) -> ClockRun {
    ClockRun {
        source: clock.source().into(),
        hz: clock.hz(),
        uncertainty_ppm: clock.calibration().uncertainty_ppm,
        step: clock.calibration().step,
        hz_at_end: None,
        published: clock.calibration().published.clone(),
        unfit: clock.unfit_reason().map(ToString::to_string),
        disputed: None, // the driver has compared the clocks
    }
}

/// Verifies the clock and sends the last message.
pub(super) fn send_verified_clock(clock: &Clock, sender: &mut Sender) -> Result<()> {
    let mut facts = describe_clock(clock);
    match clock.verify_frequency() {
        Ok(hz) => facts.hz_at_end = Some(hz),
        Err(reason) => sender.send(&Message::Note(format!("the clock cannot be trusted: {reason}")))?,
    }
    sender.send(&Message::End(facts))
}

// Records the message of a case's panic, which belongs into the record and not on the terminal.

/// The message of the last panic.
static MESSAGE: Mutex<String> = Mutex::new(String::new());

/// Installs a panic hook: from now on a panic is recorded and not printed.
pub(super) fn record_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.to_string().replace('\n', " ");
        *MESSAGE.lock().unwrap_or_else(PoisonError::into_inner) = message;
    }));
}

/// Why a case unwound: its own [`CaseEnd`], or a panic.
pub(super) fn case_end_from_payload(payload: Box<dyn std::any::Any + Send>) -> CaseEnd {
    match payload.downcast::<CaseEnd>() {
        Ok(end) => *end,
        Err(_) => CaseEnd::Failed(last_message()),
    }
}

/// The message of the last panic, with its place in the source.
pub(super) fn last_message() -> String {
    MESSAGE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

// A CPU and memory of its own for a measuring process.

/// Claims a CPU, pins the process to it and prepares its memory. Each failure becomes a note, because the numbers stay valid.
pub(super) fn claim_cpu_and_memory() -> (Option<cpu::Claimed>, Vec<String>) {
    let mut notes = Vec::new();
    let claimed = cpu::claim_cpu().filter(|claimed| match cpu::pin_and_verify(claimed.cpu) {
        Ok(()) => true,
        Err(error) => {
            notes.push(format!("not pinned to a CPU: {error}"));
            false
        }
    });
    if claimed.is_none() && notes.is_empty() {
        notes.push("not pinned to a CPU: none could be claimed for this run alone".into());
    }
    notes.extend(trial::prepare_memory());
    (claimed, notes)
}

// Activity of the whole machine during a case: counters read before and after it, outside the timed parts.

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

    /// The activity of the machine since these readings; `None` where `/proc` cannot be read.
    pub(super) fn activity_until_now(self) -> Option<Meanwhile> {
        let (own, machine) = (Own::read_usage()?, Snapshot::take().ok()?);
        Some(activity_between(&self, &Self { machine, own }))
    }
}

impl Own {
    fn read_usage() -> Option<Self> {
        let all = process_usage().ok()?;
        let sum = |field: fn(&Usage) -> i64| all.iter().map(field).sum::<i64>().max(0) as u64;
        Some(Self {
            seconds: all.iter().map(cpu_time_us).sum::<u64>() as f64 / 1e6,
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
        // If our 0.3 s were counted as others', the sum would exceed all CPU time that is left.
        assert!(meanwhile.others_seconds <= all - 0.3 + 0.1, "{meanwhile:?}");
        assert!(meanwhile.seconds >= least && meanwhile.free_bytes.0 > 0, "{least} {meanwhile:?}");
    }
}
