//! What the programs of syscost share of their command line: how they start, their flags, what they print, where runs are kept.
//!
//! A program passes the groups that it may measure: `syscost` all of its own, a tool that measures nothing none.
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
