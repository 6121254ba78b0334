//! The page for Prometheus: its text format, or OpenMetrics 1.0 on request; and the metric families in it.
//!
//! Names follow Prometheus' conventions: base units, and the suffix `_total` for counters. A value that could not be read is
//! left out, and `syscost_reading_missing` names it.
//!
//! Source: prometheus.io, "Metric and label naming".

use std::time::{Duration, Instant};
use syscost_counters::pressure::{Pressed, Resource, Stalled};
use syscost_counters::snapshot::Snapshot;
use syscost_counters::{Fault, Link, Process, Spent, Traffic};
use syscost_engine::render::metric_page::{MetricFamily, MetricFormat, MetricKind, MetricPage, Sample};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::proc::USER_HZ;

/// The data of a page.
#[derive(Debug)]
pub struct Scene {
    /// The counters of the machine.
    pub snapshot: Snapshot,
    /// The time that the reading of the counters took.
    pub took: Duration,
    /// CPU time of the monitor.
    pub own_cpu: Duration,
    /// Resident set of the monitor, bytes.
    pub own_resident: u64,
    /// Open descriptors of the monitor.
    pub own_descriptors: u64,
}

impl Scene {
    /// Reads the machine and the monitor itself.
    ///
    /// # Errors
    /// The errors of [`Snapshot::take`].
    pub fn capture(own: &Process) -> Result<Self, Fault> {
        let begun = Instant::now();
        let snapshot = Snapshot::take()?;
        Ok(Self {
            took: begun.elapsed(),
            own_cpu: own.cpu_time()?.value,
            own_resident: own.resident()?.value,
            own_descriptors: std::fs::read_dir("/proc/self/fd")
                .map_or(0, |entries| entries.count() as u64 - 1),
            snapshot,
        })
    }
}

/// Writes the page in this format.
pub fn render_page(scene: &Scene, format: MetricFormat) -> String {
    let mut page = MetricPage::new(format);
    for Family { head, samples } in FAMILIES {
        let samples = samples(scene);
        if !samples.is_empty() {
            page.add_family(head, samples);
        }
    }
    page.finish()
}

/// A metric family: name, help text, type and samples.
pub(super) struct Family {
    pub(super) head: MetricFamily<'static>,
    pub(super) samples: fn(&Scene) -> Vec<Sample>,
}

const fn counter(name: &'static str, help: &'static str, samples: fn(&Scene) -> Vec<Sample>) -> Family {
    Family { head: MetricFamily { name, kind: MetricKind::Counter, help }, samples }
}

const fn gauge(name: &'static str, help: &'static str, samples: fn(&Scene) -> Vec<Sample>) -> Family {
    Family { head: MetricFamily { name, kind: MetricKind::Gauge, help }, samples }
}

