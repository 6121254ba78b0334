//! `syscost history bisect`: finds the revision or the kernel package that caused a change.

use super::Place;
use super::history_measure::reference_file;
use crate::record::history_point::HistoryPoint;
use crate::study::change_event::{ChangeEvent, Moved, find_change_events};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use syscost_build::revision;
use syscost_command_line::flag::BuildFlags;
use syscost_command_line::page;
use syscost_command_line::sides::{Sides, own_executable};
use syscost_engine::exit::Exit;
use syscost_engine::record::guest_side::ClockKind;
use syscost_platform::error::{Error, Result};
use syscost_platform::process::tool::quote_for_shell;
use syscost_platform::{inert, plain_file};

/// The most cases that each step compares: each case needs pairs of its own.
const CASES: usize = 4;
/// The smallest change that is bisected, and the smallest `--max-regress` for `syscost gate`: a share.
const GATE: f64 = 0.01;

/// Find the revision or the kernel package that a slowdown came with
///
/// Prints the command that halves the range between the two points of the newest change, or of the one at LABEL: `git bisect` with
/// `syscost gate --bisect`, which compares each revision with the last good one by turns; or `syscost kernels bisect`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: printed, or found; 1: with --run, the two ends do not differ; 125: a side is gone, the change is \
    too small, or a step could not be measured."
)]
pub(in crate::command) struct Bisect {
    #[command(flatten)]
    chosen: Chosen,
    /// Run it, in a temporary repository: what is checked out here stays as it is, and no hook or filter of git runs
    #[arg(long)]
    run: bool,
    #[command(flatten)]
    build: BuildFlags,
}

pub(super) fn bisect(args: &Bisect) -> Result<ExitCode> {
    let suspicion = args.chosen.find_suspicion()?;
    match args.chosen.find_origins(&suspicion).and_then(|origins| plan_bisection(args, &suspicion, &origins))
    {
        Ok(plan) if args.run => plan.run(),
        Ok(plan) => page::write(&plan.shell_commands()).map(|()| ExitCode::SUCCESS),
        Err(error @ Error::Usage(_)) => Err(error),
        Err(error) => {
            page::warn(&error);
            Ok(Exit::Skipped.into())
        }
    }
}

/// The bisection that finds the change between the two points.
#[derive(Debug, PartialEq)]
enum Plan {
    /// A bisection by git: the last good revision, the first bad one, and the arguments behind `syscost gate --bisect`.
    Git { good: String, bad: String, gate: Vec<String> },
    /// A bisection of kernel packages: the arguments behind `syscost`.
    Kernels(Vec<String>),
}

fn plan_bisection(args: &Bisect, suspicion: &Suspicion, origins: &[Origin; 2]) -> Result<Plan> {
    match origins {
        [Origin::Revision(good), Origin::Revision(bad)] => {
            let [good, bad] = [good, bad].map(|revision| revision::resolve_commit(revision));
            git_plan(suspicion, [good?, bad?], &args.build)
        }
        [Origin::Kernel(good), Origin::Kernel(bad)] => kernel_plan(suspicion, [good, bad]),
        _ => Err(Error::Missing(
            "a kept binary has no revisions between it and another: name both sides as git revisions, by --before and --after".into(),
        )),
    }
}

/// The plan for git: it compares the slower cases, and counts a revision as bad beyond half of their smallest change.
fn git_plan(suspicion: &Suspicion, [good, bad]: [String; 2], build: &BuildFlags) -> Result<Plan> {
    let slower: Vec<_> =
        suspicion.event.slower_cases().filter(|moved| moved.change > GATE).take(CASES).collect();
    let Some(smallest) = slower.iter().map(|moved| moved.change).reduce(f64::min) else {
        return Err(Error::Missing(
            "no case became slower by more than 1 %, which is the least that `syscost gate` tells: `syscost history confirm` compares the two \
             ends"
                .into(),
        ));
    };
    let mut gate = vec!["--a-rev".to_owned(), good.clone(), "--b-rev".into(), "HEAD".into()];
    gate.extend(build.words());
    // A revision that is slower by more than half of the change is counted as bad.
    let share = format!("{:.1}%", 100.0 * (smallest / 2.0).max(GATE));
    gate.extend(["--max-regress".to_owned(), share, exact_id_pattern(&slower)]);
    Ok(Plan::Git { good, bad, gate })
}

/// The plan for kernel packages: it compares the case with the largest change; only for counted instructions.
fn kernel_plan(suspicion: &Suspicion, [good, bad]: [&str; 2]) -> Result<Plan> {
    let Some(moved) = suspicion.moved_cases(1).pop().filter(|_| suspicion.after.clock == ClockKind::Icount)
    else {
        return Err(Error::Missing(format!(
            "kernels are bisected by counted instructions, and this change is of {}: `syscost history confirm` compares the two ends",
            suspicion.after.clock
        )));
    };
    let words = ["kernels", "bisect", "--good", good, "--bad", bad, "--exact", &moved.id];
    Ok(Plan::Kernels(words.map(str::to_owned).to_vec()))
}

impl Plan {
    fn shell_commands(&self) -> String {
        match self {
            Self::Git { good, bad, gate } => format!(
                "git bisect start {} {}\ngit bisect run syscost gate --bisect {}\ngit bisect reset\n",
                quote_for_shell(bad),
                quote_for_shell(good),
                shell_line(gate)
            ),
            Self::Kernels(words) => format!("syscost {}\n", shell_line(words)),
        }
    }

