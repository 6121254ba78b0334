//! Pairs of boots for a comparison by turns: both kernels afresh, each time.

use super::kernel::Kernel;
use super::live_guest::{LiveGuest, LiveMachine};
use syscost_analysis::pair::by_boot::{BootedSides, Boots};
use syscost_analysis::record::paired::{Paired, PairedGuests};
use syscost_engine::record::guest_side::{ClockKind, GuestSide};
use syscost_platform::error::Result;

/// Sentences about boots that are kept for a kernel.
const FAULTS: usize = 8;
/// The sides in sentences.
const LABELS: [&str; 2] = ["A", "B"];

/// Two kernels that are booted together, again and again.
pub struct BootPairs<'a> {
    kernels: &'a [Kernel; 2],
    machine: &'a LiveMachine,
    guests: PairedGuests,
}

impl<'a> BootPairs<'a> {
    /// Nothing is booted yet. `ran_by` says what runs the guests, `differences` what the configurations differ by.
    pub fn new(
        kernels: &'a [Kernel; 2],
        machine: &'a LiveMachine,
        ran_by: String,
        differences: Vec<String>,
    ) -> Self {
        let side = |kernel: &Kernel| GuestSide { name: kernel.name.clone(), ..GuestSide::default() };
        let sides = kernels.each_ref().map(side);
        Self {
            kernels,
            machine,
            guests: PairedGuests { clock: machine.clock, machine: ran_by, sides, differences },
        }
    }

    /// Waits for a guest that was started; the inner error says why it did not come.
    fn await_guest(&mut self, side: usize, guest: &LiveGuest) -> Result<std::result::Result<(), String>> {
        let said = guest.await_identity(&self.kernels[side], self.machine.patience)?;
        let guest_side = &mut self.guests.sides[side];
        guest_side.boots += 1;
        Ok(said.map(|identity| guest_side.identity = Some(identity)).inspect_err(|why| {
            if guest_side.faults.len() < FAULTS {
                guest_side.faults.push(why.clone());
            }
        }))
    }
}

impl Boots for BootPairs<'_> {
    fn next(&mut self, first: usize) -> Result<std::result::Result<BootedSides, String>> {
        let start = |side: usize| LiveGuest::start(self.machine, &self.kernels[side], LABELS[side]);
        let one = start(first)?;
        let other = start(1 - first)?;
        for (side, guest) in [(first, &one), (1 - first, &other)] {
            if let Err(why) = self.await_guest(side, guest)? {
                return Ok(Err(why));
            }
        }
        let [one, other] = [Box::new(one), Box::new(other)];
        Ok(Ok(if first == 0 { [one, other] } else { [other, one] }))
    }

    fn has_frequency(&self) -> bool {
        self.machine.clock != ClockKind::Tcg
    }

    fn describe_sides(&self, paired: &mut Paired) {
        paired.guests = Some(self.guests.clone());
    }
}
