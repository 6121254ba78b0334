//! syscost
#![deny(unsafe_code)]

pub mod environment;
mod error;
pub mod harness;
pub mod instrument;
pub mod machine;
pub mod record;
pub mod statistic;
pub mod subject;
pub mod trial;

#[cfg(feature = "cli")]
pub mod command;

pub use error::{Error, Result};
