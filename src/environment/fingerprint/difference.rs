//! How two fingerprints differ, and how much that matters to a comparison.

use super::{Cache, Fingerprint, Smt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a difference does to a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Only to be told: it may be what is compared.
    Fact,
    /// The numbers may differ for this reason instead of the one that is studied.
    Warning,
    /// The numbers cannot be compared.
    Incomparable,
}

/// One field in which two machines differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Name of the field of [`Fingerprint`].
    pub field: &'static str,
    /// Its value in the first fingerprint.
    pub ours: String,
    /// Its value in the second.
    pub theirs: String,
    /// How much it matters.
    pub weight: Weight,
}

/// Separator of list entries. The kernel's own texts use commas and semicolons.
const BETWEEN: &str = " | ";

/// A row of the table of fields. `show` is `None` when the value is unknown.
struct Field {
    name: &'static str,
    weight: Weight,
    show: fn(&Fingerprint) -> Option<String>,
}

/// Every field with its weight.
///
/// Another processor is incomparable, and so is another way of compiling the measuring loop. Kernels are
/// compared on purpose, so that properties of a kernel are at most a warning.
const FIELDS: &[Field] = &[
    fact("kernel_release", |f| f.kernel_release.clone()),
    fact("kernel_version", |f| f.kernel_version.clone()),
    fact("kernel_command_line", |f| f.kernel_command_line.clone()),
    incomparable("architecture", |f| f.architecture.clone()),
    incomparable("cpu_model", |f| f.cpu_model.clone()),
    incomparable("cpu_vendor", |f| f.cpu_vendor.clone()),
    incomparable("cpu_family", |f| f.cpu_family.clone()),
    incomparable("cpu_model_number", |f| f.cpu_model_number.clone()),
    warning("cpu_stepping", |f| f.cpu_stepping.clone()),
    warning("microcode", |f| f.microcode.clone()),
    fact("cpus_online", |f| f.cpus_online.clone()),
    fact("cpu_count", |f| f.cpu_count.map(|n| n.to_string())),
    fact("cpus_allowed", |f| f.cpus_allowed.clone()),
    warning("smt", |f| smt(f.smt)),
    warning("caches", |f| caches(&f.caches)),
    warning("mitigations", |f| map(&f.mitigations)),
    warning("governor", |f| f.governor.clone()),
    warning("frequency_driver", |f| f.frequency_driver.clone()),
    warning("turbo", |f| f.turbo.map(|on| if on { "on" } else { "off" }.to_owned())),
    warning("huge_pages", |f| f.huge_pages.clone()),
    warning("huge_page_defrag", |f| f.huge_page_defrag.clone()),
    warning("huge_pages_reserved", |f| map(&f.huge_pages_reserved)),
    warning("clock_source", |f| f.clock_source.clone()),
    fact("clock_sources", |f| f.clock_sources.clone()),
    // For these two, absence is a value, so that bare metal and a guest differ.
    warning("hypervisor", |f| Some(f.hypervisor.clone().unwrap_or_else(|| "none".to_owned()))),
    fact("product", |f| f.product.clone()),
    warning("cpu_quota", |f| Some(f.cpu_quota.map_or_else(|| "none".to_owned(), |n| format!("{n} CPUs")))),
    fact("memory_bytes", |f| f.memory_bytes.map(|n| n.to_string())),
    fact("numa_nodes", |f| f.numa_nodes.map(|n| n.to_string())),
    warning("scratch_filesystem", |f| f.scratch_filesystem.clone()),
    warning("page_bytes", |f| f.page_bytes.map(|n| n.to_string())),
    fact("perf_event_paranoid", |f| f.perf_event_paranoid.map(|n| n.to_string())),
    fact("randomize_va_space", |f| f.randomize_va_space.map(|n| n.to_string())),
    fact("compiler", |f| f.compiler.clone()),
    fact("profile", |f| f.profile.clone()),
    incomparable("opt_level", |f| f.opt_level.clone()),
    fact("target", |f| f.target.clone()),
    fact("crate_version", |f| f.crate_version.clone()),
    incomparable("debug_assertions", |f| Some(if f.debug_assertions { "on" } else { "off" }.to_owned())),
];

const fn fact(name: &'static str, show: fn(&Fingerprint) -> Option<String>) -> Field {
    Field { name, weight: Weight::Fact, show }
}

const fn warning(name: &'static str, show: fn(&Fingerprint) -> Option<String>) -> Field {
    Field { name, weight: Weight::Warning, show }
}

const fn incomparable(name: &'static str, show: fn(&Fingerprint) -> Option<String>) -> Field {
    Field { name, weight: Weight::Incomparable, show }
}

fn smt(smt: Smt) -> Option<String> {
    match smt {
        Smt::Active => Some("active".to_owned()),
        Smt::Off => Some("off".to_owned()),
        Smt::Unknown => None,
    }
}

fn caches(caches: &[Cache]) -> Option<String> {
    let entries: Vec<_> = caches.iter().map(ToString::to_string).collect();
    (!entries.is_empty()).then(|| entries.join(BETWEEN))
}

fn map<V: std::fmt::Display>(map: &BTreeMap<String, V>) -> Option<String> {
    let entries: Vec<_> = map.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    (!entries.is_empty()).then(|| entries.join(BETWEEN))
}

impl Fingerprint {
    /// Every field with its value as text, in a fixed order; `None` where it is unknown.
    pub fn facts(&self) -> impl Iterator<Item = (&'static str, Option<String>)> {
        FIELDS.iter().map(|field| (field.name, (field.show)(self)))
    }

    /// The fields in which two fingerprints differ, the most important first.
    ///
    /// A value that is unknown on one side weighs one step less, because it may be the same.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut differences: Vec<_> = FIELDS.iter().filter_map(|field| field.compare(self, other)).collect();
        differences.sort_by_key(|d| std::cmp::Reverse(d.weight));
        differences
    }
}

impl Field {
    fn compare(&self, ours: &Fingerprint, theirs: &Fingerprint) -> Option<Difference> {
        let (a, b) = ((self.show)(ours), (self.show)(theirs));
        if a == b {
            return None;
        }
        let weight = if a.is_some() && b.is_some() { self.weight } else { self.weight.less() };
        let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let (ours, theirs) = without_common(&text(a), &text(b));
        Some(Difference { field: self.name, ours, theirs, weight })
    }
}

impl Weight {
    /// Its name in a record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Warning => "warning",
            Self::Incomparable => "incomparable",
        }
    }

    fn less(self) -> Self {
        match self {
            Self::Incomparable => Self::Warning,
            Self::Warning | Self::Fact => Self::Fact,
        }
    }
}

/// The entries that only one of two lists has, for each side: a difference in two of twenty mitigations stays readable.
fn without_common(ours: &str, theirs: &str) -> (String, String) {
    (only_in(ours, theirs), only_in(theirs, ours))
}

fn only_in(ours: &str, theirs: &str) -> String {
    let theirs: Vec<_> = theirs.split(BETWEEN).collect();
    let only: Vec<_> = ours.split(BETWEEN).filter(|part| !theirs.contains(part)).collect();
    if only.is_empty() { "nothing more".to_owned() } else { only.join(BETWEEN) }
}
