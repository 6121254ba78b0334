//! The flags that define two sides, and their comparison by pairs of live processes.

mod side_flag;

pub use side_flag::{Ready, Sides, own_executable};

use crate::error::{Error, Result};
use crate::flag::{Filter, Format, Only, scale_parser};
use crate::page;
use crate::statistic::median;
use clap::ValueEnum;
use indicatif::ProgressBar;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;
use syscost_analysis::pair::Start;
use syscost_analysis::pair::experiment::{Experiment, Plan, Roster, Testbed, Unpaired, choose_cases};
use syscost_analysis::pair::sequence::{ByBlocks, ByTurns, Progress, Schedule};
use syscost_analysis::pair::setting::Setting;
use syscost_analysis::record::paired::{Paired, Rule};
use syscost_analysis::render::paired_table::{PairedTable, RowChoice, comparison_json, rows_csv};
use syscost_analysis::study::sequential::Row;
use syscost_engine::case::Scale;
use syscost_engine::record::store::{OwnFile, Store};
use syscost_engine::render::table::Layout;

/// The note for two builds with one link each.
const ONE_LINK: &str = "each side runs one link of its build: where the linker put its functions is part of every change; of two \
                        revisions (--a-rev, --b-rev) every pair runs links of its own";

/// The usual duration of a pair, in seconds: two starts, two set-ups and 80 turns.
const PAIR_S: f64 = 0.15;

/// How thoroughly the sides are compared.
#[derive(clap::Args)]
pub struct Manner {
    /// Changes smaller than this are no finding
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = parse_share)]
    pub threshold: f64,
    /// The last look at a case; what is flagged by then takes up to 32 more pairs to be found again
    /// [default: 64]
    #[arg(long, value_name = "N", value_enum)]
    pub pairs: Option<Pairs>,
    /// Seed of everything random
    #[arg(long, default_value_t = 0x5eed)]
    pub seed: u64,
    /// Size of what surrounds the operations: smoke, default, full
    #[arg(long, default_value = "default", value_parser = scale_parser())]
    pub scale: Scale,
    /// `same` means a change within this share; without it within twice the threshold, at least 2 %.
    #[arg(skip)]
    pub margin: Option<f64>,
    /// Leave out the cases that neither side can change
    #[arg(long)]
    pub no_canaries: bool,
}

/// After how many pairs a case is judged for the last time.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
#[allow(missing_docs)] // clap would print them as help
pub enum Pairs {
    #[value(name = "8")]
    Eight,
    #[value(name = "16")]
    Sixteen,
    #[value(name = "32")]
    ThirtyTwo,
    #[value(name = "64")]
    SixtyFour,
}

impl Pairs {
    /// The number of looks (judgements of a case) up to and including the last.
    pub fn look_count(self) -> usize {
        self as usize + 1
    }
}

/// Parses a share in per cent, with or without the sign.
///
/// # Errors
/// The text is no number from 0 to less than 100.
pub fn parse_share(text: &str) -> Result<f64> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    let share = number.map(|percent| percent / 100.0).filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| {
        Error::Usage(format!("{text:?} is no share: expected 0% to less than 100%, such as 3%"))
    })
}

impl Manner {
    /// The rule by which the pairs of a case are judged.
    fn judging_rule(&self) -> Rule {
        // Equivalence within a margin of 0 could never be shown.
        let usual = (2.0 * self.threshold).max(Rule::default().margin);
        let margin = self.margin.unwrap_or(usual);
        Rule {
            looks: self.pairs.unwrap_or(Pairs::SixtyFour).look_count(),
            margin,
            ..Rule::for_threshold(self.threshold)
        }
    }
}

/// Measures both sides, and keeps the pairs in the store of this home.
///
/// # Errors
/// No case matches, a side cannot be built or started, a setting cannot be made, or the pairs cannot be written.
pub fn compare_sides(filter: &Filter, sides: &Sides, manner: &Manner, home: &Path) -> Result<Paired> {
    Store::at(home).check_directory_usable("pairs")?;
    let mut file = OwnFile::default();
    let (mut paired, prepared) = with_sides(
        filter,
        sides,
        manner,
        !manner.no_canaries,
        home,
        |testbed, contest, ids, lone, schedule| {
            // How long a command takes is not known yet.
            if !sides.have_commands() {
                announce_pairs(ids.len(), ["case", "cases"], contest.plan.rule);
            }
            let bar = Bar::new(ids.len());
            let mut keep = |paired: &Paired| save_pairs(home, paired, &mut file).map(drop);
            let compared =
                testbed.compare_cases(contest, ids, lone, schedule, &mut |at| bar.show_pair(at), &mut keep);
            bar.finish();
            compared
        },
    )?;
    paired.notes.extend(prepared.differences);
    if prepared.has_one_link {
        paired.notes.push(ONE_LINK.into());
    }
    if !paired.cases.is_empty() {
        page::write_to_stderr(&format!("kept in {}", save_pairs(home, &paired, &mut file)?.display()));
    }
    Ok(paired)
}

