//! The comparison of two kernels by turns: two guests run at once, and each case is measured in one and then in the other.

use super::counting::{Counting, kernel_supply};
use crate::guest::boot::Machine;
use crate::guest::emulator::{self, X86_64};
use crate::guest::initramfs;
use crate::guest::kernel::{Kernel, configuration_differences};
use crate::guest::live_guest::BootPairs;
use crate::guest::live_guest::{LiveGuest, LiveMachine};
use clap::ValueEnum;
use nix::unistd::{AccessFlags, access};
use std::collections::BTreeSet;
use std::time::Duration;
use syscost::suite::GROUPS;
use syscost_analysis::pair::experiment::{Plan, Testbed, choose_cases};
use syscost_analysis::record::paired::{CasePairs, Paired, Rule};
use syscost_command_line::flag::{Filter, Home};
use syscost_command_line::page;
use syscost_command_line::sides::{Bar, Pairs, save_pairs};
use syscost_engine::pair::side::case_ids;
use syscost_engine::record::guest_side::ClockKind;
use syscost_engine::record::store::{OwnFile, Store};
use syscost_engine::trial::scratch::{self, Scratch};
use syscost_platform::error::{Error, Result};

/// The longest wait for the trial guest of KVM. If KVM works, a guest is ready sooner.
const TRIAL: Duration = Duration::from_secs(20);
/// The default threshold: changes up to this share are no findings.
const THRESHOLD: f64 = 0.01;
/// The device of KVM.
const KVM: &str = "/dev/kvm";
/// The access to the device that a guest needs.
const USE: AccessFlags = AccessFlags::R_OK.union(AccessFlags::W_OK);

/// The clock by which two kernels are compared.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GuestClock {
    /// Counted instructions, by an emulator: exact, and no time
    Icount,
    /// Time by turns in guests of KVM
    Kvm,
    /// Time by turns in guests of an emulator: coarse, and not the hardware's
    Tcg,
}

/// How two kernels take turns.
#[derive(clap::Args)]
pub(super) struct Turning {
    /// What is compared [default: time by turns where KVM works or both are user-mode Linux, else instructions]
    #[arg(long, value_enum)]
    clock: Option<GuestClock>,
    /// By turns: the most pairs of boots before the last verdict on a case; confirming a change takes up to 32 more
    #[arg(long, value_name = "N", value_enum, default_value_t = Pairs::ThirtyTwo)]
    boots: Pairs,
    /// By turns: seed of everything random
    #[arg(long, default_value_t = 0x5eed)]
    seed: u64,
}

impl Turning {
    /// The values that apply without flags.
    pub(super) fn without_flags() -> Self {
        Self { clock: None, boots: Pairs::ThirtyTwo, seed: 0x5eed }
    }

    /// The clock by which these two kernels are compared.
    ///
    /// # Errors
    /// The kernels have no clock in common, or cannot be compared by the requested one.
    pub(super) fn choose_clock(&self, kernels: &[Kernel; 2], counting: &Counting) -> Result<ClockKind> {
        let [a, b] = [kernels[0].is_user_mode()?, kernels[1].is_user_mode()?];
        let is_foreign = *kernels[0].architecture() != X86_64;
        match (a, b, self.clock) {
            (false, false, None | Some(GuestClock::Icount)) if is_foreign => Ok(ClockKind::Icount),
            (false, false, Some(_)) if is_foreign => Err(Error::Usage(format!(
                "kernels of {} are compared by --clock icount only: their guests have one serial line, and turns need two",
                kernels[0].architecture().name
            ))),
            (true, true, None) => Ok(ClockKind::Uml),
            (false, false, Some(GuestClock::Icount)) => Ok(ClockKind::Icount),
            (false, false, Some(GuestClock::Tcg)) => Ok(ClockKind::Tcg),
            (false, false, Some(GuestClock::Kvm)) => kvm_fault(&kernels[0], counting)?.map_or(Ok(ClockKind::Kvm), |why| {
                Err(Error::Missing(format!("KVM runs no guest here: {why}; without --clock instructions are counted")))
            }),
            (false, false, None) => default_clock(&kernels[0], counting),
            (true, true, Some(_)) => Err(Error::Usage(
                "--clock is for kernels that an emulator boots: two user-mode Linux take turns by a clock of their own".into(),
            )),
            _ => Err(Error::Usage(format!(
                "{} and {}: a user-mode Linux and a kernel for hardware have no clock in common: name two of one kind",
                kernels[0].name, kernels[1].name
            ))),
        }
    }
}

/// The clock without a flag: KVM's time if a guest boots under KVM, else counted instructions.
fn default_clock(kernel: &Kernel, counting: &Counting) -> Result<ClockKind> {
    if access(KVM, USE).is_err() {
        return Ok(ClockKind::Icount);
    }
    Ok(match kvm_fault(kernel, counting)? {
        None => ClockKind::Kvm,
        Some(why) => {
            page::write_to_stderr(&format!("KVM runs no guest here ({why}): counting instructions"));
            ClockKind::Icount
        }
    })
}

