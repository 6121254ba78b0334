//! What this package's binary, tests and examples look into. No part of the public interface.

pub use crate::case::{Cpus, Derived, OwnTasks};
#[cfg(feature = "cli")]
pub use crate::command::run;

pub mod environment {
    pub use crate::environment::{Fingerprint, Station};
}

pub mod kit {
    pub use crate::kit::pattern_file::{self, PatternFile, Way};
    pub use crate::kit::sleep::{Nanosleep, Sleep};
    pub use crate::kit::task;
    pub use crate::kit::watchdog::Watchdog;
}

#[cfg(feature = "cli")]
pub mod peer {
    pub use crate::peer::{client, control_protocol, json_line, proof, secret, token};
}

pub mod platform {
    pub use crate::platform::child::{self, Child};
    pub use crate::platform::{arch, cpu, syscall, time};
}

pub mod record {
    pub use crate::record::store::Store;
    pub use crate::record::{
        CaseRecord, ClockRun, FORMAT, GroupRun, Interval, Measured, Outcome, Record, bundle,
    };
}

#[cfg(feature = "cli")]
pub mod render {
    pub use crate::render::plot::{Line, Panel, Picture};
}

pub mod statistic {
    pub use crate::statistic::*;
}

pub mod suite {
    pub use crate::suite::call::operation as call;
    pub use crate::suite::{GROUPS, find};
}

pub mod trial {
    pub use crate::trial::{Bench, CaseEnd, Trial};
}
