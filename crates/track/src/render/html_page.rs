//! A run and histories as one page of HTML that needs no server, no network and no other file.
//!
//! The page's script reads its data from one block of JSON. Text from a record never becomes markup: in the block `<` is escaped,
//! and the script inserts text as text only. The policy in the head names the hashes of the script and of the style sheet, so
//! that a browser runs no other script and loads nothing.

mod case_data;
mod history_data;

pub use history_data::History;

use base64::prelude::{BASE64_STANDARD as STANDARD, Engine};
use case_data::case_data;
use history_data::history_data;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use syscost_analysis::record::paired::{PairRecord, Paired};
use syscost_analysis::render::paper_table::filled_sheets;
use syscost_analysis::study::comparison::Comparison;
use syscost_analysis::study::paper::{GROUP, Paper, figures};
use syscost_engine::environment::doctor::Finding;
use syscost_engine::environment::{Cache, Fingerprint, Smt};
use syscost_engine::record::quantity::{NANOSECONDS, format_size};
use syscost_engine::record::{GroupRun, Record};
use syscost_engine::study::disturbance::disturbance_sentence;

/// The version of the layout of the page's data.
const LAYOUT: u32 = 2;
/// The tool and version in a page without a run.
const TOOL: &str = concat!("syscost ", env!("CARGO_PKG_VERSION"));

/// The content of a page.
#[derive(Default)]
pub struct Page<'a> {
    /// The run, with its curves; `None` for a page of histories alone.
    pub record: Option<&'a Record>,
    /// The doctor's findings on the machine of the run, if it is this machine.
    pub findings: &'a [Finding],
    /// The manual of each group, by name, in Markdown.
    pub manuals: BTreeMap<String, String>,
    /// A comparison of records, in the order in which they are shown.
    pub comparison: Option<&'a Comparison>,
    /// Comparisons by turns.
    pub pairs: &'a [Paired],
    /// Ratios to a reference, night after night.
    pub histories: &'a [History<'a>],
    /// Other pages: their addresses, relative to this one, and their descriptions.
    pub others: &'a [(String, String)],
}

impl Page<'_> {
    /// The page as text.
    pub fn to_html(&self) -> String {
        html_document(&self.page_data().to_string())
    }

    fn page_data(&self) -> Value {
        let (run, machine) = (self.record, self.shown_machine());
        let text = |field: fn(&Record) -> &str| run.map_or("", field);
        let groups =
            run.into_iter().flat_map(|run| run.groups.iter().map(move |group| self.group_data(group, run)));
        json!({
            "page": LAYOUT, "run": text(|record| &record.run), "tool": run.map_or(TOOL, |record| &record.tool),
            "scale": text(|record| &record.scale), "unit": run.map_or(NANOSECONDS, |record| &record.unit),
            "session": run.and_then(|record| record.session.as_deref()), "seed": run.map_or(0, |record| record.seed),
            "started": run.map_or(0, |record| record.started), "seconds": run.map_or(0.0, run_seconds),
            "machine": machine.map(machine_facts).unwrap_or_default(),
            "mitigations": machine.map(|machine| machine.mitigations.clone()).unwrap_or_default(),
            "findings": self.findings.iter().map(|f| [&f.fact, &f.why, &f.remedy]).collect::<Vec<_>>(),
            "groups": groups.collect::<Vec<_>>(),
            "comparison": self.comparison, "pairs": self.pairs.iter().map(pairs_data).collect::<Vec<_>>(),
            "histories": self.histories.iter().map(history_data).collect::<Vec<_>>(), "others": self.others,
        })
    }

    /// The machine of the run, or without a run that of the last point of the first history that has points.
    fn shown_machine(&self) -> Option<&Fingerprint> {
        let newest = || self.histories.iter().filter_map(|history| history.points.last()).next();
        self.record.map(|record| &record.fingerprint).or_else(|| newest().map(|point| &point.fingerprint))
    }

    fn group_data(&self, group: &GroupRun, record: &Record) -> Value {
        let notes = disturbance_sentence(group.cases.iter()).into_iter().chain(group.notes.iter().cloned());
        let cases = group.cases.iter().map(|case| case_data(case, group, &record.unit));
        let mut data = json!({
            "name": group.name, "version": group.version, "clock": clock_text(group), "cpu": group.cpu,
            "manual": self.manuals.get(&group.name), "notes": notes.collect::<Vec<_>>(), "fits": group.fits,
            "curves": group.curves, "cases": cases.collect::<Vec<_>>(),
        });
        if let Some(paper) = paper_data(record).filter(|_| group.name == GROUP) {
            data["paper"] = paper;
        }
        data
    }
}

