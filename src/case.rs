//! What a measurement is made of.
//!
//! A [`Subject`] is the operation, ready to run; what is timed is exactly what stands inside [`Clock::time`] or
//! [`Clock::each`](crate::clock::Clock::each). A [`Case`] is one row of a group's table: an id, what it needs, what
//! must be true if the operation happened, and how it is set up. A [`Group`] is a set of cases that one process
//! measures, a bench target and a manual.

mod claim;
mod figure;
mod group;
pub mod need;
mod row;
mod subject;

pub use claim::Claim;
pub use figure::{Derived, Found, Matrix, Repetition, Rule};
pub use group::{Fit, Group};
pub use need::{Cpus, Need, Place, Scale};
pub use row::{Case, OwnTasks, Prediction, SetUp, set_up};
pub use subject::{Report, Subject};
