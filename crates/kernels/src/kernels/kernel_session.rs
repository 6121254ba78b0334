//! `syscost kernels session`: measures kernels on this machine itself, over reboots, and prints the plan and the progress.

use crate::reboot::boot_kernel::{BootKernel, INSTALLED, Running};
use crate::reboot::boot_loader::{self, BootLoader};
use crate::reboot::boot_plan::{BootPlan, LAYOUT, Machine, Standing, advance_session};
use crate::reboot::resume_unit::{ResumeUnit, reboot_loss_reason};
use clap::Subcommand;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use syscost::suite::GROUPS;
use syscost_command_line::flag::Home;
use syscost_command_line::sides::own_executable;
use syscost_command_line::{page, record};
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity;
use syscost_engine::record::store::{Store, json_file_name};
use syscost_engine::render::table::Layout;
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::process::find_on_path;
use syscost_platform::{plain_file, signal};

/// Measure installed kernels on this machine itself, over reboots, in turn
///
/// The machine restarts into each kernel in the order A B B A …, as often as --boots says, and measures in each boot. It does so
/// by itself, after a power cut too, and ends with the kernel with which it began. Then `syscost compare --by kernel NAME` judges.
#[derive(Subcommand)]
pub(super) enum SessionCommand {
    Start(Start),
    /// Print the progress of a session
    ///
    /// A kernel a line: whole boots of those wanted, records, and why it was given up. In a pipe, between tabs.
    Status(Which),
    /// End a session early: no further restart; its records are kept, and `resume` continues it
    Stop(Which),
    /// Continue a session, as its unit does after each boot
    Resume(Which),
}

/// Plan a session; with --yes restart this machine into its first kernel
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  syscost kernels session start fork 6.1 6.12 -- '^fork/'\n  \
    syscost kernels session start pti 6.12 6.12@pti=on --boots 8 --yes -- syscall")]
pub(super) struct Start {
    /// Name of the session, and of its records: NAME.1, NAME.2, …
    name: String,
    /// Installed kernels: a release or its beginning (6.12), or the path of an image; behind an @ words for its command line
    #[arg(value_name = "KERNEL", required = true, num_args = 2..)]
    kernels: Vec<String>,
    /// Boots of each kernel: five show changes of some 3 %
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    boots: u32,
    /// How many times to measure every case in each boot, each time in a fresh process
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    processes: u32,
    /// How the next kernel is chosen [default: GRUB where it is, and no kernel has words of its own; else kexec]
    #[arg(long, value_enum)]
    loader: Option<BootLoader>,
    /// Seconds to wait after a boot before it is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=3600))]
    settle: u32,
    /// Restart this machine now, and again for each boot
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    home: Home,
    /// Arguments of `syscost record` in each boot: a filter, --scale, --dir
    #[arg(value_name = "RECORD ARGUMENTS", last = true)]
    record: Vec<String>,
}

/// The session that a command is for.
#[derive(clap::Args)]
pub(super) struct Which {
    /// Name of the session
    name: String,
    #[command(flatten)]
    home: Home,
}

pub(super) fn run(command: &SessionCommand) -> Result<ExitCode> {
    match command {
        SessionCommand::Start(args) => start(args),
        SessionCommand::Status(which) => status(which),
        SessionCommand::Stop(which) => stop(which),
        SessionCommand::Resume(which) => resume(which),
    }
}

impl Which {
    /// The plan of this session, and its file.
    fn load_plan(&self) -> Result<(BootPlan, PathBuf)> {
        let path = plan_path(&self.home.directory(), &self.name)?;
        if !path.exists() {
            return Err(Error::Usage(format!(
                "there is no session {}: no file {}; `syscost kernels session start` plans one, and --home looks elsewhere",
                self.name,
                path.display()
            )));
        }
        Ok((BootPlan::load(&path)?, path))
    }
}

fn plan_path(home: &Path, name: &str) -> Result<PathBuf> {
    Ok(Store::at(home).home().join("sessions").join(json_file_name(name, "session")?))
}

fn start(args: &Start) -> Result<ExitCode> {
    let plan = make_plan(args)?;
    let home = args.home.directory();
    page::write(&render_plan(&plan, layout()))?;
    if !args.yes {
        page::write_to_stderr("nothing was started: with --yes this machine restarts now");
        return Ok(ExitCode::SUCCESS);
    }
    if !geteuid().is_root() {
        return Err(Error::Usage(
            "restarting the machine needs root: sudo syscost kernels session start …".into(),
        ));
    }
    let path = plan_path(&home, &plan.name)?;
    plan.create(&path)?;
    continue_session(plan, &path, &home)
}

