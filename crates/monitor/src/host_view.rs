//! Rates of another machine, computed from two pages of its monitor.

use super::host_page::HostPage;
use serde::Serialize;

/// The metric with the time of each CPU by mode.
const CPU: &str = "syscost_cpu_seconds_total";

/// A machine between two readings. A value that its page lacks is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostView {
    /// The release of its kernel.
    pub kernel: Option<String>,
    /// The number of online CPUs.
    pub cpus: Option<f64>,
    /// Share of all its CPUs that was neither idle nor waiting for a device, percent.
    pub busy_percent: Option<f64>,
    /// Free memory, bytes, including the lists of each CPU where they are known.
    pub free_bytes: Option<f64>,
    /// Total memory, bytes.
    pub memory_bytes: Option<f64>,
    /// Bytes per second that its interfaces received, except `lo`.
    pub received_bytes_per_second: Option<f64>,
    /// Bytes per second that its interfaces sent, except `lo`.
    pub sent_bytes_per_second: Option<f64>,
    /// Page faults per second.
    pub page_faults_per_second: Option<f64>,
    /// Share of a CPU that its monitor uses, percent.
    pub monitor_percent: Option<f64>,
    /// Each of its CPUs, if that level of detail was requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each_cpu: Vec<CpuView>,
}

/// A CPU of a machine between two readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuView {
    /// Its number.
    pub cpu: String,
    /// Share that was neither idle nor waiting for a device, percent.
    pub busy_percent: Option<f64>,
}

/// The level of detail of a view of several machines, the coarsest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum HostDetail {
    /// All machines as one
    All,
    /// Each machine
    Host,
    /// Each machine and each of its CPUs
    Cpu,
}

impl HostView {
    /// Compares two pages of one machine.
    pub fn between(before: &HostPage, after: &HostPage) -> Self {
        let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
        // A counter that decreased belongs to a machine that has restarted.
        let grown = |field: &dyn Fn(&HostPage) -> Option<f64>| {
            Some(field(after)? - field(before)?).filter(|grown| *grown >= 0.0)
        };
        let rate = |field: &dyn Fn(&HostPage) -> Option<f64>| {
            grown(field).filter(|_| seconds > 0.0).map(|grown| grown / seconds)
        };
        let outside = |name: &'static str| {
            let grown = growth_by_label(before, after, name, "device", |device, page| {
                if device == "lo" { Some(0.0) } else { page.sum_by_name(name) }
            });
            grown.filter(|_| seconds > 0.0).map(|grown| grown / seconds)
        };
        let free = ["syscost_memory_truly_free_bytes", "syscost_memory_free_bytes"];
        Self {
            kernel: after.first_label("syscost_kernel_info", "release"),
            cpus: after.sum_by_name("syscost_cpus_online"),
            busy_percent: busy_percent(before, after),
            free_bytes: free.iter().find_map(|name| after.sum_by_name(name)),
            memory_bytes: after.sum_by_name("syscost_memory_size_bytes"),
            received_bytes_per_second: outside("syscost_network_receive_bytes_total"),
            sent_bytes_per_second: outside("syscost_network_transmit_bytes_total"),
            page_faults_per_second: rate(&|page| page.sum_by_name("syscost_page_faults_total")),
            monitor_percent: rate(&|page| page.sum_by_name("process_cpu_seconds_total"))
                .map(|share| 100.0 * share),
            each_cpu: Vec::new(),
        }
    }

    /// The same view with each CPU that both pages contain.
    pub fn with_each_cpu(self, before: &HostPage, after: &HostPage) -> Self {
        let earlier = before.split_by_label(CPU, "cpu");
        let cpu_view = |(cpu, after): (String, HostPage)| {
            let (_, before) = earlier.iter().find(|(other, _)| *other == cpu)?;
            Some(CpuView { busy_percent: busy_percent(before, &after), cpu })
        };
        Self { each_cpu: after.split_by_label(CPU, "cpu").into_iter().filter_map(cpu_view).collect(), ..self }
    }

    /// The view of several machines as one: sums, and the share of all their CPUs. A value that one of them lacks is left out
    /// of the sum.
    pub fn sum(views: &[&Self]) -> Self {
        let sum = |field: fn(&Self) -> Option<f64>| {
            views.iter().filter_map(|view| field(view)).reduce(|sum, value| sum + value)
        };
        let busy_cpus = sum(|view| Some(view.busy_percent? * view.cpus?));
        let known_cpus = sum(|view| view.busy_percent.and(view.cpus));
        Self {
            kernel: None,
            cpus: sum(|view| view.cpus),
            busy_percent: busy_cpus.zip(known_cpus).map(|(busy, cpus)| busy / cpus),
            free_bytes: sum(|view| view.free_bytes),
            memory_bytes: sum(|view| view.memory_bytes),
            received_bytes_per_second: sum(|view| view.received_bytes_per_second),
            sent_bytes_per_second: sum(|view| view.sent_bytes_per_second),
            page_faults_per_second: sum(|view| view.page_faults_per_second),
            monitor_percent: sum(|view| view.monitor_percent),
            each_cpu: Vec::new(),
        }
    }
}

