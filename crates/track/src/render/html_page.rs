//! A run, and histories, as one page of HTML that needs nothing else: no server, no network, no other file.
//!
//! The data are one block of JSON that the page's script reads, so text from a record never becomes markup: in the block
//! `<` is escaped, and the script sets text as text only. The policy in the head names the hashes of the one script and the
//! one style sheet; a browser runs nothing else and loads nothing.

mod case_data;
mod choice_data;
mod history_data;
mod page_asset;

pub use history_data::History;

use case_data::CaseData;
use history_data::HistoryData;
use serde::Serialize;
use std::collections::BTreeMap;
use syscost_analysis::record::paired::{CasePairs, Paired};
use syscost_analysis::render::paper_table::{Sheet, filled_sheets};
use syscost_analysis::study::comparison::Comparison;
use syscost_analysis::study::paper::{Figure, GROUP, Paper, figures};
use syscost_analysis::study::sequential::Row;
use syscost_engine::environment::doctor::Finding;
use syscost_engine::environment::{Cache, Fingerprint, Smt};
use syscost_engine::record::quantity::{NANOSECONDS, format_size};
use syscost_engine::record::{CurveRecord, FitRecord, GroupRun, Record};
use syscost_engine::study::disturbance::disturbance_sentence;
use syscost_platform::error::{Error, Result};

/// The version of the layout of the page's data.
const LAYOUT: u32 = 2;
/// What wrote a page without a run.
const TOOL: &str = concat!("syscost ", env!("CARGO_PKG_VERSION"));

/// What a page shows.
#[derive(Default)]
pub struct Page<'a> {
    /// The run, with its curves; `None` for a page of histories alone.
    pub record: Option<&'a Record>,
    /// What the doctor says of its machine, if it is this one.
    pub findings: &'a [Finding],
    /// The manual of each group, by name, in Markdown.
    pub manuals: BTreeMap<String, String>,
    /// Records side by side, in the order in which they are to be shown.
    pub comparison: Option<&'a Comparison>,
    /// Comparisons by turns.
    pub pairs: &'a [Paired],
    /// Ratios to a reference, night after night.
    pub histories: &'a [History<'a>],
    /// Other pages: their addresses, relative to this one, and what they show.
    pub others: &'a [(String, String)],
}

#[derive(Serialize)]
struct Data<'a> {
    page: u32,
    run: &'a str,
    tool: &'a str,
    scale: &'a str,
    unit: &'a str,
    session: Option<&'a str>,
    seed: u64,
    started: u64,
    seconds: f64,
    machine: Vec<[String; 2]>,
    mitigations: BTreeMap<String, String>,
    findings: Vec<[&'a str; 3]>,
    groups: Vec<GroupData<'a>>,
    comparison: Option<&'a Comparison>,
    pairs: Vec<PairsData<'a>>,
    histories: Vec<HistoryData<'a>>,
    others: &'a [(String, String)],
}

#[derive(Serialize)]
struct GroupData<'a> {
    name: &'a str,
    version: &'a str,
    clock: String,
    cpu: Option<usize>,
    manual: Option<&'a str>,
    notes: Vec<String>,
    fits: &'a [FitRecord],
    curves: &'a [CurveRecord],
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<PaperData>,
    cases: Vec<CaseData<'a>>,
}

