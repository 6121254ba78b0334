//! The commands that add points to a history: measured now against a kept reference, or taken from a stored comparison.

use super::Place;
use crate::record::history_point::HistoryPoint;
use crate::study::ratio_series::{point_from_counts, point_from_pairs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_analysis::record::paired::Paired;
use syscost_build::revision;
use syscost_command_line::flag::{BuildFlags, Filter};
use syscost_command_line::page;
use syscost_command_line::sides::{Manner, Sides, compare_sides, own_executable};
use syscost_engine::case::Group;
use syscost_engine::record::store;
use syscost_kernels::instruction_counts::InstructionCounts;
use syscost_platform::error::{Error, Result};
use syscost_platform::plain_file;

/// The largest binary that is kept, in bytes.
const LARGEST: u64 = 1 << 30;

/// Keep a build as a reference
///
/// Copies a binary into the store. A name cannot be used twice, so that all measurements against it stay comparable.
#[derive(clap::Args)]
pub(in crate::command) struct Reference {
    /// Name of the reference
    name: String,
    #[command(flatten)]
    build: Build,
    #[command(flatten)]
    place: Place,
}

/// Compare today's build with a reference by turns, and add the ratios
#[derive(clap::Args)]
pub(in crate::command) struct Measure {
    /// Name of the reference
    #[arg(long, value_name = "NAME")]
    reference: String,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    today: Build,
    /// What today's side is, in a word or two: a revision, a kernel
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    #[command(flatten)]
    manner: Manner,
    #[command(flatten)]
    place: Place,
}

/// A build.
#[derive(clap::Args)]
struct Build {
    /// Its binary: a bench, or a `syscost` [default: this one]
    #[arg(long, value_name = "FILE", conflicts_with = "rev")]
    bin: Option<PathBuf>,
    /// Git revision to build it from
    #[arg(long, value_name = "REV")]
    rev: Option<String>,
    #[command(flatten)]
    flags: BuildFlags,
}

/// Compare an old reference with a new one by turns, so that the series go on with the new one
#[derive(clap::Args)]
pub(in crate::command) struct Bridge {
    /// Name of the reference that is replaced
    old: String,
    /// Name of the one that takes its place
    new: String,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    manner: Manner,
    #[command(flatten)]
    place: Place,
}

/// Add a comparison that `syscost ab`, `syscost gate` or `syscost kernels ab` kept
///
/// Side A is the reference: a build, a wrapper, a setting of the machine, or a kernel. Counted instructions, and times in guests,
/// are by clocks of their own, and a history is of one clock: --history NAME.
#[derive(clap::Args)]
pub(in crate::command) struct Add {
    /// The file of the comparison
    pairs: PathBuf,
    /// Name of the reference, which was side A
    #[arg(long, value_name = "NAME")]
    reference: String,
    /// Side B is a new reference of this name: the point is the bridge to it
    #[arg(long, value_name = "NAME")]
    bridge_to: Option<String>,
    /// Label of side B [default: that of the comparison]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    #[command(flatten)]
    place: Place,
}

pub(super) fn keep_reference(args: &Reference) -> Result<ExitCode> {
    let target = reference_file(&args.place, &args.name)?;
    store::check_creatable(&target)?;
    args.build.flags.check_revision(args.build.rev.is_some())?;
    let binary = match (&args.build.bin, &args.build.rev) {
        (Some(file), _) => file.clone(),
        (None, Some(rev)) => {
            revision::build_revision(rev, &args.build.flags.recipe(false), &page::write_to_stderr)?.binary()
        }
        (None, None) => own_executable()?,
    };
    let bytes = plain_file::read(&binary, LARGEST)?;
    store::create_file(&target, &bytes)?;
    let executable = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&target, executable)
        .map_err(|e| Error::file(&target, "making it executable", e))?;
    page::write(&format!("{}\n", target.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The file of the reference of this name.
pub(super) fn reference_file(place: &Place, name: &str) -> Result<PathBuf> {
    store::check_name(name, "reference")?;
    let store = store::Store::at(&place.home.directory());
    Ok(store.home().join("references").join(name))
}

/// The file of the reference of this name; an error if it is missing.
fn existing_reference(place: &Place, name: &str) -> Result<PathBuf> {
    let path = reference_file(place, name)?;
    match plain_file::open(&path) {
        Ok(_) => Ok(path),
        Err(_) if !path.exists() => Err(Error::Usage(format!(
            "there is no reference {name}: `syscost history reference {name}` keeps this build as one"
        ))),
        Err(error) => Err(error),
    }
}

pub(super) fn measure(args: &Measure) -> Result<ExitCode> {
    let reference = existing_reference(&args.place, &args.reference)?;
    args.place.history_log()?.check_writable()?;
    let today = match (&args.today.bin, &args.today.rev) {
        (None, None) => Some(own_executable()?),
        (bin, _) => bin.clone(),
    };
    let today = (today, args.today.rev.clone());
    let sides = Sides::new((Some(reference), None), today, args.today.flags.clone());
    let paired = compare_sides(&args.filter, &sides, &args.manner, &args.place.home.directory())?;
    save_point(&args.place, &args.reference, None, args.label.as_deref(), point_from_pairs(&paired))
}

pub(super) fn bridge(args: &Bridge) -> Result<ExitCode> {
    if args.old == args.new {
        return Err(Error::Usage(format!("{} cannot take its own place: name two references", args.old)));
    }
    let [old, new] = [&args.old, &args.new].map(|name| existing_reference(&args.place, name));
    args.place.history_log()?.check_writable()?;
    let sides = Sides::new((Some(old?), None), (Some(new?), None), BuildFlags::default());
    let paired = compare_sides(&args.filter, &sides, &args.manner, &args.place.home.directory())?;
    save_point(&args.place, &args.old, Some(&args.new), Some(&args.new), point_from_pairs(&paired))
}

pub(super) fn add(args: &Add) -> Result<ExitCode> {
    let version = |id: &str| {
        let name = id.split('/').next()?;
        GROUPS.iter().find(|group| group.name == name).map(Group::version_text)
    };
    let found = if holds_counts(&args.pairs)? {
        point_from_counts(&InstructionCounts::load(&args.pairs)?, version)
    } else {
        point_from_pairs(&Paired::load(&args.pairs)?)
    };
    save_point(&args.place, &args.reference, args.bridge_to.as_deref(), args.label.as_deref(), found)
}

/// Whether a file is a comparison by counted instructions.
fn holds_counts(path: &Path) -> Result<bool> {
    #[derive(serde::Deserialize)]
    struct Kind {
        instruction_counts: Option<serde::de::IgnoredAny>,
    }
    let kind: Option<Kind> = serde_json::from_slice(&store::read(path)?).ok();
    Ok(kind.is_some_and(|kind| kind.instruction_counts.is_some()))
}

/// Adds a point to the history, against this reference. A given label replaces the point's own.
fn save_point(
    place: &Place,
    reference: &str,
    bridge_to: Option<&str>,
    label: Option<&str>,
    mut point: HistoryPoint,
) -> Result<ExitCode> {
    for name in [Some(reference), bridge_to].into_iter().flatten() {
        store::check_name(name, "reference")?;
    }
    (point.reference, point.bridge_to) = (reference.into(), bridge_to.map(str::to_owned));
    if let Some(label) = label {
        point.label = label.into();
    }
    if point.cases.is_empty() {
        return Err(Error::Disturbed(format!("{}: no case has a number: nothing was added", point.run)));
    }
    let log = place.history_log()?;
    let added = log.add(std::slice::from_ref(&point))?;
    page::write(&added_message(&point, added, log.path()))?;
    Ok(ExitCode::SUCCESS)
}

fn added_message(point: &HistoryPoint, added: usize, path: &Path) -> String {
    let cases = page::count_with_noun(point.cases.len(), "case", "cases");
    match added {
        0 => format!("{} against {} is in {} already\n", point.run, point.reference, path.display()),
        _ => format!("{cases} against {} added to {}\n", point.reference, path.display()),
    }
}