/// All families, in the order of the page.
pub(super) const FAMILIES: &[Family] = &[
    gauge("syscost_build_info", "Version of the monitor.", |_| {
        vec![Sample::new(vec![("version", env!("CARGO_PKG_VERSION").into())], 1)]
    }),
    gauge("syscost_kernel_info", "Release of the running kernel.", |_| {
        let release = KernelFiles::live().kernel_release().unwrap_or_default();
        vec![Sample::new(vec![("release", release)], 1)]
    }),
    gauge("syscost_boot_time_seconds", "When the kernel was started, in seconds since 1970.", |s| {
        single_sample(s.snapshot.booted)
    }),
    gauge("syscost_cpus_online", "CPUs that are online.", |s| single_sample(s.snapshot.cpus.len() as u64)),
    counter("syscost_cpu_seconds", "What each CPU did, as the ticks of the timer saw it.", cpu_samples),
    counter("syscost_interrupts", "Interrupts served.", |s| single_sample(s.snapshot.interrupts)),
    counter("syscost_context_switches", "Context switches.", |s| single_sample(s.snapshot.context_switches)),
    counter("syscost_forks", "Processes and threads created.", |s| single_sample(s.snapshot.created)),
    counter("syscost_page_faults", "Page faults.", |s| sample_if_known(s.snapshot.page_faults)),
    counter("syscost_major_page_faults", "Page faults that waited for a device.", |s| {
        sample_if_known(s.snapshot.major_faults)
    }),
    gauge("syscost_memory_size_bytes", "Physical memory that the kernel manages.", |s| {
        single_sample(s.snapshot.memory.total)
    }),
    gauge("syscost_memory_free_bytes", "Memory that no list of the kernel's counts as used.", |s| {
        single_sample(s.snapshot.memory.free)
    }),
    gauge("syscost_memory_truly_free_bytes", "Free memory with what lies in the lists of each CPU.", |s| {
        sample_if_known(s.snapshot.memory.truly_free)
    }),
    gauge(
        "syscost_memory_available_bytes",
        "Memory that programs could have, as the kernel estimates it.",
        |s| sample_if_known(s.snapshot.memory.available),
    ),
    counter(
        "syscost_pressure_some_seconds",
        "Time in which some work stood still for want of a resource.",
        |s| stall_samples(s, |pressed| pressed.some),
    ),
    counter(
        "syscost_pressure_full_seconds",
        "Time in which all work stood still for want of a resource.",
        |s| stall_samples(s, |pressed| pressed.full),
    ),
    counter("syscost_network_transmit_bytes", "Bytes sent, headers included.", |s| {
        link_samples(s, |l| l.bytes_sent)
    }),
    counter("syscost_network_receive_bytes", "Bytes received, headers included.", |s| {
        link_samples(s, |l| l.bytes_received)
    }),
    counter("syscost_network_transmit_packets", "Packets sent.", |s| link_samples(s, |l| l.packets_sent)),
    counter("syscost_network_receive_packets", "Packets received.", |s| {
        link_samples(s, |l| l.packets_received)
    }),
    counter("syscost_disk_reads_completed", "Reads completed.", |s| disk_samples(s, |t| t.reads)),
    counter("syscost_disk_read_bytes", "Bytes read.", |s| disk_samples(s, |t| t.bytes_read)),
    counter("syscost_disk_writes_completed", "Writes completed.", |s| disk_samples(s, |t| t.writes)),
    counter("syscost_disk_written_bytes", "Bytes written.", |s| disk_samples(s, |t| t.bytes_written)),
    counter(
        "syscost_disk_busy_seconds",
        "Time with a request under way, as the ticks of the timer saw it.",
        |s| {
            let disks = s.snapshot.disks.iter();
            disks.map(|(name, t)| Sample::new(vec![("device", name.clone())], t.busy.as_secs_f64())).collect()
        },
    ),
    gauge("syscost_disk_requests_in_flight", "Requests under way at the moment.", |s| {
        disk_samples(s, |t| t.in_flight)
    }),
    gauge("syscost_reading_missing", "Always 1: a reading that this machine does not give.", |s| {
        let missing = s.snapshot.missing.iter();
        missing.map(|missing| Sample::new(vec![("reading", missing.what.clone())], 1)).collect()
    }),
    gauge("syscost_snapshot_duration_seconds", "What it took to read all this.", |s| {
        seconds_sample(s.took.as_secs_f64())
    }),
    counter("process_cpu_seconds", "CPU time of the monitor itself.", |s| {
        seconds_sample(s.own_cpu.as_secs_f64())
    }),
    gauge("process_resident_memory_bytes", "Resident set of the monitor itself.", |s| {
        single_sample(s.own_resident)
    }),
    gauge("process_open_fds", "Open descriptors of the monitor itself.", |s| {
        single_sample(s.own_descriptors)
    }),
];

fn single_sample(value: u64) -> Vec<Sample> {
    sample_if_known(Some(value))
}

fn sample_if_known(value: Option<u64>) -> Vec<Sample> {
    value.map(|value| Sample::new(Vec::new(), value)).into_iter().collect()
}

fn seconds_sample(value: f64) -> Vec<Sample> {
    vec![Sample::new(Vec::new(), value)]
}

/// The name of a mode of a CPU, and the counter of its time.
type Mode = (&'static str, fn(&Spent) -> u64);

/// The modes, with the names of the Prometheus node exporter.
const MODES: [Mode; 8] = [
    ("user", |s| s.user),
    ("nice", |s| s.nice),
    ("system", |s| s.system),
    ("idle", |s| s.idle),
    ("iowait", |s| s.waiting),
    ("irq", |s| s.interrupts),
    ("softirq", |s| s.soft_interrupts),
    ("steal", |s| s.stolen),
];

fn cpu_samples(scene: &Scene) -> Vec<Sample> {
    let of_one = |(cpu, spent): &(usize, Spent)| {
        let (cpu, spent) = (*cpu, *spent);
        MODES.map(move |(mode, field)| {
            let labels = vec![("cpu", cpu.to_string()), ("mode", mode.into())];
            Sample::new(labels, field(&spent) as f64 / USER_HZ)
        })
    };
    scene.snapshot.cpus.iter().flat_map(of_one).collect()
}

fn stall_samples(scene: &Scene, field: fn(&Pressed) -> Option<Stalled>) -> Vec<Sample> {
    let one = |(resource, pressed): &(Resource, Pressed)| {
        let value = field(pressed)?.total.as_secs_f64();
        Some(Sample::new(vec![("resource", resource.name().into())], value))
    };
    scene.snapshot.pressure.iter().filter_map(one).collect()
}

fn link_samples(scene: &Scene, field: fn(&Link) -> u64) -> Vec<Sample> {
    scene.snapshot.links.iter().map(|(name, link)| device_sample(name, field(link))).collect()
}

fn disk_samples(scene: &Scene, field: fn(&Traffic) -> u64) -> Vec<Sample> {
    scene.snapshot.disks.iter().map(|(name, traffic)| device_sample(name, field(traffic))).collect()
}

fn device_sample(name: &str, value: u64) -> Sample {
    Sample::new(vec![("device", name.into())], value)
}

#[cfg(test)]
mod tests;
