//! What the driver asks of one measuring process, passed in an environment variable as JSON.

use crate::clock::ClockScale;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The variable. Set by the driver.
pub(super) const TASK_VARIABLE: &str = "SYSCOST_TASK";

/// What a measuring process does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Measure cases, each once.
    Measure(Round),
    /// Have Criterion write its files for these cases, from this file of [`Samples`] by a clock of this scale.
    Write(PathBuf, Option<ClockScale>),
}

/// One execution of each of these cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The cases, in the order in which they are to be measured.
    pub cases: Vec<Wanted>,
    /// The clock's scale, if an earlier process has found it.
    pub clock: Option<ClockScale>,
}

/// A case that is to be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// `group/variant/parameter`.
    pub id: String,
    /// An earlier process has proved it.
    pub proven: bool,
}

/// The samples of one case, of all executions together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Samples {
    /// The id without its group: Criterion's function id.
    pub name: String,
    /// Cost of an iteration by each sample, in the record's unit.
    pub values: Vec<f64>,
}

impl Task {
    /// The task of this process.
    ///
    /// # Errors
    /// There is none, or it is of another version of this crate.
    pub fn of_process() -> Result<Self> {
        let text = std::env::var(TASK_VARIABLE).unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| {
            Error::Usage(format!("{TASK_VARIABLE} is for the driver to set, so unset it: {error}"))
        })
    }
}

impl Round {
    /// Whether this case is to be measured: then whether it is proven already.
    pub fn wants(&self, id: &str) -> Option<bool> {
        self.cases.iter().find(|wanted| wanted.id == id).map(|wanted| wanted.proven)
    }
}
