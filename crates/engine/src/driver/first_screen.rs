//! The end of a whole run: one screen in place of every table.

use super::arguments::Arguments;
use super::options::Options;
use super::plan::Planned;
use crate::case::Group;
use crate::environment::Fingerprint;
use crate::environment::doctor::examine;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::process::{find_on_path, own_program_file};
use crate::record::{Headline, Record};
use crate::render::summary::{Summary, answer_lines, answer_screen};
use crate::render::table::Layout;
use crate::study::usual::{UsualRange, find_reference, reference_names, usual_ranges};
use std::collections::BTreeMap;

/// Data collected at the beginning of a whole run for the screen at its end.
pub(super) struct FirstScreen {
    headlines: Vec<(String, Headline)>,
    doctor: Vec<String>,
    usual: BTreeMap<String, UsualRange>,
}

impl FirstScreen {
    /// For a run over several groups without a choice by the user; `None` where the user asks for tables.
    pub(super) fn for_run(planned: &[Planned], arguments: &Arguments, options: &Options) -> Option<Self> {
        let is_part = arguments.filter.is_some() || !arguments.skip.is_empty();
        let chosen = is_part || arguments.all || options.against.is_some();
        let whole = planned.len() > 1 && !chosen;
        whole.then(|| {
            let (files, scratch) = (KernelFiles::live(), options.scratch_parent());
            let known = Fingerprint::take(&files, &scratch);
            // The load of the run itself is not among the findings.
            let doctor = examine(&files, &known, &scratch).into_iter().map(|finding| finding.fact).collect();
            let headlines = group_headlines(planned.iter().map(|planned| planned.group));
            Self { headlines, doctor, usual: usual_here(&known) }
        })
    }

    /// The screen of this record; `state` says how far an unfinished run is.
    pub(super) fn render(
        &self,
        record: &Record,
        earlier: &[Record],
        state: Option<&str>,
        layout: Layout,
    ) -> String {
        let (doctor, program) = (Some(&self.doctor[..]), program_command());
        let summary = Summary { record, headlines: &self.headlines, earlier, doctor, program: &program };
        answer_screen(&summary, &self.usual, state, layout)
    }

    /// A line for each answer of an unfinished run, for a log.
    pub(super) fn answer_lines(&self, record: &Record) -> Vec<String> {
        let summary = Summary { record, headlines: &self.headlines, earlier: &[], doctor: None, program: "" };
        answer_lines(&summary)
    }
}

/// How the program is called here: by its name if the search path has it, and by a path from the current directory if
/// not. A bench stands in `target/release/deps`, and the program in the directory above.
pub fn program_command() -> String {
    const NAME: &str = "syscost";
    if find_on_path(NAME).is_some() {
        return NAME.into();
    }
    let own = own_program_file().unwrap_or_default();
    let near = own.ancestors().skip(1).take(2).map(|directory| directory.join(NAME));
    let Some(path) = near.into_iter().find(|path| path.is_file()) else { return NAME.into() };
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(&path).display().to_string()
}

/// Ids and headlines of these groups.
pub fn group_headlines<'a>(groups: impl Iterator<Item = &'a Group>) -> Vec<(String, Headline)> {
    let named_headlines = |group: &'a Group| {
        group.headlines.iter().map(|headline| (format!("{}/{}", group.name, headline.case), *headline))
    };
    groups.flat_map(named_headlines).collect()
}

/// What is usual for machines of this kind.
fn usual_here(known: &Fingerprint) -> BTreeMap<String, UsualRange> {
    let references: Vec<_> = reference_names().filter_map(find_reference).collect();
    known.machine_kind().map(|kind| usual_ranges(&references, &kind)).unwrap_or_default()
}
