//! The functions that experiments put on trial: the library's, or others that lie, by which the experiments themselves
//! are put on trial.

use crate::counters::{Fault, Percent, Reading, camp};
use std::time::Duration;

type Share = fn(i32, Duration) -> Result<Percent, Fault>;

/// What an experiment reads by.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    pub(super) cpu_time_user: Share,
    pub(super) cpu_time_kernel: Share,
    pub(super) vm_size_kb: fn(i32) -> Result<Reading<u64>, Fault>,
    pub(super) packets_sent: fn(&str) -> Result<Reading<u64>, Fault>,
    pub(super) packets_received: fn(&str) -> Result<Reading<u64>, Fault>,
    pub(super) cpu_count: fn() -> Result<usize, Fault>,
    pub(super) cpu_count_allowed: fn() -> Result<usize, Fault>,
}

impl Functions {
    /// The library's own.
    pub const OURS: Self = Self {
        cpu_time_user: camp::cpu_time_user,
        cpu_time_kernel: camp::cpu_time_kernel,
        vm_size_kb: camp::vm_size_kb,
        packets_sent: camp::net_packets_sent,
        packets_received: camp::net_packets_received,
        cpu_count: camp::cpu_count,
        cpu_count_allowed: camp::cpu_count_allowed,
    };

    /// Ways in which the functions can lie.
    pub const LIES: [&str; 5] =
        ["user-for-kernel", "packets-doubled", "packets-more", "cpus-miscounted", "other-address-space"];

    /// The library's functions, of which some lie in this way; `None` for no such way. An experiment must fail with
    /// them.
    pub fn lying(how: &str) -> Option<Self> {
        let ours = Self::OURS;
        Some(match how {
            "user-for-kernel" => {
                Self { cpu_time_user: camp::cpu_time_kernel, cpu_time_kernel: camp::cpu_time_user, ..ours }
            }
            "packets-doubled" => {
                Self { packets_sent: |name| Ok(part(camp::net_packets_sent(name)?, 200)), ..ours }
            }
            "packets-more" => {
                Self { packets_received: |name| Ok(part(camp::net_packets_received(name)?, 101)), ..ours }
            }
            "cpus-miscounted" => Self {
                cpu_count: || camp::cpu_count().map(|count| count + 1),
                cpu_count_allowed: || camp::cpu_count_allowed().map(|count| count + 1),
                ..ours
            },
            "other-address-space" => {
                Self { vm_size_kb: |_| camp::vm_size_kb(std::process::id() as i32), ..ours }
            }
            _ => return None,
        })
    }
}

/// So many percent of it.
fn part(reading: Reading<u64>, percent: u64) -> Reading<u64> {
    Reading { value: reading.value * percent / 100, ..reading }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lie_has_its_functions() {
        assert!(Functions::LIES.iter().all(|how| Functions::lying(how).is_some()));
        assert!(Functions::lying("nothing").is_none());
    }
}
