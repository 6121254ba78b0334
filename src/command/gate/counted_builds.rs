//! Two builds whose instructions are counted: `syscost gate --instructions`, with `--a-rev` or `--a-bin`.

use super::super::judging::Compared;
use crate::case::Scale;
use crate::command::flag::Filter;
use crate::command::page;
use crate::command::sides::{Sides, save_pairs};
use crate::error::{Error, Result};
use crate::record::quantity::INSTRUCTIONS;
use crate::record::store::OwnFile;
use std::path::Path;
use syscost_analysis::pair::Start;
use syscost_analysis::pair::experiment::{Experiment, Plan, Roster, Testbed, choose_cases};
use syscost_analysis::record::paired::{Paired, Rule};
use syscost_analysis::study::exact_count::changes_of_pairs;
use syscost_analysis::study::gate::findings_from_counts;

/// What the user is to know of the verdicts.
const COUNTED: &str = "instructions in user space were counted, by single steps, and no time was measured: slower means more of them";

/// Counts the cases that match on both sides. The counts are kept in the store of this home.
///
/// # Errors
/// No case matches, the sides are settings of the machine, or one cannot be built or started.
pub(super) fn count_builds(
    filter: &Filter,
    sides: &Sides,
    (scale, seed): (Scale, u64),
    home: &Path,
) -> Result<Paired> {
    if sides.setting_commands().is_some() {
        return Err(Error::Usage(
            "no setting of the machine changes the instructions of an operation: compare builds, or measure time".into(),
        ));
    }
    let matches = filter.matcher()?;
    let ready = sides.build_sides(seed)?;
    let testbed = Testbed::set_up()?;
    let starts = ready.launches().map(|launch| launch as &dyn Start);
    let Roster { ids, unpaired, differences } = testbed.match_cases(starts)?;
    let differences = if ready.differences().is_empty() { differences } else { ready.differences().to_vec() };
    sides.check_toolchains(&differences)?;
    let ids = choose_cases(&ids, &matches, false)?;
    let plan = Plan {
        sides: ready.side_names(sides),
        by_turns: false,
        rule: Rule::default(),
        seed,
        scale,
        placement: None,
    };
    let bar = page::progress_bar(ids.len(), "{pos}/{len} {wide_msg}");
    let mut paired = testbed.count_cases(&Experiment { starts, plan }, &ids, &mut |id| {
        bar.set_message(id.to_owned());
        bar.inc(1);
    });
    bar.finish_and_clear();
    paired.cases.extend(unpaired.iter().filter(|only| matches(&only.id)).map(|only| only.to_case_pairs()));
    paired.notes.extend(differences.into_iter().chain([COUNTED.to_owned()]));
    page::write_to_stderr(&format!(
        "kept in {}",
        save_pairs(home, &paired, &mut OwnFile::default())?.display()
    ));
    Ok(paired)
}

/// The findings on these counts; up to this share more is let through.
pub(super) fn compared_counts(paired: &Paired, limit: f64) -> Compared {
    let changes = changes_of_pairs(INSTRUCTIONS, paired);
    (findings_from_counts(paired, &changes, limit), paired.notes.clone())
}
