//! Several machines in one view. A thread for each machine requests its page, as CAMP's monitor queried its workstations.

use super::{Args, draw_at_intervals, write_at_intervals};
use crate::host_page::HostPage;
use crate::host_view::{HostDetail, HostView};
use crate::live_view::percent_bar;
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use syscost_command_line::page::{self, inert};
use syscost_engine::driver::layout;
use syscost_engine::record::quantity::format_size;
use syscost_platform::error::{Error, Result};
use syscost_platform::plain_file;

/// The maximum length of the list, bytes, and the maximum number of hosts on it.
const LONGEST: u64 = 1 << 20;
const MOST: usize = 1000;
const BAR: usize = 20;

/// A machine on the list, and its last page.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    before: std::result::Result<HostPage, String>,
}

/// The latest view of a machine, or the reason why there is none.
type Seen = std::result::Result<HostView, String>;

pub(super) fn watch_hosts(list: &Path, args: &Args, views: u64) -> Result<()> {
    let mut hosts = read_hosts(list)?;
    let (every, detail) = (args.interval_duration(), args.detail);
    query_hosts(&mut hosts, every);
    if args.json || page::is_piped() {
        return write_at_intervals(args, views, || {
            let seen = query_hosts(&mut hosts, every);
            let table = || page::tabbed_rows(rows(&select_detail(&hosts, &seen, detail), false));
            Ok(if args.json { hosts_json(&hosts, &seen, detail) } else { table() })
        });
    }
    let first = format!("asking {} hosts …", hosts.len());
    draw_at_intervals(args, views, first, |size| {
        let seen = query_hosts(&mut hosts, every);
        Ok(screen_lines(&hosts, &seen, detail, size.columns, args.interval))
    })
}

/// Reads lines of `NAME ADDRESS:PORT`; text after a `#` is a comment.
pub(super) fn read_hosts(list: &Path) -> Result<Vec<Host>> {
    let bytes = plain_file::read(list, LONGEST)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut hosts = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let words: Vec<_> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let address = words.get(1).and_then(|word| word.parse().ok());
        match (&words[..], address) {
            ([], _) => {}
            ([name, _], Some(address)) => {
                let before = Err("it was not asked".into());
                hosts.push(Host { name: (*name).to_owned(), address, before });
            }
            _ => return Err(invalid_line_error(list, at + 1, line)),
        }
    }
    match hosts.len() {
        1..=MOST => Ok(hosts),
        _ => Err(Error::Usage(format!("{}: expected 1 to {MOST} hosts", list.display()))),
    }
}

fn invalid_line_error(list: &Path, line: usize, found: &str) -> Error {
    let expected = "a name and an address with its port: web1 10.0.0.7:9753";
    let remedy = "write one host a line; `syscost monitor --listen` on each serves its page";
    Error::invalid_content(list, format!("line {line}"), expected, inert(found), remedy)
}

/// Fetches the pages of all hosts at once. A host that does not answer within `patience` delays no other.
fn query_hosts(hosts: &mut [Host], patience: Duration) -> Vec<Seen> {
    ask_all(hosts, |host| {
        let page = HostPage::fetch(host.address, patience);
        let seen = match (&host.before, &page) {
            (Ok(before), Ok(after)) => Ok(HostView::between(before, after).with_each_cpu(before, after)),
            (Err(_), Ok(_)) => Err("asked for the first time".into()),
            (_, Err(why)) => Err(why.clone()),
        };
        host.before = page;
        seen
    })
}

/// The answers of the hosts, which are all queried at once.
pub(super) fn ask_all<H: Send, T: Send>(
    hosts: impl IntoIterator<Item = H>,
    ask: impl Fn(H) -> std::result::Result<T, String> + Sync,
) -> Vec<std::result::Result<T, String>> {
    let ask = &ask;
    std::thread::scope(|scope| {
        let threads: Vec<_> = hosts.into_iter().map(|host| scope.spawn(move || ask(host))).collect();
        let failed = |_| Err("asking it failed".to_owned());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).collect()
    })
}

/// The sum over all machines that answer.
fn sum_of_hosts(seen: &[Seen]) -> HostView {
    HostView::sum(&seen.iter().flatten().collect::<Vec<_>>())
}

fn answering_count(seen: &[Seen]) -> usize {
    seen.iter().flatten().count()
}

fn hosts_json(hosts: &[Host], seen: &[Seen], detail: HostDetail) -> String {
    if detail == HostDetail::All {
        let answering = answering_count(seen);
        let all = json!({"hosts": hosts.len(), "answering": answering, "view": sum_of_hosts(seen)});
        return format!("{all}\n");
    }
    let object = |(host, seen): (&Host, &Seen)| match seen {
        Ok(view) => {
            let mut view = view.clone();
            view.each_cpu.retain(|_| detail == HostDetail::Cpu);
            json!({"host": host.name, "address": host.address, "view": view})
        }
        Err(why) => json!({"host": host.name, "address": host.address, "why": why}),
    };
    let all: Vec<_> = hosts.iter().zip(seen).map(object).collect();
    format!("{}\n", json!(all))
}