/// Boots a guest under KVM, and returns why it failed; `None` if it became ready. An outer hypervisor may refuse KVM even if
/// the device exists.
fn kvm_fault(kernel: &Kernel, counting: &Counting) -> Result<Option<String>> {
    if let Err(errno) = access(KVM, USE) {
        return Ok(Some(format!("{KVM}: {}", errno.desc())));
    }
    emulator::check_available(&X86_64)?;
    let place = scratch::make_directory_in(&scratch::scratch_parent())?;
    let cpu = syscost_platform::cpu::current_cpu();
    let mut machine = prepare_machine(ClockKind::Kvm, counting, cpu, &place)?;
    machine.machine.patience = TRIAL;
    let guest = LiveGuest::start(&machine, kernel, "A")?;
    Ok(guest.await_identity(kernel, TRIAL)?.err())
}

/// How guests of this clock are booted on this CPU.
fn prepare_machine(
    clock: ClockKind,
    counting: &Counting,
    cpu: usize,
    place: &Scratch,
) -> Result<LiveMachine> {
    let program = initramfs::load_program(counting.guest_binary.as_deref(), &X86_64)?;
    let initramfs = initramfs::write(place.path(), "initramfs", &program, b"{}")?;
    Ok(LiveMachine { clock, machine: Machine { initramfs, ..counting.guest_machine(place) }, cpu })
}

/// The emulator and the processor of guests of this clock, for the record.
fn describe_machine(clock: ClockKind, counting: &Counting) -> String {
    match clock {
        ClockKind::Uml => "user-mode Linux".into(),
        ClockKind::Kvm => format!("{}, KVM, processor host", emulator::version(&X86_64)),
        _ => counting.describe_machine(&X86_64),
    }
}

/// The ids of the cases to measure, canaries first: the matching ones of the default set, or with `--all` all matching ones.
fn selected_cases(filter: &Filter, counting: &Counting) -> Result<Vec<String>> {
    let asked: BTreeSet<String> =
        counting.selected_questions(filter)?.cases.into_iter().map(|case| case.id).collect();
    choose_cases(&case_ids(GROUPS), |id| asked.contains(id), true)
}

/// Boots both kernels in pairs until every case is decided, and saves the pairs in the store.
///
/// # Errors
/// No case matches, something that guests need is missing, or a file cannot be written.
pub(super) fn compare_by_turns(
    kernels: &[Kernel; 2],
    clock: ClockKind,
    filter: &Filter,
    (counting, turning): (&Counting, &Turning),
    threshold: Option<f64>,
    home: &Home,
) -> Result<Paired> {
    let ids = selected_cases(filter, counting)?;
    if clock != ClockKind::Uml {
        emulator::check_available(&X86_64)?;
    }
    Store::at(&home.directory()).check_directory_usable("pairs")?;
    let testbed = Testbed::set_up()?;
    let place = scratch::make_directory_in(&scratch::scratch_parent())?;
    let machine = prepare_machine(clock, counting, testbed.cpu, &place)?;
    let rule =
        Rule { looks: turning.boots.look_count(), ..Rule::for_threshold(threshold.unwrap_or(THRESHOLD)) };
    let sides = kernels.each_ref().map(|kernel| format!("{} ({clock})", kernel.name));
    let plan = Plan::by_turns(sides, rule, turning.seed);
    let mut boots = BootPairs::new(
        kernels,
        &machine,
        describe_machine(clock, counting),
        configuration_differences(kernels),
    );
    let (bar, home, mut file) = (Bar::new(ids.len()), home.directory(), OwnFile::default());
    let mut keep = |paired: &Paired| {
        let is_settled = |case: &&CasePairs| case.pairs_needed(&rule, paired.cases.len()).is_none();
        bar.show_settled(paired.cases.iter().filter(is_settled).count());
        save_pairs(&home, paired, &mut file).map(drop)
    };
    let compared =
        testbed.compare_by_boots(&plan, &ids, &mut boots, &mut |at| bar.show_boot_pair(at), &mut keep);
    bar.finish();
    let paired = compared?;
    if !paired.cases.is_empty() {
        page::write_to_stderr(&format!("kept in {}", save_pairs(&home, &paired, &mut file)?.display()));
    }
    Ok(paired)
}

/// The kernels of these two names, which must be of one architecture.
///
/// # Errors
/// A name has no kernel, or the architectures differ.
pub fn find_kernels(names: [&str; 2], home: &Home) -> Result<[Kernel; 2]> {
    let supply = kernel_supply(&home.directory());
    let kernels = [supply.find(names[0])?, supply.find(names[1])?];
    let [a, b] = kernels.each_ref().map(|kernel| kernel.architecture().name);
    if a == b {
        return Ok(kernels);
    }
    let [first, second] = names;
    Err(Error::Usage(format!("{first} is a kernel of {a}, and {second} one of {b}: name two of one")))
}
