//! The flags that define the two sides: binaries, wrappers and settings of the machine.

use crate::error::{Error, Result};
use crate::flag::BuildFlags;
use crate::page;
use crate::platform::process::own_program_file;
use crate::statistic::Random;
use std::path::{Path, PathBuf};
use syscost_analysis::pair::Launch;
use syscost_build::build_facts::BuildFacts;
use syscost_build::link::Links;
use syscost_build::revision::{self, Built};
use syscost_command_case::CommandSpec;
use syscost_engine::trial::scratch::{self, Scratch};

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
    #[command(flatten)]
    build: BuildFlags,
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
    /// Run each revision as its build links it, instead of a link of its own for every pair: the layout is part of the change
    #[arg(long)]
    one_link: bool,
    /// Build revisions without the flags that align functions and loops
    #[arg(long)]
    plain_build: bool,
    /// Commands to compare, as shell lines: one a side, or one for both sides, which then differ in what surrounds it. `syscost help
    /// commands` tells what is measured and checked
    #[arg(last = true, value_name = "COMMAND", num_args = 1..=2)]
    commands: Vec<String>,
    /// Compare builds of different compilers, profiles or linkers: they are part of the change
    #[arg(long)]
    allow_different_toolchains: bool,
}

/// The program of a side.
enum Program {
    Binary(PathBuf),
    Built(Box<Built>),
}

impl Program {
    fn binary(&self) -> PathBuf {
        match self {
            Self::Binary(file) => file.clone(),
            Self::Built(built) => built.binary(),
        }
    }
}

/// Both sides, ready to be started. Dropping it removes the links through which they are started.
pub struct Ready {
    a: Launch,
    b: Launch,
    binaries: [PathBuf; 2],
    /// The way in which functions are placed in another order for every pair; `None` if they are not.
    pub(super) placement: Option<&'static str>,
    differences: Vec<String>,
    /// Directories that are removed at the end.
    _scratch: Vec<Scratch>,
}

impl Sides {
    /// For each side a binary, or a revision that is to be built.
    pub fn new(
        (a_bin, a_rev): (Option<PathBuf>, Option<String>),
        (b_bin, b_rev): (Option<PathBuf>, Option<String>),
        build: BuildFlags,
    ) -> Self {
        // Toolchains change over the years of a history. The comparison is made all the same, and names the differences.
        Self { a_bin, a_rev, b_bin, b_rev, build, allow_different_toolchains: true, ..Self::default() }
    }

    /// The shell commands that make the two settings, and the one that undoes them; `None` without settings.
    pub fn setting_commands(&self) -> Option<([&str; 2], Option<&str>)> {
        Some(([self.a.as_deref()?, self.b.as_deref()?], self.restore.as_deref()))
    }

    /// Whether commands are compared, and not cases of a binary.
    pub fn have_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Whether the sides differ in anything. Two equal commands are compared all the same: such a comparison tells how often chance is
    /// called a change.
    pub fn are_different(&self) -> bool {
        let words = [&self.a_rev, &self.b_rev, &self.a_wrap, &self.b_wrap, &self.a];
        self.a_bin.is_some()
            || self.b_bin.is_some()
            || self.commands.len() > 1
            || words.into_iter().any(Option::is_some)
    }

    /// Builds the revisions and prepares their links. `seed` seeds the random orders of their functions.
    ///
    /// # Errors
    /// The sides do not differ, a revision does not build, the compilers of the sides differ, or a binary is missing.
    pub fn build_sides(&self, seed: u64) -> Result<Ready> {
        if !self.are_different() {
            return Err(Error::Usage(
                "the two sides are the same: let them differ by --a-bin/--b-bin, --a-rev/--b-rev, \
                 --a-wrap/--b-wrap, --a/--b, or two commands behind `--`; `syscost selftest` compares a side with itself"
                    .into(),
            ));
        }
        self.build.check_revision(self.a_rev.is_some() || self.b_rev.is_some())?;
        // A given binary is not aligned, so a revision is aligned only if both sides are revisions.
        let is_aligned = self.a_rev.is_some() && self.b_rev.is_some() && !self.plain_build;
        let recipe = self.build.recipe(is_aligned);
        let program = |file: &Option<PathBuf>, rev: &Option<String>| match (file, rev) {
            (Some(file), _) => Ok(Program::Binary(file.clone())),
            (None, Some(rev)) => revision::build_revision(rev, &recipe, &page::write_to_stderr)
                .map(|built| Program::Built(Box::new(built))),
            (None, None) => own_executable().map(Program::Binary),
        };
        let programs = [program(&self.a_bin, &self.a_rev)?, program(&self.b_bin, &self.b_rev)?];
        let ready =
            Ready::new(programs.each_ref().map(Program::binary), [self.a_wrap.clone(), self.b_wrap.clone()])?
                .with_commands(CommandSpec::for_sides(&self.commands));
        let [Program::Built(a), Program::Built(b)] = programs else { return Ok(ready) };
        let ready = Ready { differences: BuildFacts::differences(&a.facts, &b.facts), ..ready };
        self.check_toolchains(&ready.differences)?;
        if self.one_link { Ok(ready) } else { ready.with_links([*a, *b], seed) }
    }

