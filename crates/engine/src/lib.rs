//! The contract and the machinery of `syscost`, without a single measurement.
//!
//! A bench is a list of [`Group`]s of [`Case`]s, handed to [`harness::main`]. A case sets up a [`Subject`], whose timed part is
//! exactly the code inside the clock's brackets. A case is skipped if the machine does not meet one of its [`Need`]s, and fails
//! if one of its [`Claim`]s does not hold.
//!
//! Each arrow points from a module to the module that it uses:
//!
//! ```text
//! driver, pair → harness → trial → case → clock, environment        render → study → record
//! ```
//!
//! * [`clock`]: the cycle counter, its calibration, the witness that single-steps an operation, readings of counters.
//! * `environment`: fingerprint of the machine, and checks of its fitness. Both read the machine's state and change nothing.
//! * `case`: the contract. `trial`: sets a case up, runs it between readings of the counters, and judges its claims.
//! * [`harness`]: the entry points of a bench target, and the only module that names Criterion.
//! * `driver`: starts one measuring process per group, keeps the record and prints the table.
//! * `pair`: compares two builds by pairs of processes that take turns.
//! * `record`: the results of a run, as plain data. `study`: conclusions from these results. `render`: tables and text that
//!   show them.
//! * `json_line`: the messages between processes.
//!
//! # Features
//!
//! `cli` (default): code that only the program `syscost` and its tools need. Benches of other crates disable this feature.
#![deny(unsafe_code)]

pub mod alloc;
#[doc(hidden)]
pub mod case;
pub mod clock;
#[doc(hidden)]
pub mod driver;
#[doc(hidden)]
pub mod environment;
#[doc(hidden)]
pub mod exit;
pub mod harness;
#[doc(hidden)]
pub mod json_line;
#[doc(hidden)]
pub mod pair;
#[doc(hidden)]
pub mod record;
#[doc(hidden)]
pub mod render;
#[doc(hidden)]
pub mod study;
#[doc(hidden)]
pub mod trial;

pub use case::{Axis, Curve, Fit, Group, Study};
pub use case::{Batch, Case, Claim, Gauge, OwnTasks, Prediction, Preparation, Repetition, SetUp, set_up};
pub use case::{Cpus, Need, Place, Scale};
pub use case::{Derived, Found, Matrix, Report, Role, Rule, Subject, Task};
pub use error::{Error, Kind, Result};

use syscost_counters as counters;
use syscost_platform::{self as platform, error};
use syscost_statistic as statistic;

/// The crate `libc`, by whose constants claims name system calls: their numbers differ between architectures.
pub use libc;