/// Seconds from the beginning of the run to the end of its last execution; 0 if executions were not recorded.
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

// The facts about a machine that stand before its numbers.

/// The names and values of the known facts about a machine, the most important first.
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

/// A comparison by turns: the verdicts, and for each pair of a case B over A less 1, and the reason if the pair was rejected.
fn pairs_data(paired: &Paired) -> Value {
    let caution = paired.clock_kind().clock_warning().map(|caution| format!("measured: {caution}"));
    let notes: Vec<_> = caution.into_iter().chain(paired.notes.iter().cloned()).collect();
    let cases = paired.judge().into_iter().zip(&paired.cases).map(|(row, case)| {
        let point = |pair: &PairRecord| (pair.difference.exp_m1(), pair.rejected.clone());
        let mut data = json!(row);
        data["points"] = case.pairs.iter().map(|pair| json!(point(pair))).collect();
        data
    });
    json!({
        "run": paired.run, "started": paired.started, "by_turns": paired.by_turns, "sides": paired.sides,
        "threshold": paired.rule.threshold, "margin": paired.rule.margin, "notes": notes,
        "cases": cases.collect::<Vec<_>>(),
    })
}

/// The tables and figures of the paper for which the record has numbers; `None` if it has none.
fn paper_data(record: &Record) -> Option<Value> {
    let paper = Paper::read().ok()?;
    let tables = filled_sheets(&paper, record);
    let figures = figures(&paper, record).into_iter();
    let figures: Vec<_> = figures.map(|one| json!({ "title": one.title, "curves": one.curves })).collect();
    (!tables.is_empty()).then(|| json!({ "tables": tables, "figures": figures }))
}

// The script and the style sheet of a page, and the document around them.
//
// `uplot.js` and `uplot.css` are unchanged copies from the package of the chart library; `scripts/page` fetches and compares
// them. The other files belong to this crate. A build does not need Node.js.

/// The licence of the chart library, which every page contains.
const LICENSE: &str = include_str!("html_page/asset/uplot.LICENSE");

/// The whole script: the library, then the parts of the page, each behind the parts that it uses.
const SCRIPT: &str = concat!(
    include_str!("html_page/asset/uplot.js"),
    "\n\"use strict\";\n(() => {\n",
    include_str!("html_page/asset/text.js"),
    include_str!("html_page/asset/state.js"),
    include_str!("html_page/asset/drawing.js"),
    include_str!("html_page/asset/manual.js"),
    include_str!("html_page/asset/machine.js"),
    include_str!("html_page/asset/table.js"),
    include_str!("html_page/asset/detail.js"),
    include_str!("html_page/asset/curve.js"),
    include_str!("html_page/asset/paper.js"),
    include_str!("html_page/asset/comparison.js"),
    include_str!("html_page/asset/choice.js"),
    include_str!("html_page/asset/history.js"),
    include_str!("html_page/asset/history_table.js"),
    include_str!("html_page/asset/start.js"),
    "})();\n"
);

const STYLE: &str =
    concat!(include_str!("html_page/asset/uplot.css"), "\n", include_str!("html_page/asset/page.css"));

/// The content security policy: a browser may run this script, use this style sheet, and show pictures from the page itself.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
});

/// The HTML of the page with these data.
fn html_document(json: &str) -> String {
    let license = LICENSE.trim().replace("--", "- -");
    // `</script>` in the data would end the block, so each `<` is escaped: JSON has it in strings only.
    let data = json.replace('<', "\\u003c");
    format!(
        "<!doctype html>\n<html lang=\"en\" dir=\"ltr\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>syscost</title>\n\
         <!-- Charts by uPlot:\n{license}\n-->\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript><p>This page draws itself by a script of its own, which this browser does not run. The numbers are in \
         its source, as JSON.</p></noscript>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        *POLICY
    )
}

/// The SHA-256 of a text in base 64, as a content security policy needs it.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests;
