//! The lines of a view for a terminal of a given size.

use crate::view::{Shares, Stall, View};
use crate::watch::Busy;
use crate::watch::Seen;
use syscost_counters::pressure::Resource;
use syscost_engine::driver::layout;
use syscost_engine::record::quantity::{self, format_count, format_size};
use syscost_engine::render::cell::Tone;
use syscost_engine::render::display_width;
use syscost_engine::render::terminal_text::{paint, utc_moment};
use syscost_platform::inert::neutralize_text;
use syscost_platform::kernel_files::KernelFiles;

/// Width of the name of a row, characters.
const NAME: usize = 10;
/// The widest bar, characters.
const WIDEST_BAR: usize = 60;
/// The maximum number of interfaces and of disks that are shown.
const DEVICES: usize = 3;
/// The minimum number of rows for processes, without their heading.
const FEWEST_PROCESSES: usize = 4;

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its columns.
    pub columns: usize,
    /// Its lines.
    pub rows: usize,
}

/// The lines of a view, as many as fit into the terminal.
pub fn render_lines(seen: &Seen, size: Size, interval: f64) -> Vec<String> {
    let mut lines = vec![heading(seen, size.columns, interval)];
    let rest = machine_rows(seen, size.columns);
    // Rows of CPUs are cut first, since the row of all CPUs sums them up.
    let room = size.rows.saturating_sub(lines.len() + 1 + rest.len() + 2 + FEWEST_PROCESSES);
    lines.extend(processor_rows(&seen.view, size.columns, room));
    lines.extend(rest);
    let room = size.rows.saturating_sub(lines.len());
    lines.extend(process_rows(&seen.processes, size.columns).into_iter().take(room));
    lines.into_iter().map(|line| cut_to_width(&line, size.columns)).collect()
}

fn heading(seen: &Seen, columns: usize, interval: f64) -> String {
    let now = quantity::unix_now();
    let up = now.saturating_sub(seen.booted);
    let host = KernelFiles::live().read_first_line("proc/sys/kernel/hostname");
    let up = format!("up {} d {:02}:{:02}", up / 86_400, up / 3600 % 24, up / 60 % 60);
    let left = format!("syscost monitor  {}  {up}", neutralize_text(&host.unwrap_or_default()));
    let when = if columns >= 110 { format!("{} UTC  ", utc_moment(now)) } else { String::new() };
    let right = format!("{when}every {interval} s, itself {:.1} %, q ends", seen.own);
    let gap = columns.saturating_sub(display_width(&left) + display_width(&right)).max(2);
    let line = cut_to_width(&format!("{left}{}{right}", " ".repeat(gap)), columns);
    paint(Tone::Bold, &line, layout())
}

fn processor_rows(view: &View, columns: usize, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(all) = &view.all else {
        return vec![labelled_row("CPU", "no tick has passed: nothing is known of this time")];
    };
    lines.push(labelled_row(&format!("{} CPUs", view.cpus.len()), &format_shares(all, columns)));
    let shown = if view.cpus.len() <= room { view.cpus.len() } else { room.saturating_sub(1) };
    // If not all fit, the busiest are shown.
    let mut cpus: Vec<_> = view.cpus.iter().collect();
    cpus.sort_by(|a, b| b.1.busy_percent.total_cmp(&a.1.busy_percent));
    cpus.truncate(shown);
    cpus.sort_by_key(|(cpu, _)| *cpu);
    lines.extend(
        cpus.iter().map(|(cpu, its)| labelled_row(&format!("  CPU {cpu}"), &format_shares(its, columns))),
    );
    let hidden = view.cpus.len() - shown;
    lines.extend(
        (hidden > 0 && room > 0)
            .then(|| labelled_row("", &format!("{hidden} CPUs more, less busy than these"))),
    );
    lines
}

fn format_shares(its: &Shares, columns: usize) -> String {
    let [busy, user, system] = [its.busy_percent, its.user_percent, its.system_percent];
    let (interrupts, stolen) = (its.interrupts_percent, its.stolen_percent);
    let words = format!(
        "busy {busy:5.1} %  user {user:5.1}  system {system:5.1}  irq {interrupts:4.1}  steal {stolen:4.1}"
    );
    let room = columns.saturating_sub(NAME + display_width(&words) + 2).min(WIDEST_BAR);
    // Fewer than eight columns show too little.
    let bar = if room < 8 || layout().ascii { String::new() } else { percent_bar(busy, room) };
    format!("{words}  {bar}")
}