impl Page<'_> {
    /// The page as text.
    ///
    /// # Errors
    /// The data cannot be written as JSON.
    pub fn to_html(&self) -> Result<String> {
        let json = serde_json::to_string(&self.page_data())
            .map_err(|e| Error::file("the page", "writing as JSON", e.into()))?;
        Ok(page_asset::html_document(&json))
    }

    fn page_data(&self) -> Data<'_> {
        let (run, machine) = (self.record, self.shown_machine());
        let text = |field: fn(&Record) -> &str| run.map_or("", field);
        Data {
            page: LAYOUT,
            run: text(|record| &record.run),
            tool: run.map_or(TOOL, |record| &record.tool),
            scale: text(|record| &record.scale),
            unit: run.map_or(NANOSECONDS, |record| &record.unit),
            session: run.and_then(|record| record.session.as_deref()),
            seed: run.map_or(0, |record| record.seed),
            started: run.map_or(0, |record| record.started),
            seconds: run.map_or(0.0, run_seconds),
            machine: machine.map(machine_facts).unwrap_or_default(),
            mitigations: machine.map(|machine| machine.mitigations.clone()).unwrap_or_default(),
            findings: self.findings.iter().map(|f| [&*f.fact, &*f.why, &*f.remedy]).collect(),
            groups: run.map(|record| self.all_group_data(record)).unwrap_or_default(),
            comparison: self.comparison,
            pairs: self.pairs.iter().map(PairsData::new).collect(),
            histories: self.histories.iter().map(HistoryData::new).collect(),
            others: self.others,
        }
    }

    /// The machine of the run, or the one on which a history went on last.
    fn shown_machine(&self) -> Option<&Fingerprint> {
        let newest = || self.histories.iter().filter_map(|history| history.points.last()).next();
        self.record.map(|record| &record.fingerprint).or_else(|| newest().map(|point| &point.fingerprint))
    }

    fn all_group_data<'a>(&'a self, record: &'a Record) -> Vec<GroupData<'a>> {
        record.groups.iter().map(|group| self.group_data(group, record)).collect()
    }

    fn group_data<'a>(&'a self, group: &'a GroupRun, record: &Record) -> GroupData<'a> {
        GroupData {
            name: &group.name,
            version: &group.version,
            clock: clock_text(group),
            cpu: group.cpu,
            manual: self.manuals.get(&group.name).map(String::as_str),
            notes: disturbance_sentence(group.cases.iter())
                .into_iter()
                .chain(group.notes.iter().cloned())
                .collect(),
            fits: &group.fits,
            curves: &group.curves,
            paper: (group.name == GROUP).then(|| PaperData::from_record(record)).flatten(),
            cases: group.cases.iter().map(|case| CaseData::new(case, group, &record.unit)).collect(),
        }
    }
}

/// Seconds from the beginning of the run to the end of its last execution; 0 where executions were not recorded.
fn run_seconds(record: &Record) -> f64 {
    let measured = record.cases().filter_map(|(_, case)| case.measured());
    measured.flat_map(|measured| &measured.executions).map(|execution| execution.at).fold(0.0, f64::max)
}

fn clock_text(group: &GroupRun) -> String {
    let clock = &group.clock;
    if clock.hz > 0.0 {
        format!("{} {:.1} MHz ± {:.2} ppm", clock.source, clock.hz / 1e6, clock.uncertainty_ppm)
    } else {
        clock.source.clone()
    }
}

// What a reader wants to know of a machine before its numbers.

/// Name and value of what is known, the most telling first.
fn machine_facts(fingerprint: &Fingerprint) -> Vec<[String; 2]> {
    let f = fingerprint;
    let text = |text: &Option<String>| text.clone();
    let all = [
        ("processor", text(&f.cpu_model)),
        ("CPUs", cpu_text(f)),
        ("kernel", text(&f.kernel_release)),
        ("kernel build", text(&f.kernel_version)),
        ("kernel command line", text(&f.kernel_command_line)),
        ("hypervisor", f.hypervisor.clone().or_else(|| Some("none visible".into()))),
        ("product", text(&f.product)),
        ("memory", f.memory_bytes.map(format_size)),
        ("NUMA nodes", f.numa_nodes.map(|nodes| nodes.to_string())),
        ("caches", cache_text(&f.caches)),
        ("CPU quota", f.cpu_quota.map(|quota| format!("{quota} CPUs"))),
        ("frequency governor", text(&f.governor)),
        ("turbo", f.turbo.map(|on| if on { "on" } else { "off" }.into())),
        ("microcode", text(&f.microcode)),
        ("clock source of the kernel", text(&f.clock_source)),
        ("huge pages", text(&f.huge_pages)),
        ("scratch file system", text(&f.scratch_filesystem)),
        ("compiler", text(&f.compiler)),
        ("target and profile", target_and_profile(f)),
        ("syscost", text(&f.crate_version)),
    ];
    all.into_iter().filter_map(|(name, value)| Some([name.into(), value?])).collect()
}

