//! Many machines in one experiment: what is to be measured where, what each job answered, and where the answers lie.

mod fleet_experiment;
mod fleet_store;
mod job_record;

pub use fleet_experiment::{Experiment, Job};
pub use fleet_store::{Added, FleetStore, Progress};
pub use job_record::{Figure, JobRecord, LAYOUT, inert_line};
