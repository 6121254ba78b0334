//! What this machine is to the other end.

use super::proof::pseudonym;
use crate::environment::{Fingerprint, Interface, KernelFiles, Station};
use std::net::SocketAddr;

/// This machine, as the way between these addresses leaves it.
pub(super) fn here(own: SocketAddr, other: SocketAddr) -> Station {
    let files = KernelFiles::live();
    // Of a machine that was installed without a number, the number of its boot tells it from others.
    let number = files.line("etc/machine-id").or_else(|| files.line("proc/sys/kernel/random/boot_id"));
    Station {
        identity: pseudonym(&number.unwrap_or_default()),
        fingerprint: Fingerprint::take(&files, &std::env::temp_dir()),
        interface: Interface::between(own.ip().to_canonical(), other.ip().to_canonical()),
    }
}
