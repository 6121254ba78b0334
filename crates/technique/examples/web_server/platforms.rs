//! Compares two models of one server while ten clients are added per second. Each half second it reads network, CPU, working
//! set and page faults of the server's whole process tree.

use super::other_host::OtherHost;
use crate::Answer;
use crate::apache::{Apache, Model};
use crate::crowd::Crowd;
use crate::picture;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use syscost_counters::Interface;
use syscost_counters::aggregate::process_tree;
use syscost_counters::pace::Pace;

/// Period of the readings.
const BEAT: Duration = Duration::from_millis(500);
/// New clients per second, and the number of all clients at the end.
const GROUP: usize = 10;
const MOST: usize = 250;
/// Readings after all clients have arrived.
const AFTER: usize = 20;

/// The process tree at one moment, with counts since its start.
struct Tree {
    at: Instant,
    cpu: Duration,
    faults: u64,
    resident: u64,
    processes: u64,
    moved: u64,
}

/// The measures between two moments.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub seconds: f64,
    pub clients: usize,
    pub processes: u64,
    pub network: f64,
    pub cpu: f64,
    pub resident: f64,
    pub faults: f64,
}

pub fn run(directory: &Path, clients: &Arc<OtherHost>) -> Answer {
    std::fs::create_dir_all(directory)?;
    let mut all = Vec::new();
    for model in [Model::Prefork, Model::Event] {
        let (rows, (served, failed)) = watch(model, clients)?;
        let last = rows.last().ok_or("nothing was seen")?;
        println!(
            "{}: {served} pages served, {failed} failed; at the end {} clients, {} processes, {:.1} MB/s, {:.0} % of a \
             CPU, {:.0} MiB resident",
            model.name(),
            last.clients,
            last.processes,
            last.network / 1e6,
            last.cpu,
            last.resident / f64::from(1 << 20),
        );
        std::fs::write(directory.join(format!("{}.csv", model.name())), table(&rows)?)?;
        all.push((model.name(), rows));
    }
    let file = directory.join("platforms.svg");
    std::fs::write(&file, picture::svg(&all)?)?;
    println!("{}", file.display());
    Ok(())
}

fn watch(model: Model, clients: &Arc<OtherHost>) -> Answer<(Vec<Row>, (u64, u64))> {
    let server = Apache::start(model, &[])?;
    let (wire, mut crowd, mut rows) = (Interface::open(OtherHost::NEAR.0)?, Crowd::at(clients), Vec::new());
    let mut pace = Pace::every(BEAT);
    pace.wait_for_deadline();
    let begun = Instant::now();
    let mut before = Tree::look(server.pid(), &wire)?;
    let growing = 2 * MOST / GROUP;
    for beat in 0..growing + AFTER {
        if beat % 2 == 0 && crowd.size() < MOST {
            crowd.grow(GROUP, server.address)?;
        }
        pace.wait_for_deadline();
        let after = Tree::look(server.pid(), &wire)?;
        rows.push(after.since(&before, (after.at - begun).as_secs_f64(), crowd.size()));
        before = after;
    }
    Ok((rows, crowd.seen()))
}

impl Tree {
    fn look(root: i32, wire: &Interface) -> Answer<Self> {
        let link = wire.all_counters()?.value;
        let tree = process_tree(root)?;
        Ok(Self {
            at: tree.at,
            cpu: tree.value.cpu_time,
            faults: tree.value.page_faults,
            resident: tree.value.resident,
            processes: tree.value.processes,
            moved: link.bytes_sent + link.bytes_received,
        })
    }

    fn since(&self, before: &Self, seconds: f64, clients: usize) -> Row {
        let window = (self.at - before.at).as_secs_f64();
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / window;
        Row {
            seconds,
            clients,
            processes: self.processes,
            network: rate(self.moved, before.moved),
            cpu: 100.0 * self.cpu.saturating_sub(before.cpu).as_secs_f64() / window,
            resident: self.resident as f64,
            faults: rate(self.faults, before.faults),
        }
    }
}

fn table(rows: &[Row]) -> Result<String, std::fmt::Error> {
    let mut text = String::from(
        "seconds,clients,processes,network_bytes_per_second,cpu_percent,resident_bytes,faults_per_second\n",
    );
    for row in rows {
        let Row { seconds, clients, processes, network, cpu, resident, faults } = row;
        writeln!(text, "{seconds:.2},{clients},{processes},{network:.0},{cpu:.2},{resident:.0},{faults:.0}")?;
    }
    Ok(text)
}
