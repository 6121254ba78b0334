//! Which machines are alike, and which one changed in the middle of an experiment.

use crate::record::fleet_record::JobRecord;
use serde::Serialize;
use std::collections::BTreeMap;
use syscost_engine::environment::Fingerprint;

/// One machine in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The host; behind a `#` the number of the state, if it changed.
    pub name: String,
    /// Which of the classes.
    pub class: usize,
}

impl Machine {
    /// Whether it is this host, in any of its states.
    pub(super) fn is_state_of_host(&self, host: &str) -> bool {
        self.name.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    }
}

/// Machines that differ in nothing on which numbers depend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Class {
    /// What they are.
    pub what: String,
    /// How many there are.
    pub machines: usize,
}

/// The properties of a machine that affect its numbers, without the kernel, as text: equal texts mean like
/// machines.
pub fn machine_state(record: &JobRecord) -> String {
    let f = &record.fingerprint;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let model = [&f.cpu_vendor, &f.cpu_family, &f.cpu_model_number, &f.cpu_stepping].map(text).join("/");
    let shown = f.cpu_model.clone().unwrap_or_else(|| format!("CPU {model}"));
    let mut words = vec![shown, cpu_count_text(f.cpu_count)];
    let mut tell = |what: &str, value: &Option<String>| {
        words.extend(value.as_ref().filter(|value| !value.is_empty()).map(|value| format!("{what} {value}")));
    };
    tell("model", &Some(model).filter(|model| model != "///"));
    tell("microcode", &f.microcode);
    tell("hypervisor", &f.hypervisor);
    tell("product", &f.product);
    tell("governor", &f.governor);
    tell("driver", &f.frequency_driver);
    tell("turbo", &f.turbo.map(|on| if on { "on" } else { "off" }.to_owned()));
    tell("SMT", &Some(format!("{:?}", f.smt).to_lowercase()));
    tell(
        "memory",
        &f.memory_bytes.map(|bytes| format!("{} GiB", (bytes as f64 / f64::from(1 << 30)).round())),
    );
    words.push(format!("{} by {}", record.tool, text(&f.compiler)));
    words.join(", ")
}

fn cpu_count_text(count: Option<usize>) -> String {
    match count {
        None => "CPUs unknown".into(),
        Some(1) => "1 CPU".into(),
        Some(count) => format!("{count} CPUs"),
    }
}

/// The records of one host, apart by the states that it was in, in order of time. A state ends when the machine differs, or
/// when one kernel comes with another build or command line than before.
pub(super) fn split_by_state(mut records: Vec<JobRecord>) -> Vec<Vec<JobRecord>> {
    records.sort_by_key(|record| record.started);
    let mut found: Vec<Vec<JobRecord>> = Vec::new();
    let mut now: (String, BTreeMap<String, [Option<String>; 2]>) = Default::default();
    for record in records {
        let (state, kernel) = (machine_state(&record), kernel_identity(&record.fingerprint));
        let is_same = now.0 == state && now.1.get(&record.kernel).is_none_or(|known| *known == kernel);
        if !is_same || found.is_empty() {
            found.push(Vec::new());
            now = (state, BTreeMap::new());
        }
        now.1.insert(record.kernel.clone(), kernel);
        if let Some(last) = found.last_mut() {
            last.push(record);
        }
    }
    found
}

fn kernel_identity(fingerprint: &Fingerprint) -> [Option<String>; 2] {
    [fingerprint.kernel_version.clone(), fingerprint.kernel_command_line.clone()]
}

/// The words of each class, without those that all classes share beyond the first two.
pub(super) fn class_labels(classes: &[String]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = classes.iter().map(|class| class.split(", ").collect()).collect();
    let is_common = |word: &str| parts.len() > 1 && parts.iter().all(|class| class.contains(&word));
    let tell = |class: &Vec<&str>| {
        let kept =
            class.iter().enumerate().filter(|(at, word)| *at < 2 || (parts.len() > 1 && !is_common(word)));
        kept.map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
    };
    parts.iter().map(tell).collect()
}