/// The names and views that are shown at a level of detail.
fn select_detail(hosts: &[Host], seen: &[Seen], detail: HostDetail) -> Vec<(String, Seen)> {
    if detail == HostDetail::All {
        return vec![(format!("{} of {} hosts", answering_count(seen), hosts.len()), Ok(sum_of_hosts(seen)))];
    }
    let mut shown = Vec::new();
    for (host, seen) in hosts.iter().zip(seen) {
        shown.push((host.name.clone(), seen.clone()));
        let cpus = seen.iter().flat_map(|view| &view.each_cpu).filter(|_| detail == HostDetail::Cpu);
        shown.extend(cpus.map(|its| {
            let view = HostView { busy_percent: its.busy_percent, ..HostView::default() };
            (format!("{} CPU {}", host.name, its.cpu), Ok(view))
        }));
    }
    shown
}

/// The rows of the table. Columns: host, kernel, CPUs, busy, free, received, sent, faults, monitor; last, a bar of the CPUs
/// or the sentence on a host that does not answer.
fn rows(shown: &[(String, Seen)], with_bar: bool) -> Vec<[String; 10]> {
    let row = |(name, seen): &(String, Seen)| {
        let view = seen.as_ref().ok().cloned().unwrap_or_default();
        let cell = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "–".to_owned(), text);
        let bytes = |value: f64| format_size(value.round() as u64);
        let last = match (seen, with_bar) {
            (Err(why), _) => inert(why),
            (Ok(view), true) => view.busy_percent.map(|busy| percent_bar(busy, BAR)).unwrap_or_default(),
            _ => String::new(),
        };
        [
            inert(name),
            view.kernel.as_deref().map_or_else(|| "–".to_owned(), inert),
            cell(view.cpus, |cpus| format!("{cpus:.0}")),
            cell(view.busy_percent, |share| format!("{share:.1} %")),
            cell(view.free_bytes, bytes),
            cell(view.received_bytes_per_second, bytes),
            cell(view.sent_bytes_per_second, bytes),
            cell(view.page_faults_per_second, |rate| format!("{rate:.0}")),
            cell(view.monitor_percent, |share| format!("{share:.2} %")),
            last,
        ]
    };
    shown.iter().map(row).collect()
}

fn screen_lines(
    hosts: &[Host],
    seen: &[Seen],
    detail: HostDetail,
    columns: usize,
    interval: f64,
) -> Vec<String> {
    let answering = answering_count(seen);
    let head =
        format!("syscost monitor  {answering} of {} hosts answer  every {interval} s, q ends", hosts.len());
    let names = ["host", "kernel", "CPUs", "busy", "free", "in/s", "out/s", "faults/s", "itself", ""];
    let shown = rows(&select_detail(hosts, seen, detail), columns >= 110);
    let rows: Vec<_> = std::iter::once(names.map(str::to_owned)).chain(shown).collect();
    let mut lines = vec![page::paint(page::Tone::Bold, &head, layout()), String::new()];
    lines.extend(
        page::align_columns(&rows, usize::MAX).iter().map(|line| line.chars().take(columns).collect()),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_view::CpuView;

    fn list(text: &str) -> Result<Vec<Host>> {
        let file = tempfile::NamedTempFile::new().expect("made");
        std::fs::write(file.path(), text).expect("written");
        read_hosts(file.path())
    }

    #[test]
    fn a_host_is_a_name_and_an_address() {
        let hosts = list("# the lab\nold 127.0.0.1:1\n\nnew [::1]:2 # by the window\n").expect("two");
        assert_eq!(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["old", "new"]);
        for bad in ["old", "old 127.0.0.1", "old 127.0.0.1:1 more", ""] {
            assert!(list(bad).is_err(), "{bad}");
        }
        let why = list("a 127.0.0.1:1\nb nowhere\n").err().expect("the second").to_string();
        assert!(why.contains("line 2"), "{why}");
    }

    #[test]
    fn each_level_of_detail_shows_its_machines_and_cpus() {
        let hosts = list("old 127.0.0.1:1\nnew 127.0.0.1:2\n").expect("two");
        let cpu = |cpu: &str| CpuView { cpu: cpu.into(), busy_percent: Some(50.0) };
        let view = HostView { cpus: Some(2.0), each_cpu: vec![cpu("0"), cpu("1")], ..HostView::default() };
        let seen = [Ok(view), Err("it does not answer".into())];
        let names =
            |detail| select_detail(&hosts, &seen, detail).into_iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(names(HostDetail::All), ["1 of 2 hosts"]);
        assert_eq!(names(HostDetail::Host), ["old", "new"]);
        assert_eq!(names(HostDetail::Cpu), ["old", "old CPU 0", "old CPU 1", "new"]);
        let json = |detail| hosts_json(&hosts, &seen, detail);
        assert!(json(HostDetail::Cpu).contains("each_cpu") && !json(HostDetail::Host).contains("each_cpu"));
        assert!(json(HostDetail::All).contains("\"answering\":1"), "{}", json(HostDetail::All));
    }

    #[test]
    fn a_host_that_does_not_answer_has_a_row_with_the_reason() {
        let gone =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a port");
        let mut hosts = list(&format!("gone\u{202e} {gone}\n")).expect("one");
        let seen = query_hosts(&mut hosts, Duration::from_millis(300));
        let lines = screen_lines(&hosts, &seen, HostDetail::Host, 80, 1.0);
        assert!(lines[0].contains("0 of 1 hosts") && lines.iter().all(|line| line.chars().count() <= 80));
        assert!(lines[3].contains('–') && !lines[3].contains('\u{202e}'), "{lines:?}");
    }
}
