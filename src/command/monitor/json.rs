//! A look as a JSON object on one line.

use super::Seen;
use crate::monitor::view::{DiskRate, LinkRate, Shares};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn line(seen: &Seen) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let view = &seen.view;
    let of_cpu = |(cpu, its): &(usize, _)| {
        let mut object = shares(its);
        object["cpu"] = json!(cpu);
        object
    };
    json!({
        "time": now.as_secs_f64(),
        "seconds": view.window.as_secs_f64(),
        "all_cpus": view.all.as_ref().map(shares),
        "cpus": view.cpus.iter().map(of_cpu).collect::<Vec<_>>(),
        "interrupts_per_second": view.interrupts,
        "context_switches_per_second": view.context_switches,
        "tasks_created_per_second": view.created,
        "page_faults_per_second": view.page_faults,
        "major_page_faults_per_second": view.major_faults,
        "pressure": view.pressure.iter().map(|(resource, stall)| json!({
            "resource": resource.name(),
            "some_percent": stall.some,
            "full_percent": stall.full,
        })).collect::<Vec<_>>(),
        "memory": {
            "total_bytes": view.memory.total,
            "free_bytes": view.memory.free,
            "truly_free_bytes": view.memory.truly_free,
            "available_bytes": view.memory.available,
        },
        "interfaces": view.links.iter().map(interface).collect::<Vec<_>>(),
        "disks": view.disks.iter().map(disk).collect::<Vec<_>>(),
        "processes": seen.processes.iter().map(|busy| json!({
            "pid": busy.pid,
            "name": busy.name,
            "cpu_percent": busy.cpu,
            "resident_bytes": busy.resident,
            "threads": busy.threads,
        })).collect::<Vec<_>>(),
        "missing": view.missing.iter().map(|missing| json!({"what": missing.what, "why": missing.why})).collect::<Vec<_>>(),
        "own_cpu_percent": seen.own,
    })
}

fn shares(shares: &Shares) -> Value {
    json!({
        "busy_percent": shares.busy,
        "user_percent": shares.user,
        "system_percent": shares.system,
        "interrupts_percent": shares.interrupts,
        "stolen_percent": shares.stolen,
        "waiting_percent": shares.waiting,
    })
}

fn interface((name, rate): &(String, LinkRate)) -> Value {
    json!({
        "name": name,
        "sent_bytes_per_second": rate.sent,
        "received_bytes_per_second": rate.received,
        "sent_packets_per_second": rate.packets_sent,
        "received_packets_per_second": rate.packets_received,
    })
}

fn disk((name, rate): &(String, DiskRate)) -> Value {
    json!({
        "name": name,
        "reads_per_second": rate.reads,
        "read_bytes_per_second": rate.read,
        "writes_per_second": rate.writes,
        "written_bytes_per_second": rate.written,
    })
}
