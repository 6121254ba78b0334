//! A change that a history reports, and its two sides, as far as they are still available.

use super::Place;
use super::history_measure::reference_file;
use crate::record::history_point::HistoryPoint;
use crate::study::change_event::{ChangeEvent, Moved, find_change_events};
use crate::study::ratio_series::build_ratio_series;
use std::path::PathBuf;
use syscost_build::revision;
use syscost_command_line::flag::BuildFlags;
use syscost_command_line::page;
use syscost_command_line::sides::Sides;
use syscost_engine::record::guest_side::ClockKind;
use syscost_platform::error::{Error, Result};
use syscost_platform::{inert, plain_file};

/// The most characters of a label in a sentence.
const LONGEST: usize = 60;

/// Which change, and what its sides are where the labels do not say.
#[derive(clap::Args)]
pub(super) struct Chosen {
    /// Label of the first point after the change, as `history changes` prints it [default: that of the newest change]
    label: Option<String>,
    /// What was before the change: a kept reference, the path of a binary, a git revision, or a kernel [default: as its label
    /// begins]
    #[arg(long, value_name = "SIDE")]
    before: Option<String>,
    /// What was after it
    #[arg(long, value_name = "SIDE")]
    after: Option<String>,
    #[command(flatten)]
    pub(super) place: Place,
}

/// From where a side can be started again.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Origin {
    /// A file that can be started.
    Binary(PathBuf),
    /// A revision of the git repository here.
    Revision(String),
    /// A kernel, by its name.
    Kernel(String),
}

/// A change and its points.
pub(super) struct Suspicion {
    pub(super) event: ChangeEvent,
    pub(super) before: HistoryPoint,
    pub(super) after: HistoryPoint,
}

impl Chosen {
    /// The newest change, or the newest one that begins at the given label.
    ///
    /// # Errors
    /// The history cannot be read, or tells of no change, or of none with this label.
    pub(super) fn find_suspicion(&self) -> Result<Suspicion> {
        let points = self.place.read_points()?;
        let (series, said) = build_ratio_series(&points);
        said.iter().for_each(page::warn);
        let mut events = find_change_events(&points, &series);
        let is_meant = |event: &ChangeEvent| {
            self.label.as_ref().is_none_or(|label| inert::neutralize_text(&points[event.at].label) == *label)
        };
        let Some(at) = events.iter().rposition(is_meant) else {
            let labels: Vec<_> = events.iter().map(|event| points[event.at].label.as_str()).collect();
            return Err(Error::Usage(match labels.is_empty() {
                true => "the history tells of no change: there is nothing to compare again".into(),
                false => format!("no change begins at this label; they begin at: {}", labels.join(", ")),
            }));
        };
        let event = events.swap_remove(at);
        let [before, after] = [event.before, event.at].map(|at| points[at].clone());
        Ok(Suspicion { event, before, after })
    }

    /// From where both sides can be started again.
    ///
    /// # Errors
    /// One is gone: the sentence says what is missing.
    pub(super) fn find_origins(&self, suspicion: &Suspicion) -> Result<[Origin; 2]> {
        let before = self.find_origin("before", self.before.as_deref(), &suspicion.before)?;
        Ok([before, self.find_origin("after", self.after.as_deref(), &suspicion.after)?])
    }

    fn find_origin(&self, when: &str, given: Option<&str>, point: &HistoryPoint) -> Result<Origin> {
        if point.clock != ClockKind::Host {
            return Ok(Origin::Kernel(given.unwrap_or(&point.label).to_owned()));
        }
        let word = given.or_else(|| point.label.split_whitespace().next()).unwrap_or_default();
        if given.is_some() && word.contains('/') && plain_file::open(word.as_ref()).is_ok() {
            return Ok(Origin::Binary(word.into()));
        }
        if let Some(kept) = reference_file(&self.place, word).ok().filter(|path| path.is_file()) {
            return Ok(Origin::Binary(kept));
        }
        let may_be = given.is_some() || is_revision_hash(word);
        let why = match may_be.then(|| revision::resolve_commit(word)) {
            Some(Ok(_)) => return Ok(Origin::Revision(word.into())),
            Some(Err(error)) => format!("is no kept reference: {error}"),
            None => "is no kept reference, and does not begin with a git revision".into(),
        };
        Err(Error::Missing(format!(
            "the side {when} the change is gone: {:?} {why}; name a binary, a reference or a revision by --{when}",
            inert::neutralize_line(given.unwrap_or(&point.label), LONGEST)
        )))
    }
}

impl Suspicion {
    /// The cases that moved, without the canaries, the farthest first.
    pub(super) fn moved_cases(&self, most: usize) -> Vec<&Moved> {
        self.event.moved.iter().filter(|moved| !moved.canary).take(most).collect()
    }
}

/// Both sides for `ab`; `None` if they are kernels.
pub(super) fn comparison_sides(origins: &[Origin; 2], build: &BuildFlags) -> Option<Sides> {
    let side = |origin: &Origin| match origin {
        Origin::Binary(file) => Some((Some(file.clone()), None)),
        Origin::Revision(revision) => Some((None, Some(revision.clone()))),
        Origin::Kernel(_) => None,
    };
    Some(Sides::new(side(&origins[0])?, side(&origins[1])?, build.clone()))
}

/// The regular expression of exactly these cases.
pub(super) fn exact_id_pattern(moved: &[&Moved]) -> String {
    let ids: Vec<_> = moved.iter().map(|moved| regex::escape(&moved.id)).collect();
    format!("^({})$", ids.join("|"))
}

/// Whether a word can be the hash of a revision: hexadecimal digits, as `--label` is given in a workflow.
pub(super) fn is_revision_hash(word: &str) -> bool {
    (7..=40).contains(&word.len()) && word.chars().all(|c| c.is_ascii_hexdigit())
}
