//! What this package's binary, tests and examples use beyond the public interface, listed item by item so that the compiler
//! finds what no longer is used.

pub use crate::case::Cpus;
#[cfg(feature = "cli")]
pub use crate::command::run;

pub mod environment {
    pub use crate::environment::{Fingerprint, Station};
}

pub mod kit {
    pub use crate::kit::watchdog::Watchdog;
    pub use crate::platform::pattern_file::{PatternFile, Way};

    pub mod pattern_file {
        pub use crate::platform::pattern_file::{buffer, is_of};
    }

    pub mod task {
        pub use crate::kit::task::reap;
    }
}

#[cfg(feature = "cli")]
pub mod peer {
    pub mod client {
        pub use crate::peer::client::{Client, Given};
    }

    pub mod control_protocol {
        pub use crate::peer::control_protocol::{
            Answer, Ask, Counted, Hello, LONGEST, Open, Opened, SECRET_BYTES, Service, VERSION, Welcome,
        };
    }

    pub mod json_line {
        pub use crate::peer::json_line::{Talk, line};
    }

    pub mod proof {
        pub use crate::peer::proof::{End, Nonces, nonce};
    }

    pub mod secret {
        pub use crate::peer::secret::hex;
    }

    pub mod token {
        pub use crate::peer::token::Token;
    }
}

pub mod record {
    pub use crate::record::store::Store;
    pub use crate::record::{CaseRecord, ClockRun, FORMAT, GroupRun, Interval, Measured, Outcome, Record};

    pub mod baseline {
        pub use crate::record::baseline::{check, is_readable};
    }

    #[cfg(feature = "cli")]
    pub mod bundle {
        pub use crate::record::bundle::{Bundle, Head, read, read_any, read_any_head, read_head, write_new};
    }
}

pub mod suite {
    pub use crate::suite::{GROUPS, find};

    pub mod call {
        pub use crate::suite::call::operation::{U64, control};
    }
}

pub mod trial {
    pub use crate::trial::{Bench, CaseEnd, Trial};
}
