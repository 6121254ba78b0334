//! An experiment on many machines: its jobs, the record of each job, and the directory of the records.

mod fleet_experiment;
mod fleet_store;
mod job_record;

pub use fleet_experiment::{Experiment, Job};
pub use fleet_store::{Added, FleetStore, Progress};
pub use job_record::{Figure, JobRecord, LAYOUT, inert_line};