/// The plan for these arguments, after every check that is possible before the first restart.
fn make_plan(args: &Start) -> Result<BootPlan> {
    ResumeUnit::for_session(&args.name)?;
    let home = args.home.directory();
    record::Args::for_session(&args.name, &home, &args.record, GROUPS)?;
    if let Some((_, file)) = Store::at(&home).session_files(&args.name)?.first() {
        return Err(Error::Usage(format!(
            "{}: there is a record of this name already, and a session does not mix with others: choose another name",
            file.display()
        )));
    }
    let program = own_executable()?;
    for (path, remedy) in [(&program, "install the program first"), (&home, "choose another --home")] {
        if let Some(why) = reboot_loss_reason(path) {
            return Err(Error::Usage(format!("{why}: {remedy}")));
        }
    }
    let find = |name: &String| BootKernel::find(name, Path::new(INSTALLED));
    let kernels = args.kernels.iter().map(find).collect::<Result<Vec<_>>>()?;
    refuse_twins(&kernels)?;
    let loader = args.loader.unwrap_or_else(|| default_loader(&kernels));
    loader.check_kernels(&kernels)?;
    Ok(BootPlan {
        plan: LAYOUT,
        name: args.name.clone(),
        loader,
        kernels,
        wanted: args.boots,
        processes: args.processes,
        record: args.record.clone(),
        settle: args.settle,
        planned_in: Running::now(&KernelFiles::live())?,
        boots: Vec::new(),
        tries: 0,
    })
}

/// Refuses two kernels with the same identity: they would be measured as one.
fn refuse_twins(kernels: &[BootKernel]) -> Result<()> {
    let identity = |kernel: &BootKernel| {
        let mut words: Vec<_> = kernel.command_line_words().map(str::to_owned).collect();
        words.sort();
        (kernel.release.clone(), words)
    };
    for (at, kernel) in kernels.iter().enumerate() {
        if let Some(twin) = kernels[..at].iter().find(|other| identity(other) == identity(kernel)) {
            return Err(Error::Usage(format!(
                "{} and {} both say that they are {}: build one with another CONFIG_LOCALVERSION",
                twin.name, kernel.name, kernel.release
            )));
        }
    }
    Ok(())
}

/// GRUB if it is installed and no kernel has words for its command line, else kexec.
fn default_loader(kernels: &[BootKernel]) -> BootLoader {
    let has_grub = ["grub-reboot", "grub2-reboot"].into_iter().any(|tool| find_on_path(tool).is_some());
    let has_words = kernels.iter().any(|kernel| !kernel.words.is_empty());
    if has_grub && !has_words { BootLoader::Grub } else { BootLoader::Kexec }
}

fn status(which: &Which) -> Result<ExitCode> {
    let (plan, _) = which.load_plan()?;
    let is_going_on = ResumeUnit::for_session(&plan.name)?.is_installed();
    page::write(&render_progress(&plan, is_going_on, layout()))?;
    Ok(ExitCode::SUCCESS)
}

fn stop(which: &Which) -> Result<ExitCode> {
    let (plan, _) = which.load_plan()?;
    let unit = ResumeUnit::for_session(&plan.name)?;
    if unit.is_installed() {
        unit.stop()?;
        unit.remove()?;
    }
    page::write(&render_progress(&plan, false, layout()))?;
    Ok(ExitCode::SUCCESS)
}

/// The text of a plan before its first restart: its kernels, and the number of its restarts.
pub(super) fn render_plan(plan: &BootPlan, layout: Layout) -> String {
    let row = |kernel: &BootKernel| {
        [kernel.name.clone(), kernel.release.clone(), kernel.image.display().to_string()]
            .map(|cell| page::inert(&cell))
    };
    let rows: Vec<_> = plan.kernels.iter().map(row).collect();
    if page::is_piped() {
        return page::tabbed_rows(&rows);
    }
    let by = match plan.loader {
        BootLoader::Grub => "GRUB",
        BootLoader::Kexec => "kexec",
    };
    let restarts = plan.kernels.len() * plan.wanted as usize;
    let table = render_table(["kernel", "release", "image"], rows, layout);
    format!(
        "{table}\n{} by {by}, in turn: {} of each kernel; {} of `syscost record {}` in each boot, {} s after it.\n",
        page::count_with_noun(restarts, "restart", "restarts"),
        page::count_with_noun(plan.wanted as usize, "boot", "boots"),
        page::count_with_noun(plan.processes as usize, "process", "processes"),
        page::inert(&plan.record.join(" ")),
        plan.settle
    )
}

/// The progress of a session as text, kernel by kernel.
pub(super) fn render_progress(plan: &BootPlan, is_going_on: bool, layout: Layout) -> String {
    let row = |(at, kernel): (usize, &BootKernel)| {
        let boots = plan.boots.iter().filter(|boot| boot.kernel == at);
        [
            page::inert(&kernel.name),
            format!("{} of {}", plan.count_whole_boots(at), plan.wanted),
            boots.map(|boot| boot.records.len()).sum::<usize>().to_string(),
            page::inert(kernel.given_up.as_deref().unwrap_or_default()),
        ]
    };
    let rows: Vec<_> = plan.kernels.iter().enumerate().map(row).collect();
    if page::is_piped() {
        return page::tabbed_rows(&rows);
    }
    let table = render_table(["kernel", "boots", "records", "given up"], rows, layout);
    format!("{table}\n{}\n", next_step_sentence(plan, is_going_on))
}

