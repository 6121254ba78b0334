//! The flags that define the two sides: binaries, wrappers and settings of the machine.

use crate::command::page;
use crate::error::{Error, Result};
use crate::pair::{Launch, revision};
use crate::trial::scratch::{self, Scratch};
use std::path::{Path, PathBuf};

/// How the two sides differ.
#[derive(clap::Args, Default)]
pub struct Sides {
    /// Binary of side A: a bench of this crate or of one that uses it, or another `syscost` [default: this one]
    #[arg(long, value_name = "FILE", conflicts_with = "a_rev")]
    a_bin: Option<PathBuf>,
    /// Binary of side B [default: this one]
    #[arg(long, value_name = "FILE", conflicts_with = "b_rev")]
    b_bin: Option<PathBuf>,
    /// Git revision to build side A from, in a temporary repository: nothing of yours changes, and no hook or filter of git runs
    #[arg(long, value_name = "REV")]
    a_rev: Option<String>,
    /// Git revision to build side B from
    #[arg(long, value_name = "REV")]
    b_rev: Option<String>,
    /// Bench target to build of a revision [default: the only one, or `suite`]
    #[arg(long, value_name = "NAME")]
    bench: Option<String>,
    /// Words of a shell before side A's binary, such as 'taskset -c 1'
    #[arg(long, value_name = "COMMAND")]
    a_wrap: Option<String>,
    /// Words of a shell before side B's binary
    #[arg(long, value_name = "COMMAND")]
    b_wrap: Option<String>,
    /// Shell command that puts the machine into side A's state
    #[arg(long, value_name = "COMMAND", requires = "b")]
    a: Option<String>,
    /// Shell command that puts the machine into side B's state
    #[arg(long, value_name = "COMMAND", requires = "a")]
    b: Option<String>,
    /// Shell command that undoes both; without it the files below /proc/sys and /sys that they name are put
    /// back as they were
    #[arg(long, value_name = "COMMAND", requires = "a")]
    restore: Option<String>,
}

/// Both sides, ready to be started. Dropping it removes the links through which they are started.
pub struct Ready {
    a: Launch,
    b: Launch,
    binaries: [PathBuf; 2],
    _links: Scratch,
}

impl Sides {
    /// For each side a binary, or a revision that is to be built.
    pub fn new(
        (a_bin, a_rev): (Option<PathBuf>, Option<String>),
        (b_bin, b_rev): (Option<PathBuf>, Option<String>),
        bench: Option<String>,
    ) -> Self {
        Self { a_bin, a_rev, b_bin, b_rev, bench, ..Self::default() }
    }

    /// The shell commands that make the two settings, and the one that undoes them.
    pub fn setting_commands(&self) -> Option<([&str; 2], Option<&str>)> {
        Some(([self.a.as_deref()?, self.b.as_deref()?], self.restore.as_deref()))
    }

    /// Whether the sides differ in anything.
    pub fn are_different(&self) -> bool {
        let words = [&self.a_rev, &self.b_rev, &self.a_wrap, &self.b_wrap, &self.a];
        self.a_bin.is_some() || self.b_bin.is_some() || words.into_iter().any(Option::is_some)
    }

    /// Builds revisions and links the binaries.
    ///
    /// # Errors
    /// The sides do not differ, a revision does not build, or a binary is missing.
    pub fn build_sides(&self) -> Result<Ready> {
        if !self.are_different() {
            return Err(Error::Usage(
                "the two sides are the same: let them differ by --a-bin/--b-bin, --a-rev/--b-rev, \
                 --a-wrap/--b-wrap, or --a/--b; `syscost selftest` compares a side with itself"
                    .into(),
            ));
        }
        let binary = |file: &Option<PathBuf>, rev: &Option<String>| match (file, rev) {
            (Some(file), _) => Ok(file.clone()),
            (None, Some(rev)) => revision::build_revision(rev, self.bench.as_deref(), &page::write_to_stderr),
            (None, None) => own_executable(),
        };
        let binaries = [binary(&self.a_bin, &self.a_rev)?, binary(&self.b_bin, &self.b_rev)?];
        Ready::new(binaries, [self.a_wrap.clone(), self.b_wrap.clone()])
    }
}

/// The path of the running binary.
///
/// # Errors
/// `/proc` is not mounted.
pub fn own_executable() -> Result<PathBuf> {
    std::env::current_exe().map_err(|e| Error::file("/proc/self/exe", "reading", e))
}

impl Ready {
    pub fn new(binaries: [PathBuf; 2], wraps: [Option<String>; 2]) -> Result<Self> {
        let links = scratch::make_directory()?;
        let launch = |label, binary: &Path, wrap: &Option<String>| {
            Launch::new(label, binary, wrap.clone(), links.path())
        };
        let a = launch("A", &binaries[0], &wraps[0])?;
        let b = launch("B", &binaries[1], &wraps[1])?;
        Ok(Self { a, b, binaries, _links: links })
    }

    pub fn launches(&self) -> [&Launch; 2] {
        [&self.a, &self.b]
    }

    /// Names of the sides, made of what differs.
    pub fn side_names(&self, sides: &Sides) -> [String; 2] {
        let one = |at: usize, rev: &Option<String>, wrap: &Option<String>, state: &Option<String>| {
            let mut words = Vec::new();
            if self.binaries[0] != self.binaries[1] {
                words.push(rev.clone().unwrap_or_else(|| self.binaries[at].display().to_string()));
            }
            words.extend(wrap.iter().map(|wrap| format!("under {wrap:?}")));
            words.extend(state.iter().map(|state| format!("after {state:?}")));
            if words.is_empty() { "as it is".to_owned() } else { words.join(", ") }
        };
        [one(0, &sides.a_rev, &sides.a_wrap, &sides.a), one(1, &sides.b_rev, &sides.b_wrap, &sides.b)]
    }
}
