//! The contract of a measurement.
//!
//! A [`Subject`] is an operation that is ready to run. Exactly the code inside [`Clock::time`](crate::clock::Clock::time) or
//! [`Clock::each`](crate::clock::Clock::time_each) is timed. A [`Case`] is one row of a group's table: an id, needs, claims and
//! a set-up that makes the subject. A [`Group`] is a set of cases with one bench target and one manual.

mod group;
pub mod need;
mod row;
mod subject;

pub use group::{Fit, Group};
pub use need::Claim;
pub use need::{Cpus, Need, Place, Scale};
pub(crate) use row::TIMED_SHARE;
pub use row::{
    Batch, Case, Gauge, OwnTasks, Prediction, Preparation, SetUp, empty_loop_instructions, set_up,
};
pub use subject::{Derived, Found, Matrix, Repetition, Rule};
pub use subject::{Lend, Lent, Report, Subject};

pub use crate::platform::partner::{Role, Task};
pub use crate::record::{Axis, Curve, Study};
