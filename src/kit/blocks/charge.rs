//! Claims that a device was charged with every block of a sample, by the trial's own readings of the kernel's account.

use crate::case::Claim;
use crate::clock::Delta;

type Judged = std::result::Result<String, String>;

/// The claim that the kernel has charged this process with reading every block of this length, which is 512 bytes, 4 KiB,
/// 64 KiB or 1 MiB.
pub fn claim_blocks_read(block: usize) -> Claim {
    Claim::Counted(match block {
        512 => judge_read::<512>,
        65_536 => judge_read::<65_536>,
        1_048_576 => judge_read::<1_048_576>,
        _ => judge_read::<4_096>,
    })
}

/// As [`claim_blocks_read`], for blocks that were written.
pub fn claim_blocks_written(block: usize) -> Claim {
    Claim::Counted(match block {
        512 => judge_written::<512>,
        65_536 => judge_written::<65_536>,
        1_048_576 => judge_written::<1_048_576>,
        _ => judge_written::<4_096>,
    })
}

fn judge_read<const BLOCK: u64>(delta: &Delta, iterations: u64) -> Judged {
    judge_charged(delta.counted.device_read, "read from", iterations, BLOCK)
}

fn judge_written<const BLOCK: u64>(delta: &Delta, iterations: u64) -> Judged {
    judge_charged(delta.counted.device_written, "written to", iterations, BLOCK)
}

fn judge_charged(bytes: Option<u64>, how: &str, iterations: u64, block: u64) -> Judged {
    let Some(bytes) = bytes else {
        return Err("the kernel does not tell what was read from devices (CONFIG_TASK_IO_ACCOUNTING)".into());
    };
    let seen = format!("{bytes} bytes were {how} the device for {iterations} blocks of {block}");
    if bytes < iterations * block { Err(format!("{seen}: not each of them reached it")) } else { Ok(seen) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_no_device_was_charged_with_is_noticed() {
        let counted = |bytes| {
            let mut delta = Delta::default();
            (delta.counted.device_read, delta.counted.device_written) = (bytes, bytes);
            delta
        };
        for judge in [judge_read::<4_096>, judge_written::<4_096>] {
            assert!(judge(&counted(Some(40_960)), 10).is_ok());
            assert!(judge(&counted(Some(40_959)), 10).is_err(), "nine in ten, or half of each");
            assert!(judge(&counted(None), 10).is_err(), "a kernel that does not tell");
        }
    }

    #[test]
    fn each_length_is_claimed_in_full() {
        for block in [512, 4_096, 65_536, 1_048_576] {
            let Claim::Counted(judge) = claim_blocks_read(block) else { panic!("another claim") };
            let mut delta = Delta::default();
            delta.counted.device_read = Some(2 * block as u64 - 1);
            assert!(judge(&delta, 2).is_err() && judge(&delta, 1).is_ok(), "{block}");
        }
    }
}
