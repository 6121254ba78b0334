//! The arguments of every command that boots guests, and the comparison of two kernels by counted instructions.

use crate::guest::boot::Machine;
use crate::guest::boot_series::{BOOTS, Outcome, Series};
use crate::guest::console::{Questions, select_questions};
use crate::guest::emulator::{Architecture, Plugin, X86_64};
use crate::guest::kernel::{Kernel, Supply, configuration_differences};
use crate::guest::{emulator, initramfs};
use crate::instruction_counts::{CountingMethod, InstructionCounts, LAYOUT};
use std::path::{Path, PathBuf};
use std::time::Duration;
use syscost::suite::GROUPS;
use syscost_command_line::flag::{Filter, Home};
use syscost_command_line::page;
use syscost_engine::pair::side::case_ids;
use syscost_engine::record::guest_side::ClockKind;
use syscost_engine::record::quantity::fresh_run_name;
use syscost_engine::record::store::{self, Store};
use syscost_engine::trial::scratch::{self, Scratch};
use syscost_platform::error::{Error, Result};
use syscost_platform::{cpu, signal};

/// The most guests that run at the same time: more are no faster on the few CPUs of a small machine, and each takes memory.
const MOST_AT_ONCE: usize = 4;

/// How guests are booted, and which cases are counted.
#[derive(clap::Args)]
pub struct Counting {
    /// Count all cases that FILTER matches, not only those for which counted instructions are useful
    #[arg(long)]
    all: bool,
    /// Memory of a guest, MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub(super) memory: u32,
    /// Processor that is emulated, by QEMU's name [default: max, and rv64 on RISC-V]
    #[arg(long, value_name = "MODEL")]
    pub(super) guest_cpu: Option<String>,
    /// Seconds after which a guest that has not ended is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) patience: u64,
    /// Static build of syscost-kernels for the guest [default: $SYSCOST_GUEST_BINARY, or what scripts/guest has built]
    #[arg(long, value_name = "FILE")]
    pub(super) guest_binary: Option<PathBuf>,
}

/// The places where kernels are looked for; downloads go into the store of `home`.
pub fn kernel_supply(home: &Path) -> Supply {
    Supply {
        downloads: Store::at(home).home().join("kernels"),
        announce: |package| {
            page::write_to_stderr(&format!("downloading {} ({})", package.name, package.version))
        },
    }
}

/// Boots both kernels, saves their counts in the store, and returns them.
///
/// # Errors
/// No case matches, something that guests need is missing, a file cannot be written, or a signal came.
pub fn count_and_save(
    kernels: &[Kernel; 2],
    filter: &Filter,
    counting: &Counting,
    threshold: f64,
    home: &Home,
) -> Result<InstructionCounts> {
    let ready = counting.prepare(filter, kernels[0].architecture())?;
    let home = home.directory();
    Store::at(&home).check_directory_usable("counts")?;
    let counts = ready.count_instructions(kernels, threshold)?;
    page::write_to_stderr(&format!("kept in {}", save_counts(&home, &counts)?.display()));
    Ok(counts)
}

/// Everything that boots need apart from the kernels.
pub(super) struct Ready<'a> {
    counting: &'a Counting,
    pub(super) asked: Questions,
    program: Vec<u8>,
    architecture: &'static Architecture,
}

