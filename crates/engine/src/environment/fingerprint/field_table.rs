//! The fields of a fingerprint: how a difference in each affects a comparison, and whether it begins another series.

use super::{Cache, Fingerprint, Smt};
use Series::{Another, Reported, Same};
use Weight::{Fact, Incomparable, Warning};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a difference in a field affects a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// The difference is only shown: it may be the one under study.
    Fact,
    /// The numbers may differ because of this field instead of the change under study.
    Warning,
    /// The numbers cannot be compared.
    Incomparable,
}

/// How a difference in a field affects the history of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// The runs belong to two series: neither is the last run of the other, and neither widens the other's intervals.
    Another,
    /// The runs belong to one series, and the difference is shown beside the numbers.
    Reported,
    /// The runs belong to one series: no number depends on the field.
    Same,
}

/// Separator of list entries. The kernel's own texts use commas and semicolons.
pub(super) const BETWEEN: &str = " | ";

/// A row of the table of fields. `show` returns the value as text, `None` if it is unknown.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) weight: Weight,
    pub(super) series: Series,
    pub(super) show: Show,
}

type Show = fn(&Fingerprint) -> Option<String>;

/// Every field with its weight.
///
/// Another processor is incomparable, and so is another way of compiling the measuring loop. Kernels are
/// compared on purpose, so properties of a kernel are at most a warning. The history of a machine is stricter: its last run
/// must agree in every field on which all numbers depend. `src/manual/series.md` shows the same table.
pub(super) const FIELDS: &[Field] = &[
    field(Fact, Another, "kernel_release", |f| f.kernel_release.clone()),
    field(Fact, Another, "kernel_version", |f| f.kernel_version.clone()),
    field(Fact, Reported, "kernel_command_line", |f| f.kernel_command_line.clone()),
    field(Incomparable, Another, "architecture", |f| f.architecture.clone()),
    field(Incomparable, Another, "cpu_model", |f| f.cpu_model.clone()),
    field(Incomparable, Another, "cpu_vendor", |f| f.cpu_vendor.clone()),
    field(Incomparable, Another, "cpu_family", |f| f.cpu_family.clone()),
    field(Incomparable, Another, "cpu_model_number", |f| f.cpu_model_number.clone()),
    field(Warning, Reported, "cpu_stepping", |f| f.cpu_stepping.clone()),
    field(Warning, Reported, "microcode", |f| f.microcode.clone()),
    field(Fact, Another, "cpus_online", |f| f.cpus_online.clone()),
    field(Fact, Same, "cpu_count", |f| f.cpu_count.map(|n| n.to_string())),
    field(Fact, Another, "cpus_allowed", |f| f.cpus_allowed.clone()),
    field(Incomparable, Another, "cpu_class", |f| f.cpu_class.clone()),
    field(Warning, Another, "smt", |f| smt_text(f.smt)),
    field(Warning, Reported, "caches", |f| caches_text(&f.caches)),
    field(Warning, Reported, "cache_ways", |f| f.hardware.cache_ways.clone()),
    field(Fact, Reported, "nominal_clock", |f| f.hardware.nominal_clock.clone()),
    field(Fact, Reported, "memory_modules", |f| f.hardware.memory_modules.clone()),
    field(Fact, Same, "disks", |f| f.hardware.disks.clone()),
    field(Fact, Same, "network_cards", |f| f.hardware.network_cards.clone()),
    field(Warning, Another, "mitigations", |f| map_text(&f.mitigations)),
    field(Warning, Reported, "governor", |f| f.governor.clone()),
    field(Warning, Reported, "frequency_driver", |f| f.frequency_driver.clone()),
    field(Warning, Reported, "turbo", |f| f.turbo.map(|on| if on { "on" } else { "off" }.to_owned())),
    field(Warning, Another, "huge_pages", |f| f.huge_pages.clone()),
    field(Warning, Reported, "huge_page_defrag", |f| f.huge_page_defrag.clone()),
    field(Warning, Reported, "huge_pages_reserved", |f| map_text(&f.huge_pages_reserved)),
    field(Warning, Another, "clock_source", |f| f.clock_source.clone()),
    field(Fact, Same, "clock_sources", |f| f.clock_sources.clone()),
    // For these two, absence is a value, so that bare metal and a guest differ.
    field(Warning, Another, "hypervisor", hypervisor_text),
    field(Fact, Another, "product", |f| f.product.clone()),
    field(Warning, Another, "cpu_quota", |f| {
        Some(f.cpu_quota.map_or_else(|| "none".to_owned(), |n| format!("{n} CPUs")))
    }),
    field(Fact, Same, "memory_bytes", |f| f.memory_bytes.map(|n| n.to_string())),
    field(Fact, Reported, "numa_nodes", |f| f.numa_nodes.map(|n| n.to_string())),
    field(Warning, Another, "scratch_filesystem", |f| f.scratch_filesystem.clone()),
    field(Warning, Another, "page_bytes", |f| f.page_bytes.map(|n| n.to_string())),
    field(Warning, Another, "scratch_options", |f| f.surroundings.scratch_options.clone()),
    field(Warning, Another, "scratch_device", |f| f.surroundings.scratch_device.clone()),
    field(Warning, Another, "seccomp", |f| f.surroundings.seccomp.clone()),
    field(Warning, Another, "store_bypass", |f| f.surroundings.store_bypass.clone()),
    field(Warning, Another, "indirect_branches", |f| f.surroundings.indirect_branches.clone()),
    field(Warning, Another, "scheduling", |f| f.surroundings.scheduling.clone()),
    field(Warning, Reported, "nice", |f| f.surroundings.nice.clone()),
    field(Warning, Another, "memory_limit", |f| f.surroundings.memory_limit.clone()),
    field(Warning, Another, "io_limit", |f| f.surroundings.io_limit.clone()),
    field(Warning, Another, "memory_nodes", |f| f.surroundings.memory_nodes.clone()),
    field(Warning, Another, "user_namespace", |f| f.surroundings.user_namespace.clone()),
    field(Warning, Another, "tracer", |f| f.surroundings.tracer.clone()),
    field(Warning, Another, "environment", |f| f.surroundings.environment.clone()),
    field(Fact, Reported, "new_privileges", |f| f.surroundings.new_privileges.clone()),
    field(Warning, Another, "layout", |f| f.surroundings.layout.clone()),
    field(Warning, Another, "timer_slack_ns", |f| f.surroundings.timer_slack_ns.clone()),
    field(Warning, Another, "process_huge_pages", |f| f.surroundings.process_huge_pages.clone()),
    field(Warning, Reported, "confinement", |f| f.surroundings.confinement.clone()),
    field(Fact, Same, "perf_event_paranoid", |f| f.perf_event_paranoid.map(|n| n.to_string())),
    field(Fact, Another, "randomize_va_space", |f| f.randomize_va_space.map(|n| n.to_string())),
    field(Fact, Reported, "compiler", |f| f.compiler.clone()),
    field(Fact, Reported, "profile", |f| f.profile.clone()),
    field(Incomparable, Another, "opt_level", |f| f.opt_level.clone()),
    field(Fact, Another, "target", |f| f.target.clone()),
    field(Fact, Reported, "crate_version", |f| f.crate_version.clone()),
    field(Incomparable, Another, "debug_assertions", |f| {
        Some(if f.debug_assertions { "on" } else { "off" }.to_owned())
    }),
];

