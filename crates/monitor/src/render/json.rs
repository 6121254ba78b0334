//! A look as a JSON object on one line.

use crate::watch::Seen;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The object of a look.
pub fn seen_to_json(seen: &Seen) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let view = &seen.view;
    let pressure: Vec<_> = view.pressure.iter().map(|(of, stall)| (of.name(), stall)).collect();
    json!({
        "time": now.as_secs_f64(),
        "seconds": view.window.as_secs_f64(),
        "all_cpus": view.all,
        "cpus": named_objects("cpu", &view.cpus),
        "interrupts_per_second": view.interrupts,
        "context_switches_per_second": view.context_switches,
        "tasks_created_per_second": view.created,
        "page_faults_per_second": view.page_faults,
        "major_page_faults_per_second": view.major_faults,
        "pressure": named_objects("resource", &pressure),
        "memory": {
            "total_bytes": view.memory.total,
            "free_bytes": view.memory.free,
            "truly_free_bytes": view.memory.truly_free,
            "available_bytes": view.memory.available,
        },
        "interfaces": named_objects("name", &view.links),
        "disks": named_objects("name", &view.disks),
        "cache_hit_percent": seen.cache_hit_percent,
        "processes": seen.processes,
        "missing": view.missing.iter().map(|missing| json!({"what": missing.what, "why": missing.why})).collect::<Vec<_>>(),
        "own_cpu_percent": seen.own,
    })
}

/// Each thing as an object that has its name, too.
fn named_objects<N: Serialize, T: Serialize>(key: &str, named: &[(N, T)]) -> Vec<Value> {
    let one = |(name, thing): &(N, T)| {
        let mut object = json!(thing);
        object[key] = json!(name);
        object
    };
    named.iter().map(one).collect()
}