/// The growth of a counter over the values of the label `key` that both pages contain, since a new CPU or interface would add
/// its whole history. `None` if the counter decreased, as after a restart of the machine.
fn growth_by_label(
    before: &HostPage,
    after: &HostPage,
    name: &str,
    key: &str,
    sum: impl Fn(&str, &HostPage) -> Option<f64>,
) -> Option<f64> {
    let earlier = before.split_by_label(name, key);
    let growth = |(label, later): (String, HostPage)| {
        let (_, earlier) = earlier.iter().find(|(other, _)| *other == label)?;
        Some(sum(&label, &later)? - sum(&label, earlier)?)
    };
    let grown: f64 = after.split_by_label(name, key).into_iter().filter_map(growth).sum();
    Some(grown).filter(|grown| *grown >= 0.0)
}

/// The share of CPU time between two pages that is neither idle nor waiting for a device; `None` if no tick has passed, or if
/// a count decreased.
fn busy_percent(before: &HostPage, after: &HostPage) -> Option<f64> {
    let grown = |is_meant: fn(&str) -> bool| {
        growth_by_label(before, after, CPU, "cpu", |_, page| page.sum_where_label(CPU, "mode", is_meant))
    };
    let all = grown(|_| true).filter(|all| *all > 0.0)?;
    let idle = grown(|mode| matches!(mode, "idle" | "iowait"))?;
    Some((100.0 * (1.0 - idle / all)).clamp(0.0, 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with busy and idle seconds of each CPU, and the bytes that each interface received.
    fn page(cpus: &[(u32, u32, u32)], interfaces: &[(&str, u32)]) -> HostPage {
        let mut body = String::new();
        for (cpu, busy, idle) in cpus {
            body += &format!(
                "{CPU}{{cpu=\"{cpu}\",mode=\"user\"}} {busy}\n{CPU}{{cpu=\"{cpu}\",mode=\"idle\"}} {idle}\n"
            );
        }
        for (device, bytes) in interfaces {
            body += &format!("syscost_network_receive_bytes_total{{device=\"{device}\"}} {bytes}\n");
        }
        HostPage::parse(&body).expect("a page")
    }

    #[test]
    fn a_new_cpu_or_interface_does_not_add_its_history() {
        let before = page(&[(0, 100, 100)], &[("eth0", 1000), ("lo", 5)]);
        std::thread::sleep(std::time::Duration::from_millis(2));
        let after = page(&[(0, 101, 103), (1, 90_000, 0)], &[("eth0", 1000), ("lo", 9), ("veth1", 1 << 30)]);
        let view = HostView::between(&before, &after).with_each_cpu(&before, &after);
        assert_eq!((view.busy_percent, view.received_bytes_per_second), (Some(25.0), Some(0.0)));
        let each: Vec<_> = view.each_cpu.iter().map(|each| (each.cpu.as_str(), each.busy_percent)).collect();
        assert_eq!(each, [("0", Some(25.0))]);
        // A CPU that has gone offline subtracts nothing, and a machine that has restarted has no share.
        assert_eq!(HostView::between(&after, &page(&[(1, 90_001, 0)], &[])).busy_percent, Some(100.0));
        assert_eq!(HostView::between(&after, &page(&[(0, 1, 1)], &[])).busy_percent, None);
    }

    #[test]
    fn the_busy_share_of_several_machines_is_weighted_by_their_cpus() {
        let view = |cpus, busy_percent, free_bytes| HostView {
            cpus: Some(cpus),
            busy_percent,
            free_bytes: Some(free_bytes),
            ..HostView::default()
        };
        let (small, large, silent) =
            (view(2.0, Some(100.0), 1.0), view(6.0, Some(20.0), 2.0), view(8.0, None, 4.0));
        let sum = HostView::sum(&[&small, &large, &silent]);
        assert_eq!((sum.cpus, sum.busy_percent, sum.free_bytes), (Some(16.0), Some(40.0), Some(7.0)));
        assert_eq!(sum.received_bytes_per_second, None);
        assert_eq!(HostView::sum(&[]), HostView::default());
    }
}
