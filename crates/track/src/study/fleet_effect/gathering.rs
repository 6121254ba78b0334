//! Reads the records of one machine after another, and keeps only the data for the results: a few bytes for each case.

use super::{Column, FleetAnswer, Observed, judge_cases};
use crate::record::fleet_record::{Experiment, Figure, JobRecord};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use syscost_engine::environment::Fingerprint;

/// The effects from the hosts that were added so far.
pub struct Gathering<'a> {
    experiment: &'a Experiment,
    machines: Vec<Machine>,
    classes: Vec<String>,
    /// The id of each case by the case's number, and the numbers by id, version and clock.
    ids: Vec<String>,
    numbers: HashMap<String, Vec<(String, String, u32)>>,
    /// The effects for each kernel but the first, by the number of the case.
    observed: Vec<Vec<Vec<Observed>>>,
    /// The hosts with a job in each boot, by the boot's name.
    boots: BTreeMap<String, BTreeSet<String>>,
    warnings: Vec<String>,
    /// Hosts whose state changed between jobs.
    changed: Vec<String>,
    /// The number of jobs that ran in the same boot as another job of their host.
    of_one_boot: usize,
    emulated: bool,
}

/// The logarithms of a time, ns, and of the core's frequency, Hz, if it is known.
type Timed = (f64, Option<f64>);
/// For each case by number, the logarithms of its jobs on one machine, by kernel.
type Logs = BTreeMap<u32, Vec<Vec<f64>>>;

impl<'a> Gathering<'a> {
    /// A gathering without records.
    pub fn new(experiment: &'a Experiment) -> Self {
        Self {
            experiment,
            machines: Vec::new(),
            classes: Vec::new(),
            ids: Vec::new(),
            numbers: HashMap::new(),
            observed: vec![Vec::new(); experiment.kernels.len().saturating_sub(1)],
            boots: BTreeMap::new(),
            warnings: Vec::new(),
            changed: Vec::new(),
            of_one_boot: 0,
            emulated: false,
        }
    }

    /// Adds the records of one host.
    pub fn add(&mut self, host: &str, records: Vec<JobRecord>) {
        for record in records.iter().filter(|record| !record.boot.is_empty()) {
            let hosts = self.boots.entry(record.boot.clone()).or_default();
            self.of_one_boot += usize::from(!hosts.insert(host.to_owned()));
        }
        let states = split_by_state(records);
        if states.len() > 1 {
            self.changed.push(host.to_owned());
        }
        let several = states.len() > 1;
        for (at, records) in states.into_iter().enumerate() {
            let name = if several { format!("{host}#{}", at + 1) } else { host.to_owned() };
            self.add_machine(name, &records);
        }
    }

    /// Adds one machine with its class, and its effect on each case under each kernel.
    fn add_machine(&mut self, name: String, records: &[JobRecord]) {
        let Some(first) = records.first() else { return };
        let state = machine_state(first);
        let class = self.classes.iter().position(|known| *known == state).unwrap_or_else(|| {
            self.classes.push(state.clone());
            self.classes.len() - 1
        });
        self.emulated |= first.fingerprint.cpu_model.as_deref().is_some_and(|name| name.contains("QEMU TCG"));
        let machine = self.machines.len();
        self.machines.push(Machine { name, class });
        for (case, kernels) in self.logs_by_kernel(records) {
            let Some((reference, others)) = kernels.split_first() else { continue };
            for (kernel, logs) in others.iter().enumerate() {
                let Some(observed) = Observed::from_logs(machine as u32, reference, logs) else { continue };
                let cases = &mut self.observed[kernel];
                if cases.len() <= case as usize {
                    cases.resize_with(case as usize + 1, Vec::new);
                }
                let of_case = &mut cases[case as usize];
                if of_case.capacity() == 0 {
                    // Exactly as large as it can become, since there are millions of values.
                    of_case.reserve_exact(self.experiment.hosts.len());
                }
                of_case.push(observed);
            }
        }
    }

    /// The logarithms of every case by kernel: of cycles if all jobs of the machine have the core's frequency, else of ns.
    fn logs_by_kernel(&mut self, records: &[JobRecord]) -> Logs {
        let count = self.experiment.kernels.len();
        let mut found: BTreeMap<u32, Vec<Vec<Timed>>> = BTreeMap::new();
        for record in records {
            let Some(kernel) = self.experiment.kernels.iter().position(|name| *name == record.kernel) else {
                continue;
            };
            for figure in &record.cases {
                let case = self.number_or_add_case(figure);
                let kernels = found.entry(case).or_insert_with(|| vec![Vec::new(); count]);
                kernels[kernel].push((figure.ns.ln(), figure.core_hz.map(f64::ln)));
            }
        }
        let one_measure = |kernels: Vec<Vec<Timed>>| {
            let known = kernels.iter().flatten().all(|(_, hz)| hz.is_some());
            let log = |(ns, hz): &Timed| ns + hz.filter(|_| known).unwrap_or_default();
            kernels.iter().map(|kernel| kernel.iter().map(log).collect()).collect()
        };
        found.into_iter().map(|(case, kernels)| (case, one_measure(kernels))).collect()
    }

