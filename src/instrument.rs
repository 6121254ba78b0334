//! What reads: the [`Clock`] and its calibration, the [`Counters`] that witness every claim, and the
//! [`witness`] that watches an operation from outside.

mod beside;
mod calibration;
mod clock;
mod company;
mod counter;
mod fluid;
pub mod kernel_text;
mod unit;
pub mod witness;

pub use beside::Beside;
pub use calibration::{Calibration, Pairing};
pub use clock::{Clock, ClockScale};
pub use company::{Attendance, Company};
pub use counter::{Counters, Delta, Reading, USER_HZ};
pub use fluid::{Calibrating, Charge, FluidMeter};
pub use unit::{Nanoseconds, Ticks};
