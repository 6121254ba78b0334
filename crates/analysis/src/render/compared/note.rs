//! Sentences about a comparison: its sides above the table, its rows below it.

use crate::study::comparison::{Baseline, Basis, Change, Comparison, Relation, Replicate};
use std::collections::BTreeMap;
use syscost_engine::environment::{Difference, Weight};
use syscost_engine::record::quantity;
use syscost_engine::render::enumerate_names;

/// Longer values of a fact are in the JSON.
const LONGEST_FACT: usize = 24;

impl Baseline {
    /// The baseline and how it is compared, in a line: `kernel 6.12.3, 5 boots, 15 processes, default; by boots,
    /// canaries +0.1%`.
    pub fn summary(&self) -> String {
        let mut parts = vec![match self.kernels.len() {
            0 => "kernel unknown".to_owned(),
            1 => format!("kernel {}", self.kernels[0]),
            _ => format!("kernels {}", self.kernels.join(", ")),
        }];
        parts.push(format!("{} {}", self.boots, Replicate::Boot.name(self.boots)));
        if self.sessions != self.boots {
            parts.push(format!("{} {}", self.sessions, Replicate::Session.name(self.sessions)));
        }
        parts.push(format!(
            "{} {}",
            self.processes,
            if self.processes == 1 { "process" } else { "processes" }
        ));
        parts.push(self.scale.clone());
        let mut text = parts.join(", ");
        if self.sessions < 2 {
            text.push_str(", unreplicated");
        }
        if let Some(relation) = &self.relation {
            text.push_str(&format!("; by {}", relation.replicate.name(2)));
            let said = |what, ratio: Option<f64>| {
                ratio.map(|ratio| format!(", {what} {}", quantity::format_change(ratio)))
            };
            text.extend(said("cycle", relation.cycle).or(said("canaries", relation.canary)));
        }
        text
    }
}

impl Relation {
    /// Differences from the first, warnings first.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.incomparable.iter().cloned().collect();
        notes.extend(self.warnings.iter().map(|sentence| format!("warning: {sentence}")));
        let heavy = self.differences.iter().filter(|d| d.weight > Weight::Fact);
        notes.extend(heavy.map(|d| format!("{}: {}: {} → {}", d.weight.name(), d.field, d.ours, d.theirs)));
        // The release of the kernel stands in the summary.
        let is_fact = |d: &&Difference| d.weight == Weight::Fact && d.field != "kernel_release";
        let facts: Vec<_> = self.differences.iter().filter(is_fact).map(fact_text).collect();
        if !facts.is_empty() {
            notes.push(format!("differs too: {}", facts.join("; ")));
        }
        notes
    }
}

fn fact_text(difference: &Difference) -> String {
    let Difference { field, ours, theirs, .. } = difference;
    match syscost_engine::render::display_width(ours).max(syscost_engine::render::display_width(theirs))
        > LONGEST_FACT
    {
        true => (*field).to_owned(),
        false => format!("{field} {ours} → {theirs}"),
    }
}

impl Comparison {
    /// Why rows have no verdict: each reason once, with its baselines and its rows. Where only the interval is too
    /// wide, the table says enough.
    pub fn remarks(&self) -> Vec<String> {
        let mut of_reason: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
        for row in &self.rows {
            for (column, cell) in row.cells.iter().enumerate() {
                if let Some(reason) = cell.change.as_ref().and_then(remark_reason) {
                    of_reason.entry((column, reason)).or_default().push(&row.id);
                }
            }
        }
        let mut columns: BTreeMap<(&str, &[&str]), Vec<&str>> = BTreeMap::new();
        for ((column, reason), ids) in &of_reason {
            columns.entry((reason, ids)).or_default().push(&self.baselines[*column].name);
        }
        let mut columns: Vec<_> = columns.into_iter().collect();
        columns.sort_by_key(|((reason, ids), _)| (std::cmp::Reverse(ids.len()), *reason));
        columns.iter().map(|((reason, ids), names)| self.remark_line(names, reason, ids)).collect()
    }

    fn remark_line(&self, names: &[&str], reason: &str, ids: &[&str]) -> String {
        let names = match names.len() + 1 {
            all if all == self.baselines.len() && all > 2 => "all baselines".to_owned(),
            _ => enumerate_names(names, "baselines more"),
        };
        let rows = if ids.len() == self.rows.len() {
            "all cases".to_owned()
        } else {
            enumerate_names(ids, "cases more")
        };
        format!("{names}: {rows}: {reason}")
    }
}

/// The reason to print below the table for a change, if it needs one.
fn remark_reason(change: &Change) -> Option<&str> {
    match change.basis {
        Some(Basis::Replicates) => None,
        Some(Basis::History) => {
            Some("too few replicates a side; judged by how those in other records deviate")
        }
        None => change.reason.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use crate::study::comparison::fixture_head::head;
    use crate::study::comparison::{Options, compare};

    #[test]
    fn a_summary_says_what_it_is_and_how_it_is_compared() {
        let comparison = compare(&[head("6.1", 5, 3), head("6.2", 1, 1)], &[], Options::default());
        let [first, second] = [0, 1].map(|at| comparison.baselines[at].summary());
        assert_eq!(first, "kernel 6.1, 5 boots, 15 processes, default");
        assert_eq!(second, "kernel 6.2, 1 boot, 1 process, default, unreplicated; by boots, canaries 0.0%");
    }

    #[test]
    fn weighty_differences_come_first_and_facts_are_short() {
        let (mut a, mut b) = (head("a", 1, 1), head("b", 1, 1));
        // Without a processor it is unknown whether there is a hypervisor.
        for head in [&mut a, &mut b] {
            head.fingerprints[0].cpu_model = Some("EPYC".into());
        }
        b.fingerprints[0].kernel_version = Some("#1 SMP PREEMPT_DYNAMIC and a long date".into());
        b.fingerprints[0].microcode = Some("0x2".into());
        b.fingerprints[0].hypervisor = Some("KVM".into());
        b.fingerprints[0].memory_bytes = Some(7);
        let comparison = compare(&[a, b], &[], Options::default());
        let notes = comparison.baselines[1].relation.as_ref().expect("a relation").notes();
        assert_eq!(
            notes,
            [
                "warning: hypervisor: none → KVM",
                "differs too: kernel_version; microcode unknown → 0x2; memory_bytes unknown → 7"
            ]
        );
    }

    #[test]
    fn a_reason_is_told_once() {
        let all = compare(&[head("a", 1, 1), head("b", 1, 1), head("c", 1, 1)], &[], Options::default());
        assert_eq!(all.remarks().len(), 1);
        assert!(all.remarks()[0].starts_with("all baselines: all cases: unreplicated: one boot a side"));
        let mut part = head("b", 5, 1);
        part.series[2].version = "another".into();
        let remarks = compare(&[head("a", 5, 1), part], &[], Options::default()).remarks();
        assert!(
            remarks.len() == 1 && remarks[0].starts_with("b: syscall/getpid: another version"),
            "{remarks:?}"
        );
    }
}