/// A bar that is filled to this share.
pub fn percent_bar(percent: f64, columns: usize) -> String {
    let full = ((percent / 100.0 * columns as f64).round() as usize).min(columns);
    "█".repeat(full) + &"·".repeat(columns - full)
}

/// The rows of memory, pressure, kernel, network and disk, and of missing readings.
fn machine_rows(seen: &Seen, columns: usize) -> Vec<String> {
    let view = &seen.view;
    let mut lines = vec![
        labelled_row("memory", &format_memory(view)),
        labelled_row("pressure", &format_pressure(view)),
        labelled_row("kernel", &format_kernel_rates(view, columns)),
    ];
    let link = |(name, rate): &(String, crate::view::LinkRate)| {
        let words = format!(
            "{:<12}  in {:>10}/s  out {:>10}/s",
            neutralize_text(name),
            format_byte_rate(rate.received_bytes_per_second),
            format_byte_rate(rate.sent_bytes_per_second)
        );
        let packets = format!(
            "  packets in {:>9}/s  out {:>9}/s",
            format_event_rate(rate.received_packets_per_second),
            format_event_rate(rate.sent_packets_per_second)
        );
        labelled_row("network", &(words + if columns >= 110 { &packets } else { "" }))
    };
    let disk = |(name, rate): &(String, crate::view::DiskRate)| {
        let moved = format!(
            "{:<12}  busy {:>5.1} %  read {:>8}/s  written {:>6}/s",
            neutralize_text(name),
            rate.busy_percent,
            format_byte_rate(rate.read_bytes_per_second),
            format_byte_rate(rate.written_bytes_per_second)
        );
        let done = format!(
            "  reads {:>6}/s  writes {:>6}/s",
            format_event_rate(rate.reads_per_second),
            format_event_rate(rate.writes_per_second)
        );
        labelled_row("disk", &(moved + if columns >= 110 { &done } else { "" }))
    };
    let none = |lines: Vec<String>, name: &str| {
        if lines.is_empty() { vec![labelled_row(name, "there is none to be seen here")] } else { lines }
    };
    lines.extend(none(view.links.iter().take(DEVICES).map(link).collect(), "network"));
    lines.extend(none(view.disks.iter().take(DEVICES).map(disk).collect(), "disk"));
    let hits =
        seen.cache_hit_percent.map(|hits| format!("hits {hits:.1} % of the references to the last level"));
    lines.extend(hits.map(|words| labelled_row("cache", &words)));
    lines.extend(view.missing.iter().map(|missing| labelled_row("missing", &missing.why)));
    lines
}

fn format_memory(view: &View) -> String {
    let or_dash = |bytes: Option<u64>| bytes.map_or_else(|| "–".into(), format_size);
    let memory = &view.memory;
    format!(
        "truly free {}, available {}, of {}",
        or_dash(memory.truly_free),
        or_dash(memory.available),
        format_size(memory.total)
    )
}

/// For each resource, the share of the time for which a task was stalled.
fn format_pressure(view: &View) -> String {
    let share = |(resource, stall): &(Resource, Stall)| {
        let share = stall
            .some_percent
            .or(stall.full_percent)
            .map_or_else(|| "–".into(), |share| format!("{share:.1} %"));
        format!("{resource} {share}")
    };
    match view.pressure[..] {
        [] => "–".into(),
        ref shares => shares.iter().map(share).collect::<Vec<_>>().join(", "),
    }
}

fn format_kernel_rates(view: &View, columns: usize) -> String {
    let rate = |value: Option<f64>| value.map_or_else(|| "–".into(), format_event_rate);
    let created = if columns >= 100 { format!(", tasks {}/s", rate(view.created)) } else { String::new() };
    let waiting = view.all.map_or_else(|| "–".into(), |all| format!("{:.1} %", all.waiting_percent));
    format!(
        "irqs {}/s, switches {}/s, faults {}/s, {} major{created}, io wait {waiting}",
        rate(view.interrupts),
        rate(view.context_switches),
        rate(view.page_faults),
        rate(view.major_faults)
    )
}