impl Counting {
    /// Selects the cases and loads the program for the guest, so that errors show before minutes of booting.
    ///
    /// # Errors
    /// No case matches, there is no emulator, or there is no program for the guest.
    pub(super) fn prepare(&self, filter: &Filter, architecture: &'static Architecture) -> Result<Ready<'_>> {
        signal::watch_signals()?;
        let asked = self.selected_questions(filter)?;
        emulator::check_available(architecture)?;
        let program = initramfs::load_program(self.guest_binary.as_deref(), architecture)?;
        Ok(Ready { counting: self, asked, program, architecture })
    }

    /// How guests are booted by these flags, still without an initramfs and a plugin.
    pub(super) fn guest_machine(&self, scratch: &Scratch) -> Machine {
        Machine {
            memory_mib: self.memory,
            model: self.guest_cpu.clone(),
            patience: Duration::from_secs(self.patience),
            initramfs: PathBuf::new(),
            plugin: None,
            scratch: scratch.path().to_path_buf(),
        }
    }

    /// The emulator and the processor of the guests, for the record.
    pub(super) fn describe_machine(&self, architecture: &Architecture) -> String {
        let processor = self.guest_cpu.as_deref().unwrap_or(architecture.processor);
        format!("{}, processor {processor}", emulator::version(architecture))
    }

    /// The cases that match and are counted, with their iterations.
    ///
    /// # Errors
    /// No case matches.
    pub fn selected_questions(&self, filter: &Filter) -> Result<Questions> {
        let matches = filter.matcher()?;
        let asked = select_questions(case_ids(GROUPS).into_iter().filter(|id| matches(id)), self.all);
        if asked.cases.is_empty() {
            return Err(Error::Usage(
                "no case of those that the instruction clock tells something about matches; --all asks the others, too"
                    .into(),
            ));
        }
        Ok(asked)
    }
}

impl Ready<'_> {
    /// Boots both kernels and counts the cases on each.
    ///
    /// # Errors
    /// There is no emulator, a file cannot be written, or a signal came.
    pub fn count_instructions(&self, kernels: &[Kernel; 2], threshold: f64) -> Result<InstructionCounts> {
        let (started, run) = fresh_run_name();
        let (outcome, refusal) = self.boot_kernels(kernels, BOOTS, |plugin| plugin)?;
        let method = if refusal.is_none() { CountingMethod::Executed } else { CountingMethod::Clock };
        Ok(InstructionCounts {
            instruction_counts: LAYOUT,
            clock: ClockKind::Icount,
            method,
            refusal,
            tool: concat!("syscost ", env!("CARGO_PKG_VERSION")).into(),
            run,
            started,
            threshold,
            machine: self.counting.describe_machine(self.architecture),
            sides: outcome.sides,
            notes: configuration_differences(kernels),
            cases: outcome.cases,
        })
    }

    /// Boots each kernel `boots` times, with the plugin as `adjust` returns it. The returned text says why the emulator loads no
    /// plugin; `None` if it does.
    ///
    /// # Errors
    /// There is no emulator, a file cannot be written, or a signal came.
    pub fn boot_kernels(
        &self,
        kernels: &[Kernel; 2],
        boots: usize,
        adjust: impl Fn(Plugin) -> Plugin,
    ) -> Result<(Outcome, Option<String>)> {
        let place = scratch::scratch_parent();
        scratch::remove_orphans(&place);
        let scratch = scratch::make_directory_in(&place)?;
        let (plugin, refusal) = match Plugin::install(scratch.path(), self.architecture)? {
            Ok(plugin) => (Some(adjust(plugin)), None),
            Err(why) if *self.architecture != X86_64 => {
                return Err(Error::Missing(format!(
                    "{} does not load the plugin that counts executed instructions: {why}",
                    self.architecture.emulator
                )));
            }
            Err(why) => (None, Some(why)),
        };
        let machine = Machine { plugin, ..self.counting.guest_machine(&scratch) };
        let outcome = self.new_series(kernels, machine, boots).run(&self.asked)?;
        let refusal = refusal.map(|why| {
            format!(
                "the emulator does not load the plugin that counts executed instructions ({why}): its clock counts them, and \
                 each repetition of a string instruction as one"
            )
        });
        Ok((outcome, refusal))
    }

    fn new_series<'a>(&'a self, kernels: &'a [Kernel; 2], machine: Machine, boots: usize) -> Series<'a> {
        Series {
            kernels,
            program: &self.program,
            machine,
            boots,
            at_once: cpu::allowed_cpus().len().clamp(1, MOST_AT_ONCE),
            announce: &|kernel, cases| {
                page::write_to_stderr(&format!(
                    "booting {} for {}",
                    kernel.name,
                    page::count_with_noun(cases, "case", "cases")
                ));
            },
        }
    }
}

/// Writes the counts to the store, and returns their path.
fn save_counts(home: &Path, counts: &InstructionCounts) -> Result<PathBuf> {
    let path = Store::at(home).home().join("counts").join(format!("{}.json", counts.run));
    let bytes = serde_json::to_vec(counts).map_err(|e| Error::file(&path, "writing as JSON", e.into()))?;
    store::create_file(&path, &bytes)?;
    Ok(path)
}