fn cpu_text(f: &Fingerprint) -> Option<String> {
    let threads = match f.smt {
        Smt::Active => ", several threads a core",
        Smt::Off => ", one thread a core",
        Smt::Unknown => "",
    };
    let allowed = f.cpus_allowed.as_ref().map_or(String::new(), |list| format!(", allowed {list}"));
    Some(format!("{}{threads}{allowed}", f.cpu_count?))
}

fn cache_text(caches: &[Cache]) -> Option<String> {
    let one = |cache: &Cache| {
        format!("L{} {} {}", cache.level, cache.kind.to_lowercase(), format_size(cache.bytes))
    };
    let all: Vec<_> = caches.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join(" · "))
}

fn target_and_profile(f: &Fingerprint) -> Option<String> {
    Some(format!("{}, {}", f.target.as_ref()?, f.profile.as_deref().unwrap_or("unknown profile")))
}

// A comparison by turns as the page's script reads it: the verdicts, derived from the pairs, and the pairs.

#[derive(Serialize)]
struct PairsData<'a> {
    run: &'a str,
    started: u64,
    by_turns: bool,
    sides: &'a [String; 2],
    threshold: f64,
    margin: f64,
    /// What the times are of, where they are not this machine's, and the notes on the whole.
    notes: Vec<String>,
    cases: Vec<Case<'a>>,
}

#[derive(Serialize)]
struct Case<'a> {
    #[serde(flatten)]
    row: Row,
    /// Each pair: B over A less 1, and why it does not count.
    points: Vec<(f64, Option<&'a str>)>,
}

impl<'a> PairsData<'a> {
    /// The comparison with its verdicts.
    pub(super) fn new(paired: &'a Paired) -> Self {
        let cases = paired.judge().into_iter().zip(&paired.cases);
        Self {
            run: &paired.run,
            started: paired.started,
            by_turns: paired.by_turns,
            sides: &paired.sides,
            threshold: paired.rule.threshold,
            margin: paired.rule.margin,
            notes: caution_and_notes(paired),
            cases: cases.map(|(row, case)| Case { row, points: pair_points(case) }).collect(),
        }
    }
}

fn caution_and_notes(paired: &Paired) -> Vec<String> {
    let caution = paired.clock_kind().clock_warning().map(|caution| format!("measured: {caution}"));
    caution.into_iter().chain(paired.notes.iter().cloned()).collect()
}

fn pair_points(case: &CasePairs) -> Vec<(f64, Option<&str>)> {
    case.pairs.iter().map(|pair| (pair.difference.exp_m1(), pair.rejected.as_deref())).collect()
}

// The tables and figures of the paper that the group `displacement` redoes, as the page's script reads them.

#[derive(Serialize)]
struct PaperData {
    tables: Vec<Sheet>,
    figures: Vec<FigureData>,
}

#[derive(Serialize)]
struct FigureData {
    title: &'static str,
    curves: Vec<CurveRecord>,
}

impl PaperData {
    /// Those that have a number of the record; `None` where none has.
    pub(super) fn from_record(record: &Record) -> Option<Self> {
        let paper = Paper::read().ok()?;
        let drawn = |Figure { title, curves, .. }| FigureData { title, curves };
        let tables = filled_sheets(&paper, record);
        let figures = figures(&paper, record).into_iter().map(drawn).collect();
        (!tables.is_empty()).then_some(Self { tables, figures })
    }
}

#[cfg(test)]
mod tests;