fn process_rows(busiest: &[Busy], columns: usize) -> Vec<String> {
    let head = format!("{:>8}  {:>7}  {:>9}  {:>7}  name", "process", "CPU", "resident", "threads");
    let mut lines = vec![String::new(), paint(Tone::Bold, &cut_to_width(&head, columns), layout())];
    lines.extend(busiest.iter().map(|busy| {
        let Busy { pid, name, command, cpu_percent, resident_bytes, threads } = busy;
        // A wide terminal shows the command line.
        let name = if columns >= 120 && !command.is_empty() { command } else { name };
        format!(
            "{pid:>8}  {cpu_percent:>5.1} %  {:>9}  {threads:>7}  {}",
            format_size(*resident_bytes),
            neutralize_text(name)
        )
    }));
    lines
}

fn labelled_row(name: &str, words: &str) -> String {
    format!("{name:<NAME$}{words}")
}

/// A rate of events, without decimals.
fn format_event_rate(rate: f64) -> String {
    if rate < 1e6 { format!("{rate:.0}") } else { format_count(rate) }
}

fn format_byte_rate(rate: f64) -> String {
    format_size(rate.round() as u64)
}

/// Cuts a line to the width. Painted lines are already cut.
fn cut_to_width(line: &str, columns: usize) -> String {
    if line.starts_with('\u{1b}') { line.into() } else { line.chars().take(columns).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{DiskRate, LinkRate};
    use std::time::Duration;
    use syscost_counters::snapshot::{Memory, Missing};

    fn seen(cpus: usize) -> Seen {
        let busy = |pid| Busy {
            pid,
            name: "a\u{1b}[2Jb".into(),
            command: "a very long command line ".repeat(20),
            cpu_percent: 51.3,
            resident_bytes: 3 << 20,
            threads: 4,
        };
        let view = View {
            window: Duration::from_secs(1),
            all: Some(Shares { busy_percent: 50.0, ..Shares::default() }),
            cpus: (0..cpus)
                .map(|cpu| (cpu, Shares { busy_percent: cpu as f64, ..Shares::default() }))
                .collect(),
            interrupts: Some(1234.0),
            context_switches: Some(4321.0),
            created: None,
            page_faults: None,
            pressure: vec![(Resource::Cpu, Stall { some_percent: Some(3.25), full_percent: None })],
            major_faults: None,
            memory: Memory { total: 16 << 30, free: 1 << 30, truly_free: None, available: Some(2 << 30) },
            links: vec![("eth0".into(), LinkRate::default())],
            disks: vec![("vda".into(), DiskRate::default())],
            missing: vec![Missing { what: "page faults".into(), why: "there is no such file".into() }],
        };
        Seen {
            view,
            processes: (1..60).map(busy).collect(),
            own: 0.3,
            booted: 0,
            cache_hit_percent: Some(93.75),
        }
    }

    #[test]
    fn the_view_fits_any_terminal() {
        for (columns, rows) in [(80, 24), (200, 50), (40, 10), (20, 3)] {
            for cpus in [1, 2, 256] {
                let lines = render_lines(&seen(cpus), Size { columns, rows }, 1.0);
                assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:#?}");
                assert!(columns < 80 || lines.len() == rows, "{} lines of {rows}", lines.len());
                assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "a name commands no terminal");
            }
        }
    }

    #[test]
    fn the_busiest_cpus_are_shown_if_not_all_fit() {
        let lines = render_lines(&seen(256), Size { columns: 80, rows: 24 }, 1.0).join("\n");
        assert!(lines.contains("CPU 255") && !lines.contains("CPU 3 "), "{lines}");
        assert!(lines.contains("CPUs more"), "{lines}");
    }

    #[test]
    fn an_unknown_value_is_a_dash_with_its_reason() {
        let lines = render_lines(&seen(2), Size { columns: 80, rows: 24 }, 1.0).join("\n");
        assert!(lines.contains("truly free –") && lines.contains("faults –/s"), "{lines}");
        assert!(lines.contains("missing   there is no such file"), "{lines}");
    }

    #[test]
    fn a_disk_shows_its_utilisation_and_the_cache_its_hits() {
        let mut seen = seen(1);
        seen.view.disks[0].1.busy_percent = 42.5;
        let lines = render_lines(&seen, Size { columns: 80, rows: 30 }, 1.0).join("\n");
        assert!(lines.contains("vda           busy  42.5 %") && lines.contains("hits 93.8 %"), "{lines}");
    }

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(percent_bar(50.0, 10), "█████·····");
        assert_eq!(percent_bar(100.4, 10).chars().count(), 10);
        assert!(!format_shares(&Shares::default(), 79).contains("·"), "no bar in so few columns");
    }
}
