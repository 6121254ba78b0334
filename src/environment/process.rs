//! What the kernel says of this process: its limits, its capabilities, its page size.

use crate::platform::kernel_files::field;

/// Lock memory beyond the limit.
pub const CAP_IPC_LOCK: u32 = 14;
/// Everything that has no capability of its own, perf events on older kernels among it.
pub const CAP_SYS_ADMIN: u32 = 21;
/// Perf events whatever `perf_event_paranoid` says, since Linux 5.8.
pub const CAP_PERFMON: u32 = 38;

/// Whether the process has a capability in force, from `/proc/self/status`.
pub fn is_capable(status: &str, capability: u32) -> bool {
    field(status, "CapEff")
        .and_then(|hex| u64::from_str_radix(hex, 16).ok())
        .is_some_and(|c| c >> capability & 1 == 1)
}

/// The soft limit on locked memory in bytes, from `/proc/self/limits`; `u64::MAX` when unlimited.
pub fn locked_memory_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|l| l.strip_prefix("Max locked memory"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        bytes => bytes.parse().ok(),
    }
}

/// The page size, from the auxiliary vector (`/proc/self/auxv`): the number after `AT_PAGESZ`. The vector
/// is pairs of machine words; `getauxval` would say the same, but cannot be faked.
pub fn page_size(auxv: &[u8]) -> Option<u64> {
    const AT_PAGESZ: usize = 6;
    const WORD: usize = size_of::<usize>();
    let words: Vec<usize> =
        auxv.chunks_exact(WORD).filter_map(|w| w.try_into().ok()).map(usize::from_ne_bytes).collect();
    words.chunks_exact(2).find(|pair| pair[0] == AT_PAGESZ).map(|pair| pair[1] as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = include_str!("../../fixtures/captured/status.txt");
    const LIMITS: &str = include_str!("../../fixtures/captured/limits.txt");

    #[test]
    fn an_ordinary_user_is_capable_of_nothing() {
        assert!(!is_capable(STATUS, CAP_IPC_LOCK));
        assert!(!is_capable("", CAP_SYS_ADMIN));
    }

    #[test]
    fn a_capability_is_one_bit() {
        let status = "CapEff:\t0000004000004000\n";
        assert!(is_capable(status, CAP_IPC_LOCK) && is_capable(status, CAP_PERFMON));
        assert!(!is_capable(status, CAP_SYS_ADMIN));
    }

    #[test]
    fn the_soft_limit_counts() {
        assert_eq!(locked_memory_limit(LIMITS), Some(8_388_608));
        assert_eq!(locked_memory_limit("Max locked memory  unlimited unlimited bytes"), Some(u64::MAX));
        assert_eq!(locked_memory_limit(""), None);
    }

    #[test]
    fn the_page_size_stands_behind_its_tag() {
        let words = [33_usize, 6, 6, 4096, 0, 0];
        let auxv: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert_eq!(page_size(&auxv), Some(4096));
        assert_eq!(page_size(&[]), None);
    }
}