impl Weight {
    /// Its name in a record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Warning => "warning",
            Self::Incomparable => "incomparable",
        }
    }

    pub(super) fn step_down(self) -> Self {
        match self {
            Self::Incomparable => Self::Warning,
            Self::Warning | Self::Fact => Self::Fact,
        }
    }
}

/// The hypervisor, or `none` on bare metal. Unknown if the kernel does not describe the processor: `/proc` may be
/// mounted with `subset=pid`, which hides it.
fn hypervisor_text(of: &Fingerprint) -> Option<String> {
    let is_described = of.cpu_model.is_some() || of.cpu_vendor.is_some();
    of.hypervisor.clone().or_else(|| is_described.then(|| "none".to_owned()))
}

const fn field(weight: Weight, series: Series, name: &'static str, show: Show) -> Field {
    Field { name, weight, series, show }
}

fn smt_text(smt: Smt) -> Option<String> {
    match smt {
        Smt::Active => Some("active".to_owned()),
        Smt::Off => Some("off".to_owned()),
        Smt::Unknown => None,
    }
}

fn caches_text(caches: &[Cache]) -> Option<String> {
    let entries: Vec<_> = caches.iter().map(ToString::to_string).collect();
    (!entries.is_empty()).then(|| entries.join(BETWEEN))
}