/// The state of a session and the next command, in a sentence. `is_going_on` says that its unit is installed.
fn next_step_sentence(plan: &BootPlan, is_going_on: bool) -> String {
    let has_all =
        |at: usize| plan.count_whole_boots(at) >= plan.wanted as usize || plan.kernels[at].given_up.is_some();
    let compare = format!("`syscost compare --by kernel {}` judges", plan.name);
    match (is_going_on, (0..plan.kernels.len()).all(has_all)) {
        (_, true) => format!("The session has ended: {compare}."),
        (true, false) => format!("It goes on at the next boot; {compare} what there is so far."),
        (false, false) => format!("It was stopped: `syscost kernels session resume {}` goes on.", plan.name),
    }
}

fn render_table<const N: usize>(head: [&str; N], mut rows: Vec<[String; N]>, layout: Layout) -> String {
    rows.insert(0, head.map(str::to_owned));
    page::columns_text(&rows, page::table_width(layout))
}

// A session continues: its unit resumes it after each boot, or the user does.

/// The time between two checks for a signal while a session waits.
const LOOK: Duration = Duration::from_millis(200);

/// This machine, as a session uses it.
struct ThisMachine<'a> {
    path: &'a Path,
    record: record::Args,
}

impl Machine for ThisMachine<'_> {
    fn running_kernel(&self) -> Result<Running> {
        Running::now(&KernelFiles::live())
    }

    fn wait_until_settled(&mut self, plan: &BootPlan) {
        let end = Instant::now() + Duration::from_secs(plan.settle.into());
        while Instant::now() < end && signal::pending().is_none() {
            std::thread::sleep(LOOK);
        }
    }

    fn measure_process(&mut self, _: &BootPlan) -> Result<Option<String>> {
        if signal::pending().is_some() { Ok(None) } else { self.record.record_next_process(GROUPS) }
    }

    fn save_plan(&mut self, plan: &BootPlan) -> Result<()> {
        plan.save(self.path)
    }

    fn restart_into(&mut self, plan: &BootPlan, kernel: &BootKernel) -> Result<()> {
        match plan.loader.restart_into(kernel, &plan.planned_in) {
            // The restart itself ended the program that requested it.
            Err(_) if signal::pending().is_some() => Ok(()),
            asked => asked,
        }
    }

    fn unix_seconds(&self) -> u64 {
        quantity::unix_now()
    }
}

/// Continues a session that was planned before.
fn resume(which: &Which) -> Result<ExitCode> {
    let (plan, path) = which.load_plan()?;
    continue_session(plan, &path, &which.home.directory())
}

/// Continues this plan until the machine restarts, a signal comes or nothing is left to do.
fn continue_session(mut plan: BootPlan, path: &Path, home: &Path) -> Result<ExitCode> {
    let _alone = lock_exclusively(path)?;
    signal::watch_signals()?;
    let unit = ResumeUnit::for_session(&plan.name)?;
    if !unit.is_installed() {
        unit.install(&resume_command(&plan.name, home)?)?;
    }
    let record = record::Args::for_session(&plan.name, home, &plan.record, GROUPS)?;
    let standing = advance_session(&mut plan, &mut ThisMachine { path, record })?;
    match standing {
        Standing::Restarting(kernel) => {
            page::write_to_stderr(&format!("restarting into {}", plan.kernels[kernel].name))
        }
        Standing::Interrupted => page::write_to_stderr("interrupted: the unit goes on at the next boot"),
        Standing::Done => return end_session(&plan, &unit),
    }
    Ok(Exit::Success.or_signal(signal::pending()).into())
}

/// Locks the directory of plans, so that no second process measures a session at the same time.
fn lock_exclusively(path: &Path) -> Result<Flock<File>> {
    let directory = path.parent().unwrap_or(path);
    let file = plain_file::open_directory(directory).map_err(|e| Error::file(directory, "opening", e))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
        Error::Usage(format!("{}: a session is being measured already ({errno})", directory.display()))
    })
}

/// The command line that resumes the session after a boot.
fn resume_command(name: &str, home: &Path) -> Result<Vec<String>> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| {
            Error::Usage(format!("{}: a unit's words are UTF-8, and this path is not", path.display()))
        })
    };
    let own = ["kernels", "session", "resume", name, "--home"].map(str::to_owned);
    Ok([vec![text(&own_executable()?)?], own.to_vec(), vec![text(home)?]].concat())
}

/// Removes the unit, and restarts into the kernel in which the session was planned, if another one runs.
fn end_session(plan: &BootPlan, unit: &ResumeUnit) -> Result<ExitCode> {
    unit.remove()?;
    page::write(&render_progress(plan, false, layout()))?;
    let (own, now) = (&plan.planned_in, Running::now(&KernelFiles::live())?);
    if (&own.release, &own.command_line) != (&now.release, &now.command_line) {
        page::write_to_stderr(&format!("restarting into {}, as before the session", own.release));
        boot_loader::restart_machine()?;
    }
    Ok(Exit::failed_if(plan.kernels.iter().any(|kernel| kernel.given_up.is_some())).into())
}