    /// The number of the case of this id, version and clock, which is added if it is new.
    fn number_or_add_case(&mut self, figure: &Figure) -> u32 {
        let known = self.numbers.get(&figure.id).into_iter().flatten();
        let mut alike =
            known.filter(|(version, clock, _)| *version == figure.version && *clock == figure.clock);
        if let Some((_, _, number)) = alike.next() {
            return *number;
        }
        let number = self.ids.len() as u32;
        self.ids.push(figure.id.clone());
        let key = (figure.version.clone(), figure.clock.clone(), number);
        self.numbers.entry(figure.id.clone()).or_default().push(key);
        number
    }

    /// The results, with the effects on the machines of `host`, if one is given.
    pub fn into_answer(mut self, host: Option<&str>) -> FleetAnswer {
        self.add_warnings();
        let classes: Vec<usize> = self.machines.iter().map(|machine| machine.class).collect();
        let is_asked = |machine: &Machine| host.is_some_and(|host| machine.is_state_of_host(host));
        let asked: Vec<bool> = self.machines.iter().map(is_asked).collect();
        let kernels = self.experiment.kernels.iter().skip(1);
        let columns = kernels.zip(std::mem::take(&mut self.observed)).map(|(kernel, observed)| {
            let named = self.ids.iter().zip(observed).filter(|(_, observed)| !observed.is_empty());
            let mut cases = judge_cases(named, &classes, &asked);
            cases.sort_by(|a, b| a.id.cmp(&b.id));
            Column { kernel: kernel.clone(), cases }
        });
        let columns = columns.collect();
        let count = |class| classes.iter().filter(|c| **c == class).count();
        let labels = class_labels(&self.classes).into_iter().enumerate();
        let classes = labels.map(|(class, what)| Class { what, machines: count(class) }).collect();
        FleetAnswer {
            experiment: self.experiment.name.clone(),
            kernels: self.experiment.kernels.clone(),
            machines: self.machines,
            classes,
            warnings: self.warnings,
            columns,
        }
    }

    fn add_warnings(&mut self) {
        let shared = self.boots.values().find(|hosts| hosts.len() > 1);
        let mut said: Vec<String> = Vec::new();
        said.extend(shared.map(|hosts| {
            format!(
                "{} ran under one boot, so they are one machine: that they agree says nothing",
                hosts.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ")
            )
        }));
        if self.of_one_boot > 0 {
            said.push(format!(
                "{} jobs ran under the boot of another job of their machine: what differs from boot to boot is not seen there",
                self.of_one_boot
            ));
        }
        if !self.changed.is_empty() {
            let names = self.changed.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
            said.push(format!(
                "{names} changed in the middle (processor state, firmware, command line or build), and each state is a machine \
                 of its own here"
            ));
        }
        if self.emulated {
            said.push("emulated by QEMU (TCG): these are no times of hardware".into());
        }
        self.warnings.extend(said);
    }
}

// Classes of like machines, and machines that changed during an experiment.

/// One machine in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The host, and behind a `#` the number of the state if the host changed.
    pub name: String,
    /// The index of its class.
    pub class: usize,
}

impl Machine {
    /// Whether it is a state of this host.
    fn is_state_of_host(&self, host: &str) -> bool {
        self.name.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    }
}

/// Machines that agree in all properties that affect numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Class {
    /// Their properties, as text.
    pub what: String,
    /// The number of machines.
    pub machines: usize,
}

/// The properties of a machine that affect its numbers, without the kernel, as text: equal texts mean like
/// machines.
fn machine_state(record: &JobRecord) -> String {
    let f = &record.fingerprint;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let model = [&f.cpu_vendor, &f.cpu_family, &f.cpu_model_number, &f.cpu_stepping].map(text).join("/");
    let shown = f.cpu_model.clone().unwrap_or_else(|| format!("CPU {model}"));
    let mut words = vec![shown, cpu_count_text(f.cpu_count)];
    let mut add_word = |what: &str, value: &Option<String>| {
        words.extend(value.as_ref().filter(|value| !value.is_empty()).map(|value| format!("{what} {value}")));
    };
    add_word("model", &Some(model).filter(|model| model != "///"));
    add_word("microcode", &f.microcode);
    add_word("hypervisor", &f.hypervisor);
    add_word("product", &f.product);
    add_word("governor", &f.governor);
    add_word("driver", &f.frequency_driver);
    add_word("turbo", &f.turbo.map(|on| if on { "on" } else { "off" }.to_owned()));
    add_word("SMT", &Some(format!("{:?}", f.smt).to_lowercase()));
    add_word(
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

/// The records of one host in order of time, split by the states of the host. A new state begins if the machine differs, or if a
/// kernel has another build or command line than before.
fn split_by_state(mut records: Vec<JobRecord>) -> Vec<Vec<JobRecord>> {
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

/// The label of each class: its first two words, and the others that not all classes share.
fn class_labels(classes: &[String]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = classes.iter().map(|class| class.split(", ").collect()).collect();
    let is_common = |word: &str| parts.len() > 1 && parts.iter().all(|class| class.contains(&word));
    let label = |class: &Vec<&str>| {
        let kept =
            class.iter().enumerate().filter(|(at, word)| *at < 2 || (parts.len() > 1 && !is_common(word)));
        kept.map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
    };
    parts.iter().map(label).collect()
}
