//! The parts of the command line that the programs of syscost share: their start, flags, output, and the storage of runs.
//!
//! A program passes the groups that it may measure. `syscost` passes all its groups; a tool that does not measure passes none.
#![deny(unsafe_code)]

pub mod archive;
pub mod baselines;
pub mod flag;
pub mod judging;
pub mod outline;
pub mod page;
pub mod record;
pub mod restore;
pub mod selection;
pub mod sides;
pub mod start;

use syscost_platform::{self as platform, error};
use syscost_statistic as statistic;
