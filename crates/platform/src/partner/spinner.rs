//! A partner that only burns time.

use super::{Class, Kind, Partner, Role};
use crate::error::Result;

/// A partner that only burns time: in the ordinary class it competes for its CPU, in the idle class it keeps an idle
/// CPU from sleeping.
///
/// # Errors
/// As of [`Partner::start`].
pub fn start_spinner(cpu: usize, class: Class) -> Result<Partner> {
    let step = || {
        (0..1000).for_each(|_| std::hint::spin_loop());
        0
    };
    let mut partner = Partner::start(Kind::Process, (cpu, class), step, || ())?;
    partner.task.role = Role::Burns;
    Ok(partner)
}
