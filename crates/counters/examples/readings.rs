//! Current values of the counters for another program. For each process id on a line of standard input, it prints a line of
//! JSON on standard output. `experiments/against-psutil` compares the values with those of psutil.
//!
//!     echo $$ | cargo run -q --example readings

#![allow(clippy::print_stdout, reason = "an example talks")]

use serde_json::{Value, json};
use std::io::BufRead;
use syscost_counters::{Disk, Fault, Interface, Memory, Process, Processors, enumeration, physical_memory};

fn main() {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let pid = line.trim().parse().expect("the number of a process");
        match readings(pid) {
            Ok(readings) => println!("{readings}"),
            Err(fault) => println!("{}", json!({ "fault": fault.to_string() })),
        }
    }
}

fn readings(pid: i32) -> Result<Value, Fault> {
    let process = Process::open(pid)?;
    let stat = process.stat()?;
    let mut processors = Processors::open()?;
    let all = processors.time_spent(None)?.value;
    let mut interfaces = serde_json::Map::new();
    for name in enumeration::interfaces()? {
        let interface = Interface::open(&name)?;
        let counts = [
            interface.bytes_sent()?,
            interface.packets_sent()?,
            interface.bytes_received()?,
            interface.packets_received()?,
        ];
        interfaces.insert(name, json!(counts.map(|reading| reading.value)));
    }
    let mut disks = serde_json::Map::new();
    for name in enumeration::disks()?.into_iter().chain(enumeration::partitions()?) {
        let traffic = Disk::open(&name)?.traffic()?.value;
        disks.insert(name, json!([traffic.reads, traffic.writes, traffic.bytes_read, traffic.bytes_written]));
    }
    Ok(json!({
        "cpu_time": process.cpu_time()?.value.as_secs_f64(),
        "user": stat.user, "kernel": stat.kernel,
        "resident": process.resident()?.value, "virtual": process.virtual_memory()?.value,
        "threads": process.threads()?.value, "faults": [stat.minor_faults, stat.major_faults],
        "cpus": [all.user, all.nice, all.system, all.idle, all.waiting, all.interrupts, all.soft_interrupts, all.stolen],
        "free": physical_memory::free()?.value, "available": Memory::open()?.available()?.value,
        "interfaces": interfaces, "disks": disks,
    }))
}
