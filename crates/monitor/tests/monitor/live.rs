//! The monitors: at an address, on a terminal, at a fixed rate, and in a fleet.

use crate::place::{Place, SYSCOST, alone};
use crate::process;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use syscost_platform::error::Error;
use syscost_platform::testing::print_skipped;
use syscost_platform::{cpu, time::clock_gettime_ns};
use syscost_technique::io_overlap::{Load, exact_overlap};

/// The answer of an address to this request.
fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The address that a monitor prints once it listens.
fn address_in(place: &Place) -> String {
    let said = std::fs::read_to_string(place.path().join("output")).unwrap();
    said.trim().strip_prefix("listening\thttp://").unwrap().trim_end_matches("/metrics").to_owned()
}

#[test]
fn counters_at_an_address_are_the_librarys_until_it_is_ended() {
    let (_alone, place) = (alone(), Place::new());
    let mut running = place.begin(place.syscost(&["monitor", "--listen", "127.0.0.1:0"]));
    running.until_it_says("/metrics\n");
    let address = address_in(&place);
    let before = syscost_counters::snapshot::Snapshot::take().unwrap();
    let plain = ask(&address, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    let after = syscost_counters::snapshot::Snapshot::take().unwrap();
    assert!(plain.contains("Content-Type: text/plain; version=0.0.4"), "{plain}");
    let total = before.memory.total;
    assert!(plain.contains(&format!("\nsyscost_memory_size_bytes {total}\n")), "{total}: {plain}");
    let line = plain.lines().find(|line| line.starts_with("syscost_interrupts_total ")).unwrap();
    let interrupts: u64 = line.split(' ').next_back().unwrap().parse().unwrap();
    assert!((before.interrupts..=after.interrupts).contains(&interrupts));
    let open = ask(&address, "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n");
    assert!(
        open.contains("application/openmetrics-text; version=1.0.0") && open.ends_with("# EOF\n"),
        "{open}"
    );
    process::send(running.pid(), Signal::SIGTERM);
    assert_eq!(running.end().code, Some(0));
    place.is_tidy();
}

#[test]
fn several_machines_are_in_one_view_including_one_that_does_not_answer() {
    let (_alone, place) = (alone(), Place::new());
    let mut running = place.begin(place.syscost(&["monitor", "--listen", "127.0.0.1:0"]));
    running.until_it_says("/metrics\n");
    let address = address_in(&place);
    let list = place.path().join("hosts");
    std::fs::write(&list, format!("here {address}\nnobody 127.0.0.1:1\n")).unwrap();
    let list = list.to_str().unwrap();
    // The output of another home must not mix with that of the first.
    let output = place
        .syscost(&["monitor", "--hosts", list, "--interval", "0.5", "--count", "1", "--json"])
        .output()
        .unwrap();
    let hosts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(hosts[0]["view"]["kernel"], release.trim(), "{hosts}");
    assert!(hosts[0]["view"]["busy_percent"].is_number() && hosts[1]["why"].is_string(), "{hosts}");
    let at_detail = |detail| {
        let words = ["--hosts", list, "--interval", "0.5", "--count", "1", "--json", "--detail", detail];
        let output = place.syscost(&["monitor"]).args(words).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (each_cpu, all) = (at_detail("cpu"), at_detail("all"));
    let cpus = each_cpu[0]["view"]["each_cpu"].as_array().unwrap().len();
    assert_eq!(each_cpu[0]["view"]["cpus"], cpus as f64, "{each_cpu}");
    assert_eq!((&all["answering"], &all["view"]["cpus"]), (&1.into(), &(cpus as f64).into()), "{all}");
    process::send(running.pid(), Signal::SIGTERM);
    assert_eq!(running.end().code, Some(0));
    place.is_tidy();
}

/// The clocks of two machines differ by more than a second: by the clocks, a request arrives before it is sent.
#[test]
fn events_of_two_machines_follow_their_causes_whatever_the_clocks_show() {
    let (_alone, place) = (alone(), Place::new());
    let logs = [
        ("near", "1@0 message sent 101.000 ask\n4@0 message received:3@1 101.030 answered\n"),
        ("far", "2@1 message received:1@0 99.980 asked\n3@1 message sent 99.990 answer\n"),
    ];
    let (places, mut list) = ([Place::new(), Place::new()], String::new());
    let mut running = Vec::new();
    for ((host, log), own) in logs.into_iter().zip(&places) {
        let file = own.path().join("log");
        std::fs::write(&file, log).unwrap();
        let words = ["monitor", "--listen", "127.0.0.1:0", "--event-log", file.to_str().unwrap()];
        let mut monitor = own.begin(own.syscost(&words));
        monitor.until_it_says("/metrics\n");
        list += &format!("{host} {}\n", address_in(own));
        running.push(monitor);
    }
    let hosts = place.path().join("hosts");
    std::fs::write(&hosts, list).unwrap();
    let words =
        ["monitor", "--hosts", hosts.to_str().unwrap(), "--events", "--interval", "0.5", "--count", "1"];
    let output = place.syscost(&words).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let whats = text.lines().map(|line| line.split('\t').nth(3).unwrap());
    let whats: Vec<_> = whats.filter(|what| !what.is_empty()).collect();
    assert_eq!(whats, ["ask", "asked", "answer", "answered"], "{text}{:?}", output.stderr);
    assert!(text.contains("near\t–\t\t1 message to far, under way for -1.020 s"), "{text}");
    assert!(text.contains("asked\tits clock is at least 1.020 s behind that of near"), "{text}");
    for monitor in running {
        process::send(monitor.pid(), Signal::SIGTERM);
        assert_eq!(monitor.end().code, Some(0));
    }
}

/// The output of `monitor --overlap` on the running machine.
fn overlap(place: &Place, k: &str) -> Value {
    let output = place.syscost(&["monitor", "--overlap", k, "--for", "2", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The share X is that of the machine: 1 beside a task that always runs, otherwise between the bounds from `/proc/stat`.
#[test]
fn the_overlap_of_the_running_machine_is_within_the_bounds_of_its_idle_time() {
    let (_alone, place) = (alone(), Place::new());
    let mut busy_task = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let [beside, with_disk] = ["0", "1"].map(|k| (k == "0" || has_disks()).then(|| overlap(&place, k)));
    busy_task.kill().unwrap();
    busy_task.wait().unwrap();
    let (beside, without) = (beside.unwrap(), overlap(&place, "0"));
    assert!(beside["x"].as_f64().unwrap() >= 0.99, "a task always ran: {beside}");
    let [x, busy, cpus] = ["x", "cpus_busy_percent", "cpus"].map(|key| without[key].as_f64().unwrap());
    let busy = busy / 100.0;
    assert!((busy - 0.15..=cpus * busy + 0.15).contains(&x), "{without}");
    if let Some(with_disk) = with_disk {
        assert!(with_disk["x"].as_f64().unwrap() < 1.0, "a disk is never busy all the time: {with_disk}");
    }
}

fn has_disks() -> bool {
    !syscost_counters::enumeration::disks().unwrap_or_default().is_empty()
}

/// Channels read a disk, and a task computes in bursts: X with K = 1 must be near the share of their traces.
#[test]
fn reads_of_a_disk_overlap_with_a_busy_cpu() {
    let (_alone, place) = (alone(), Place::new());
    let load = match Load::start(place.path(), 2, cpu::allowed_cpus()[0]) {
        Err(Error::Missing(why)) => return print_skipped(&why),
        started => started.unwrap(),
    };
    if !has_disks() {
        return print_skipped("the kernel lists no disk");
    }
    let reads = || {
        syscost_counters::snapshot::Snapshot::take()
            .unwrap()
            .disks
            .iter()
            .map(|disk| disk.1.reads)
            .sum::<u64>()
    };
    let before = (reads(), clock_gettime_ns(libc::CLOCK_MONOTONIC));
    let found = overlap(&place, "1");
    let after = (reads(), clock_gettime_ns(libc::CLOCK_MONOTONIC));
    let finished = load.finish().unwrap();
    if after.0 - before.0 < 100 {
        return print_skipped("the reads go to no disk of the list");
    }
    let truth = exact_overlap(&finished.cpu, &finished.channels, 1, (before.1, after.1));
    let x = found["x"].as_f64().unwrap();
    assert!((0.3 * truth..=1.0).contains(&x), "{truth}: {found}");
}

#[test]
fn a_public_address_without_the_option_is_refused() {
    let place = Place::new();
    place.end(place.syscost(&["monitor", "--listen", "0.0.0.0:0"])).refuses(&["--public"]);
    place.end(place.syscost(&["monitor", "--overlap", "64"])).refuses(&["expected at most"]);
    place.end(place.syscost(&["probe", "--pid", "2147483647"])).refuses(&["no such process"]);
}

#[test]
fn lines_end_when_the_reader_closes_the_pipe() {
    let place = Place::new();
    let mut command = place.program("sh");
    command.args(["-c", "\"$0\" monitor --interval 0.1 | head -n 2", SYSCOST]);
    let ended = place.end(command);
    let views: Vec<Value> = ended.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ended.code, views.len()), (Some(0), 2));
    assert!(views[0]["seconds"].as_f64().unwrap() >= 0.09, "{}", views[0]);
    assert!(views[0]["memory"]["total_bytes"].as_u64().unwrap() > 0);
    let disks = views[0]["disks"].as_array().unwrap();
    assert!(disks.iter().all(|disk| (0.0..=100.0).contains(&disk["busy_percent"].as_f64().unwrap())));
    let missing = views[0]["missing"].as_array().unwrap();
    let why = missing.iter().find(|missing| missing["what"] == "cache hit rate");
    assert!(why.is_none_or(|why| !why["why"].as_str().unwrap().is_empty()), "{}", views[0]);
    assert!(why.is_some() || views[0]["cache_hit_percent"].is_number(), "{}", views[0]);
    place.is_tidy();
}

#[test]
fn a_probe_reads_the_requested_blocks_and_leaks_no_descriptor() {
    let place = Place::new();
    let ended = place.end(place.syscost(&["probe", "--rate", "500", "--count", "250", "--json"]));
    let lines: Vec<Value> = ended.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ended.code, lines.len()), (Some(0), 251), "{}", ended.error);
    let cost = &lines[250]["cost"];
    assert_eq!(cost["blocks"], 250);
    assert_eq!(cost["descriptors"]["first"], cost["descriptors"]["last"]);
    let counts: Vec<u64> = lines[..250].iter().map(|line| line["cpu_ns"].as_u64().unwrap()).collect();
    assert!(counts.is_sorted());
}

#[test]
fn a_process_that_ends_ends_its_probe_with_a_sentence() {
    let (_alone, place) = (alone(), Place::new());
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id().to_string();
    let mut running = place.begin(place.syscost(&["probe", "--rate", "50", "--for", "40", "--pid", &pid]));
    running.until_it_says("\n");
    child.kill().unwrap();
    child.wait().unwrap();
    running.end().says(1, &[&format!("process {pid} is gone")]);
}

#[test]
fn a_terminal_is_restored_whatever_the_end() {
    if Command::new("script").arg("--version").output().is_err() {
        print_skipped("there is no `script` here (util-linux), which lends a terminal");
        return;
    }
    for signal in [None, Some(Signal::SIGTERM), Some(Signal::SIGINT)] {
        let (_alone, place) = (alone(), Place::new());
        let end = if signal.is_none() { "--count 2" } else { "" };
        let mut command = place.program("script");
        command.args(["-qec", &format!("{SYSCOST} monitor --interval 0.2 {end}"), "/dev/null"]);
        let mut running = place.begin(command);
        if let Some(signal) = signal {
            running.until_it_says("memory");
            let monitor = process::of(&place).into_iter().max().unwrap();
            process::send(monitor, signal);
        }
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{signal:?}: {}", ended.output);
        assert!(ended.output.contains("\u{1b}[?1049h"), "{signal:?}");
        assert!(
            ended.output.trim_end().ends_with("\u{1b}[?25h\u{1b}[?1049l"),
            "{signal:?}: {}",
            ended.output
        );
        place.is_tidy();
    }
}

fn fleet(place: &Place, words: &[&str]) -> Command {
    let mut command = place.program(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/fleet/live"));
    command.args(words).env("SYSCOST", SYSCOST);
    command
}

#[test]
fn a_fleet_is_visible_through_prometheus_and_then_removed() {
    let place = Place::new();
    let ended = place.end(fleet(&place, &["2", "3"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    if ended.error.contains("skipped") {
        println!("{}", ended.error);
        return;
    }
    let rows: Vec<Vec<&str>> = ended.output.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 3, "{}", ended.output);
    for (at, row) in rows[1..].iter().enumerate() {
        assert_eq!(row[0], format!("10.78.0.{}:9464", at + 1));
        let [busy, free, received] = [1, 2, 3].map(|column| row[column].parse::<f64>().unwrap());
        // A scrape per second makes some packets of its own.
        assert!((0.0..=100.0).contains(&busy) && free > 0.0 && received > 50.0, "{row:?}");
    }
    place.is_tidy();
}

#[test]
fn a_fleet_that_is_interrupted_leaves_nothing() {
    let (_alone, place) = (alone(), Place::new());
    let running = place.begin(fleet(&place, &["2", "30"]));
    std::thread::sleep(Duration::from_secs(2));
    // A fleet that is skipped has ended by now.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(running.pid()), Signal::SIGINT);
    let ended = running.end();
    assert!(ended.code == Some(130) || ended.error.contains("skipped"), "{ended:?}");
    place.is_tidy();
}
