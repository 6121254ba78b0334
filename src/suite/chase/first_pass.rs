//! A ring of which no line is in a cache when a pass begins.

use super::operation_ring::Walk;
use super::walker::{Chase, Plan};
use crate::case::{SetUp, Subject, set_up};
use crate::clock::{Clock, Ticks};
use crate::error::{Error, Result};
use crate::platform::arch::CAN_EVICT;

/// The set-up of whole passes through this ring, before each of which its lines are put out of the caches, untimed.
pub(super) fn first_pass_set_up(plan: Plan) -> SetUp {
    set_up(move |_| {
        if !CAN_EVICT {
            return Err(Error::Missing(
                "user space may put no line out of the caches of this processor".into(),
            ));
        }
        let walk: Walk<1> = plan.link_ring(plan.allocate_memory()?)?;
        Ok(FirstPass { chase: Chase::new(walk, 0), slots: plan.slot_count() as u64 })
    })
}

struct FirstPass {
    chase: Chase<1>,
    slots: u64,
}

impl Subject for FirstPass {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let mut ticks = Ticks(0);
        for _ in 0..iterations {
            self.chase.evict_lines();
            ticks += self.chase.run(self.slots, clock)?;
        }
        Ok(ticks)
    }
}