/// The facts about two sides that are measured.
pub struct Prepared {
    /// Names of the sides.
    pub names: [String; 2],
    /// The differences between the builds besides their sources, as sentences.
    pub differences: Vec<String>,
    /// Whether each side is a build of its own with one link.
    pub has_one_link: bool,
}

/// Builds and starts both sides, calls `measure` for the matching cases, and restores the changed settings. `measure` gets the
/// ids, the cases that only one side has, and the way in which the sides take turns.
///
/// # Errors
/// No case matches, a side cannot be built or started, a setting cannot be made, or `measure` fails.
pub fn with_sides<T>(
    filter: &Filter,
    sides: &Sides,
    manner: &Manner,
    has_canaries: bool,
    home: &Path,
    measure: impl FnOnce(&Testbed, &Experiment<'_>, &[String], &[Unpaired], &mut dyn Schedule) -> Result<T>,
) -> Result<(T, Prepared)> {
    let by_filter = filter.matcher()?;
    let only_commands = sides.have_commands() && !filter.is_given();
    let matches = |id: &str| if only_commands { id.starts_with("command/") } else { by_filter(id) };
    let settings = sides.setting_commands();
    let by_turns = settings.is_none();
    if by_turns {
        crate::restore::warn_of_outstanding(home);
    }
    // This may fail, so it comes before minutes of building. It changes no setting yet.
    let mut setting =
        settings.map(|(commands, restore)| Setting::begin(commands, restore, home)).transpose()?;
    let ready = sides.build_sides(manner.seed)?;
    let ring = Testbed::set_up()?;
    let starts = ready.launches().map(|launch| launch as &dyn Start);
    let Roster { ids: all, unpaired: lone, differences } = ring.match_cases(starts)?;
    // For two revisions, the facts of the builds say more than the binaries.
    let differences = if ready.differences().is_empty() { differences } else { ready.differences().to_vec() };
    sides.check_toolchains(&differences)?;
    let lone: Vec<_> = lone.into_iter().filter(|lone| matches(&lone.id)).collect();
    let ids = choose_cases(&all, matches, has_canaries)?;
    let plan = Plan {
        sides: ready.side_names(sides),
        by_turns,
        rule: manner.judging_rule(),
        seed: manner.seed,
        scale: manner.scale,
        placement: ready.placement,
    };
    let contest = Experiment { starts, plan };
    if let Some(setting) = &setting {
        page::write_to_stderr(&format!(
            "restored at the end, also after a signal: {}",
            setting.restore_commands()
        ));
    }
    let measured = {
        let mut enter = |side: usize| setting.as_mut().map_or(Ok(()), |setting| setting.enter_side(side));
        let mut turns = ByTurns;
        let mut blocks = ByBlocks::new(&mut enter);
        let meeting: &mut dyn Schedule = if by_turns { &mut turns } else { &mut blocks };
        measure(&ring, &contest, &ids, &lone, meeting)
    };
    setting.as_mut().map(Setting::restore_settings).transpose()?;
    let has_one_link = ready.are_two_builds() && ready.placement.is_none();
    Ok((measured?, Prepared { names: contest.plan.sides, differences, has_one_link }))
}

/// Announces the number of cases (or verdicts), named by the words `one` or `many`, and the time that they take. The time
/// ranges from all cases ending at the first look to all ending at the last.
pub fn announce_pairs(count: usize, [one, many]: [&str; 2], rule: Rule) {
    let [first, last] = rule.fewest_and_most_pairs();
    let work = format!("{}, {first} to {last} pairs each", page::count_with_noun(count, one, many));
    page::announce(&work, [first, last].map(|pairs| (count * pairs) as f64 * PAIR_S));
}

/// Writes the comparison to the store. Returns the path of its file.
pub fn save_pairs(home: &Path, paired: &Paired, file: &mut OwnFile) -> Result<PathBuf> {
    let path = Store::at(home).home().join("pairs").join(format!("{}.json", paired.run));
    let bytes = serde_json::to_vec(paired).map_err(|e| Error::file(&path, "writing as JSON", e.into()))?;
    file.write(&path, &bytes)?;
    Ok(path)
}

// The progress bar of `syscost ab`: the case, its pairs, the estimate, the time left.

/// A progress bar on a terminal; it shows nothing in a pipe. The driver draws it between pairs, not on the measured CPU.
pub struct Bar {
    bar: ProgressBar,
    cases: usize,
    state: RefCell<State>,
}

struct State {
    begun: Instant,
    case: String,
    done: usize,
}

impl Bar {
    /// A bar over this number of cases.
    pub fn new(cases: usize) -> Self {
        let bar = page::progress_bar(cases, "{pos}/{len} {wide_msg}");
        let state = State { begun: Instant::now(), case: String::new(), done: 0 };
        Self { bar, cases, state: RefCell::new(state) }
    }

    /// Updates the bar after a pair.
    fn show_pair(&self, at: &Progress<'_>) {
        let mut state = self.state.borrow_mut();
        if state.case != at.case.id {
            state.done += usize::from(!state.case.is_empty());
            state.case.clone_from(&at.case.id);
            self.bar.set_position(state.done as u64);
        }
        let differences = at.case.valid_log_ratios();
        let estimate = match differences.len() {
            0 => "…".to_owned(),
            _ => format!("{:+.2} %", 100.0 * median(&differences).exp_m1()),
        };
        self.bar.set_message(format!(
            "{}  pair {} of {}  {estimate}  {}",
            at.case.id,
            (differences.len() + 1).min(at.wanted),
            at.wanted,
            time_left(&state, self.cases)
        ));
    }

    /// Shows a case whose pair is measured on a boot that several cases share.
    pub fn show_boot_pair(&self, at: &Progress<'_>) {
        let boots = at.case.pairs.len() + 1;
        self.bar.set_message(format!("open  boot {boots}  {}", at.case.id));
    }

    /// Shows how many cases need no more boots.
    pub fn show_settled(&self, cases: usize) {
        self.bar.set_position(cases as u64);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The text of the remaining time, estimated from the mean time of the finished cases; empty before the first has finished.
fn time_left(state: &State, cases: usize) -> String {
    if state.done == 0 {
        return String::new();
    }
    let each = state.begun.elapsed().as_secs_f64() / state.done as f64;
    let seconds = each * cases.saturating_sub(state.done) as f64;
    format!("about {}:{:02} left", seconds as u64 / 60, seconds as u64 % 60)
}

// The format of the verdicts of a comparison by pairs, and their output.

/// Format of the verdicts.
#[derive(clap::Args)]
pub struct Form {
    /// How to write the verdicts
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Which rows
    #[arg(long, value_enum)]
    only: Option<Only>,
}

impl Form {
    /// The form for another command, whose flags choose only the format.
    pub fn new(format: Format) -> Self {
        Self { format, only: None }
    }

    /// How to write the verdicts.
    pub fn format(&self) -> Format {
        self.format
    }

    fn row_choice(&self) -> RowChoice {
        match self.only {
            None => RowChoice::Usual,
            Some(Only::Changed) => RowChoice::Changed,
            Some(Only::All) => RowChoice::All,
        }
    }
}

/// Writes the rows to the standard output.
///
/// # Errors
/// The output cannot be written.
pub fn write(paired: &Paired, rows: &[Row], form: &Form, layout: Layout) -> Result<()> {
    let choice = form.row_choice();
    page::write(&match form.format {
        Format::Terminal => PairedTable::new(paired, rows, choice).render_terminal(layout),
        Format::Markdown => PairedTable::new(paired, rows, choice).render_markdown(),
        Format::Json => return page::write_json(&comparison_json(paired, rows, choice)),
        Format::Csv => rows_csv(paired.clock_kind(), rows, choice)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_with_and_without_its_sign() {
        assert_eq!(parse_share("3%").unwrap(), 0.03);
        assert_eq!(parse_share(" 0.5 ").unwrap(), 0.005);
        for wrong in ["", "x", "-1%", "100%", "NaN"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