fn map_text<V: std::fmt::Display>(map: &BTreeMap<String, V>) -> Option<String> {
    let entries: Vec<_> = map.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    (!entries.is_empty()).then(|| entries.join(BETWEEN))
}

// How two fingerprints differ, and how much that matters to a comparison.

/// One field in which two machines differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Name of the field of [`Fingerprint`].
    pub field: &'static str,
    /// Its value in the first fingerprint.
    pub ours: String,
    /// Its value in the second.
    pub theirs: String,
    /// How the difference affects a comparison.
    pub weight: Weight,
    /// How the difference affects the history of a machine. An unknown value never begins another series.
    pub series: Series,
}

impl Fingerprint {
    /// Every field with its value as text, in a fixed order; `None` where it is unknown.
    pub fn field_values(&self) -> impl Iterator<Item = (&'static str, Option<String>)> {
        FIELDS.iter().map(|field| (field.name, (field.show)(self)))
    }

    /// Whether runs with the two fingerprints belong to one series: no field on which all numbers depend is known to
    /// differ.
    pub fn is_same_series(&self, other: &Self) -> bool {
        !self.differences(other).iter().any(|difference| difference.series == Series::Another)
    }

    /// The fields in which two fingerprints differ, the most important first.
    ///
    /// If a value is unknown on one side, the weight is one step lower, because the values may be equal.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut differences: Vec<_> = FIELDS.iter().filter_map(|field| field.compare(self, other)).collect();
        differences.sort_by_key(|d| std::cmp::Reverse(d.weight));
        differences
    }
}

impl Field {
    /// The difference of this field between two fingerprints; `None` if the values are equal.
    fn compare(&self, ours: &Fingerprint, theirs: &Fingerprint) -> Option<Difference> {
        let (a, b) = ((self.show)(ours), (self.show)(theirs));
        if a == b {
            return None;
        }
        let (weight, series) = if a.is_some() && b.is_some() {
            (self.weight, self.series)
        } else {
            (self.weight.step_down(), Series::Same)
        };
        let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let (a, b) = (text(a), text(b));
        let (ours, theirs) = (entries_only_in(&a, &b), entries_only_in(&b, &a));
        Some(Difference { field: self.name, ours, theirs, weight, series })
    }
}

/// The entries of `ours` that `theirs` lacks, as text.
fn entries_only_in(ours: &str, theirs: &str) -> String {
    let theirs: Vec<_> = theirs.split(BETWEEN).collect();
    let only: Vec<_> = ours.split(BETWEEN).filter(|part| !theirs.contains(part)).collect();
    if only.is_empty() { "nothing more".to_owned() } else { only.join(BETWEEN) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = include_str!("../../../../../src/manual/series.md");

    /// The fields in the table of the manual, each with its entry in the series column.
    fn manual_table() -> BTreeMap<&'static str, &'static str> {
        let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
        let rows = MANUAL.lines().filter(|line| line.starts_with('|')).skip(2).map(cells);
        let fields = |row: Vec<&'static str>| {
            let names = row[1].split_whitespace().map(|name| name.trim_matches('`'));
            names.map(|name| (name, row[2])).collect::<Vec<_>>()
        };
        rows.flat_map(fields).collect()
    }

    #[test]
    fn the_manual_has_the_same_table() {
        let list = |series| match series {
            Another => "another series",
            Reported => "reported",
            Same => "–",
        };
        let table: BTreeMap<_, _> = FIELDS.iter().map(|field| (field.name, list(field.series))).collect();
        assert_eq!(manual_table(), table);
    }

    #[test]
    fn every_incomparable_field_begins_another_series() {
        let incomparable = FIELDS.iter().filter(|field| field.weight == Weight::Incomparable);
        assert!(incomparable.into_iter().all(|field| field.series == Another));
    }
}