    /// Checks that the builds differ in nothing but their sources, unless other differences are allowed.
    ///
    /// # Errors
    /// The builds have these differences; the error quotes them.
    pub fn check_toolchains(&self, differences: &[String]) -> Result<()> {
        if differences.is_empty() || self.allow_different_toolchains {
            return Ok(());
        }
        let all = differences.join("; ");
        Err(Error::Incomparable(format!("{all} (--allow-different-toolchains compares them all the same)")))
    }
}

/// The path of the running binary.
///
/// # Errors
/// As of [`own_program_file`].
pub fn own_executable() -> Result<PathBuf> {
    own_program_file().map_err(|e| Error::file("/proc/self/exe", "reading", e))
}

impl Ready {
    /// Sides that run these binaries, behind the words of a shell.
    ///
    /// # Errors
    /// A binary is missing, or the scratch directory cannot be made.
    pub fn new(binaries: [PathBuf; 2], wraps: [Option<String>; 2]) -> Result<Self> {
        let links = scratch::make_directory()?;
        let launch = |label, binary: &Path, wrap: &Option<String>| {
            Launch::new(label, binary, wrap.clone(), links.path())
        };
        let a = launch("A", &binaries[0], &wraps[0])?;
        let b = launch("B", &binaries[1], &wraps[1])?;
        Ok(Self { a, b, binaries, placement: None, differences: Vec::new(), _scratch: vec![links] })
    }

    /// The same sides. If both builds can be linked again, each pair runs links of its own.
    fn with_links(mut self, builds: [Built; 2], seed: u64) -> Result<Self> {
        let home = builds[0].home().to_owned();
        let [Some(a), Some(b)] = builds.map(|built| built.link) else { return Ok(self) };
        self.placement = Some(a.placement().description());
        let ([a, b], places) = Links::for_both_sides([a, b], &home, &mut Random::new(seed))?;
        self.a = self.a.with_links(a);
        self.b = self.b.with_links(b);
        self._scratch.extend(places);
        Ok(self)
    }

    /// The same sides, whose processes measure these commands.
    fn with_commands(self, commands: Option<[CommandSpec; 2]>) -> Self {
        let Some(commands) = commands else { return self };
        let [a, b] = commands.map(|command| CommandSpec::list_to_json(&[command]));
        Self {
            a: self.a.with_variable(syscost_command_case::VARIABLE, a),
            b: self.b.with_variable(syscost_command_case::VARIABLE, b),
            ..self
        }
    }

    /// Whether the sides run two binaries.
    pub fn are_two_builds(&self) -> bool {
        self.binaries[0] != self.binaries[1]
    }

    /// The differences between the builds besides their sources, as sentences.
    pub fn differences(&self) -> &[String] {
        &self.differences
    }

    /// The launch of each side, A first.
    pub fn launches(&self) -> [&Launch; 2] {
        [&self.a, &self.b]
    }

    /// The names of the sides, made from what differs between them.
    pub fn side_names(&self, sides: &Sides) -> [String; 2] {
        let one = |at: usize, rev: &Option<String>, wrap: &Option<String>, state: &Option<String>| {
            let mut words = Vec::new();
            if self.are_two_builds() {
                words.push(rev.clone().unwrap_or_else(|| self.binaries[at].display().to_string()));
            }
            words.extend(sides.commands.get(at).filter(|_| sides.commands.len() > 1).cloned());
            words.extend(wrap.iter().map(|wrap| format!("under {wrap:?}")));
            words.extend(state.iter().map(|state| format!("after {state:?}")));
            if words.is_empty() { "as it is".to_owned() } else { words.join(", ") }
        };
        [one(0, &sides.a_rev, &sides.a_wrap, &sides.a), one(1, &sides.b_rev, &sides.b_wrap, &sides.b)]
    }
}