    fn run(&self) -> Result<ExitCode> {
        let program = own_executable()?;
        match self {
            Self::Kernels(words) => {
                let code = run_for_exit_code(Command::new(&program).args(words))?
                    .and_then(|code| u8::try_from(code).ok());
                Ok(code.unwrap_or(Exit::Skipped.code()).into())
            }
            Self::Git { good, bad, gate } => {
                let ends = ["gate", "--bisect", "--a-rev", good, "--b-rev", bad].map(str::to_owned);
                match run_for_exit_code(Command::new(&program).args(ends).args(&gate[4..]))? {
                    Some(0) => {
                        page::write_to_stderr("the two ends do not differ: there is nothing to find");
                        return Ok(Exit::Disproved.into());
                    }
                    Some(1) => {}
                    _ => return Ok(Exit::Skipped.into()),
                }
                let step = [program.display().to_string(), "gate".into(), "--bisect".into()];
                let is_found = revision::run_bisection([good, bad], &[&step[..], gate].concat())?;
                Ok(if is_found { Exit::Success } else { Exit::Skipped }.into())
            }
        }
    }
}

/// Runs a command that prints its own messages, and returns its exit code; `None` if a signal ended it.
fn run_for_exit_code(command: &mut Command) -> Result<Option<i32>> {
    let status = command.status().map_err(|e| Error::file(command.get_program(), "starting", e))?;
    Ok(status.code())
}

fn shell_line(words: &[String]) -> String {
    words.iter().map(|word| quote_for_shell(word)).collect::<Vec<_>>().join(" ")
}

// A change that a history reports, and its two sides, if they are still available.

/// The most characters of a label in a sentence.
const LONGEST: usize = 60;

/// The change, and its sides if the labels do not name them.
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

/// The source from which a side can be started again.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Origin {
    /// An executable file.
    Binary(PathBuf),
    /// A revision of the git repository here.
    Revision(String),
    /// A kernel, by its name.
    Kernel(String),
}

/// A change, the last point before it and the first point after it.
pub(super) struct Suspicion {
    pub(super) event: ChangeEvent,
    pub(super) before: HistoryPoint,
    pub(super) after: HistoryPoint,
}

impl Chosen {
    /// The newest change, or the newest one that begins at the given label.
    ///
    /// # Errors
    /// The history cannot be read, or has no change, or no change begins at this label.
    pub(super) fn find_suspicion(&self) -> Result<Suspicion> {
        let (points, series) = self.place.read_series()?;
        let mut events = find_change_events(&points, &series);
        let is_meant = |event: &ChangeEvent| {
            self.label.as_ref().is_none_or(|label| inert::neutralize_text(&points[event.at].label) == *label)
        };
        let Some(at) = events.iter().rposition(is_meant) else {
            let labels: Vec<_> = events.iter().map(|event| points[event.at].label.as_str()).collect();
            return Err(Error::Usage(if labels.is_empty() {
                "the history tells of no change: there is nothing to compare again".into()
            } else {
                format!("no change begins at this label; they begin at: {}", labels.join(", "))
            }));
        };
        let event = events.swap_remove(at);
        let [before, after] = [event.before, event.at].map(|at| points[at].clone());
        Ok(Suspicion { event, before, after })
    }

    /// The sources from which both sides can be started again: before the change, and after it.
    ///
    /// # Errors
    /// A side is no longer available: the error says what is missing.
    pub(super) fn find_origins(&self, suspicion: &Suspicion) -> Result<[Origin; 2]> {
        let before = self.find_origin("before", self.before.as_deref(), &suspicion.before)?;
        Ok([before, self.find_origin("after", self.after.as_deref(), &suspicion.after)?])
    }

    /// The source of one side: the given one, or else the one that the label of its point names.
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
    /// At most `most` cases that changed, without canaries, the largest change first.
    pub(super) fn moved_cases(&self, most: usize) -> Vec<&Moved> {
        self.event.moved.iter().filter(|moved| !moved.canary).take(most).collect()
    }
}

/// Both sides for `ab`; `None` if one is a kernel.
pub(super) fn comparison_sides(origins: &[Origin; 2], build: &BuildFlags) -> Option<Sides> {
    let side = |origin: &Origin| match origin {
        Origin::Binary(file) => Some((Some(file.clone()), None)),
        Origin::Revision(revision) => Some((None, Some(revision.clone()))),
        Origin::Kernel(_) => None,
    };
    Some(Sides::new(side(&origins[0])?, side(&origins[1])?, build.clone()))
}

/// A regular expression that matches exactly the ids of these cases.
pub(super) fn exact_id_pattern(moved: &[&Moved]) -> String {
    let ids: Vec<_> = moved.iter().map(|moved| regex::escape(&moved.id)).collect();
    format!("^({})$", ids.join("|"))
}

/// Whether a word can be the hash of a revision, which a workflow passes as `--label`: 7 to 40 hexadecimal digits.
fn is_revision_hash(word: &str) -> bool {
    (7..=40).contains(&word.len()) && word.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quote_for_shell("syscall/getppid"), "syscall/getppid");
        assert_eq!(quote_for_shell("^(a|b)$"), "'^(a|b)$'");
        assert_eq!(quote_for_shell("a'; rm -rf ~; '"), "'a'\\''; rm -rf ~; '\\'''");
        assert_eq!(quote_for_shell(""), "''");
    }

    #[test]
    fn the_plan_for_git_names_both_ends_and_the_gate() {
        let gate =
            ["--a-rev", "abc", "--b-rev", "HEAD", "--max-regress", "1.5%", "^(g/0)$"].map(str::to_owned);
        let plan = Plan::Git { good: "abc".into(), bad: "def".into(), gate: gate.to_vec() };
        let expected = "git bisect start def abc\ngit bisect run syscost gate --bisect --a-rev abc --b-rev HEAD --max-regress 1.5% \
                        '^(g/0)$'\ngit bisect reset\n";
        assert_eq!(plan.shell_commands(), expected);
    }
}
