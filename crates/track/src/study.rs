//! The evaluation of histories and fleets.

pub mod change_event;
pub mod fleet_effect;
pub mod forgetting;
pub mod job_figures;
pub mod ratio_series;
