//! Rates of another machine, between two pages of its monitor.

use super::host_page::HostPage;
use serde::Serialize;

/// What each CPU did, by mode.
const CPU: &str = "syscost_cpu_seconds_total";

/// A machine between two looks. What its page does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostView {
    /// Its kernel's release.
    pub kernel: Option<String>,
    /// CPUs that are online.
    pub cpus: Option<f64>,
    /// Not idle and not waiting for a device, percent of all its CPUs.
    pub busy_percent: Option<f64>,
    /// Free memory, with the lists of each CPU where they are known, bytes.
    pub free_bytes: Option<f64>,
    /// Memory, bytes.
    pub memory_bytes: Option<f64>,
    /// Bytes that its interfaces but `lo` received and sent, a second.
    pub received_bytes_per_second: Option<f64>,
    /// Bytes sent.
    pub sent_bytes_per_second: Option<f64>,
    /// Page faults a second.
    pub page_faults_per_second: Option<f64>,
    /// What its monitor takes of a CPU, percent.
    pub monitor_percent: Option<f64>,
}

impl HostView {
    /// Compares two pages of one machine.
    pub fn between(before: &HostPage, after: &HostPage) -> Self {
        let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
        // A counter that went back is that of a machine that has started again.
        let grown = |field: &dyn Fn(&HostPage) -> Option<f64>| {
            Some(field(after)? - field(before)?).filter(|grown| *grown >= 0.0)
        };
        let rate = |field: &dyn Fn(&HostPage) -> Option<f64>| {
            grown(field).filter(|_| seconds > 0.0).map(|grown| grown / seconds)
        };
        let all = grown(&|page| page.sum_by_name(CPU)).filter(|all| *all > 0.0);
        let idle = grown(&|page| page.sum_where_label(CPU, "mode", |mode| matches!(mode, "idle" | "iowait")));
        let outside = |name: &'static str| {
            rate(&move |page| page.sum_where_label(name, "device", |device| device != "lo").or(Some(0.0)))
        };
        let free = ["syscost_memory_truly_free_bytes", "syscost_memory_free_bytes"];
        Self {
            kernel: after.first_label("syscost_kernel_info", "release"),
            cpus: after.sum_by_name("syscost_cpus_online"),
            busy_percent: all.zip(idle).map(|(all, idle)| (100.0 * (1.0 - idle / all)).clamp(0.0, 100.0)),
            free_bytes: free.iter().find_map(|name| after.sum_by_name(name)),
            memory_bytes: after.sum_by_name("syscost_memory_size_bytes"),
            received_bytes_per_second: outside("syscost_network_receive_bytes_total"),
            sent_bytes_per_second: outside("syscost_network_transmit_bytes_total"),
            page_faults_per_second: rate(&|page| page.sum_by_name("syscost_page_faults_total")),
            monitor_percent: rate(&|page| page.sum_by_name("process_cpu_seconds_total"))
                .map(|share| 100.0 * share),
        }
    }
}
