//! Two sides of one binary, of which seccomp filters slow one.

use crate::error::Result;
use crate::platform::process::tool::quote_for_shell;
use std::cell::Cell;
use std::path::Path;
use syscost_analysis::pair::Launch;
use syscost_engine::trial::scratch::{self, Scratch};

/// Prepares sides of one binary; each pair of sides has a directory of its own.
pub struct SlowedSides<'a> {
    exe: &'a Path,
    links: Scratch,
    number: Cell<usize>,
}

impl<'a> SlowedSides<'a> {
    /// Sides of this binary.
    ///
    /// # Errors
    /// There is no scratch directory.
    pub fn new(exe: &'a Path) -> Result<Self> {
        Ok(Self { exe, links: scratch::make_directory()?, number: Cell::new(0) })
    }

    /// Describes how both sides are started, under seccomp filters of these numbers of additions if there are any.
    ///
    /// # Errors
    /// As of [`Launch::new`].
    pub fn prepare_launches(&self, filters: Option<[usize; 2]>) -> Result<[Launch; 2]> {
        self.number.set(self.number.get() + 1);
        let directory = self.links.path().join(self.number.get().to_string());
        let quoted = quote_for_shell(&self.exe.display().to_string());
        let wrap = |side: usize| {
            filters.map(|additions| format!("{quoted} burden --additions {} --", additions[side]))
        };
        Ok([
            Launch::new("A", self.exe, wrap(0), &directory)?,
            Launch::new("B", self.exe, wrap(1), &directory)?,
        ])
    }
}
