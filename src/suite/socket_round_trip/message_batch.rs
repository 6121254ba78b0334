//! Many datagrams by one call: sendmmsg(2) and recvmmsg(2), and the same by a call each.

use super::TCP_LAYERS;
use crate::case::need::FULL_SCALE;
use crate::case::{Case, Claim, SetUp, set_up};
use crate::clock::Clock;
use crate::error::Error;
use crate::kit::placement::explain_refusal;
use crate::kit::socket::LOOPBACK;
use crate::kit::socket::Transport::Udp;
use crate::kit::socket::message_array::MessageArray;
use crate::kit::socket::transfer::{receive, send};
use crate::kit::socket::{raw_descriptor, verify_connected};
use std::os::fd::RawFd;

/// Messages of a batch, and bytes of each: a receiver's queue holds them.
const MESSAGES: usize = 32;
const BYTES: usize = 56;

/// Sends all messages of one array and receives them into the other. Returns the number that was received, or a negative error
/// number.
type Pass = fn([RawFd; 2], &mut MessageArray, &mut MessageArray) -> i64;

pub(super) fn batch_cases() -> Vec<Case> {
    let calls = vec![("sendmmsg", libc::SYS_sendmmsg), ("recvmmsg", libc::SYS_recvmmsg)];
    vec![
        batch_case("mmsg", "a call", pass_at_once).claim(Claim::Enters(calls)),
        batch_case("single", "32 calls", pass_one_by_one).need(FULL_SCALE),
    ]
}

fn batch_case(name: &str, by: &str, pass: Pass) -> Case {
    let title = format!("{MESSAGES} datagrams of {BYTES} B sent and received by {by} each, in one process");
    Case::new(format!("udp-batch-one-process/{name}"), title, batch_set_up(pass))
        .need(LOOPBACK)
        .elements(MESSAGES as u64)
        .claim(Claim::Checked("every message of every batch was received, in the order of their numbers"))
        .claim(Claim::Linear)
        .predict(
            0.0,
            MESSAGES as f64 * TCP_LAYERS / 4.0,
            "a message through the layers of UDP, by a fraction of a call each",
        )
}

fn batch_set_up(pass: Pass) -> SetUp {
    set_up(move |_| {
        let ends = Udp.connected_pair()?;
        verify_connected(Udp, &ends)?;
        let (mut sent, mut received) =
            (MessageArray::new(MESSAGES, BYTES), MessageArray::new(MESSAGES, BYTES));
        let mut batch = 0u32;
        Ok(move |n: u64, clock: &Clock| {
            let descriptors = ends.each_ref().map(raw_descriptor);
            let (mut answer, mut wrong) = (0, 0u64);
            let ticks = clock.time(|| {
                for _ in 0..n {
                    batch = batch.wrapping_add(1);
                    (0..MESSAGES).for_each(|at| write_number(sent.message(at), batch, at));
                    answer = pass(descriptors, &mut sent, &mut received);
                    if answer < 0 {
                        break;
                    }
                    wrong += u64::from(answer != MESSAGES as i64 || sent.bytes() != received.bytes());
                }
            });
            match (answer < 0, wrong) {
                (true, _) => Err(explain_refusal("udp in one process", answer, &mut [], n)),
                (_, 0) => Ok(ticks),
                _ => Err(Error::Disproved(format!(
                    "{wrong} of {n} batches were not received as they were sent"
                ))),
            }
        })
    })
}

/// Batches that are neither sent nor received: a lie for the battery.
pub fn batches_left_out() -> SetUp {
    batch_set_up(|_, _, _| MESSAGES as i64)
}

fn write_number(message: &mut [u8], batch: u32, at: usize) {
    message[..4].copy_from_slice(&batch.to_le_bytes());
    message[4..8].copy_from_slice(&(at as u32).to_le_bytes());
}

#[inline(always)]
fn pass_at_once([near, far]: [RawFd; 2], sent: &mut MessageArray, received: &mut MessageArray) -> i64 {
    match sent.send_all(near) {
        all if all == MESSAGES as i64 => received.receive_all(far),
        few => few,
    }
}

#[inline(always)]
fn pass_one_by_one([near, far]: [RawFd; 2], sent: &mut MessageArray, received: &mut MessageArray) -> i64 {
    let mut lowest = (0..MESSAGES).map(|at| send(near, sent.message(at), 0)).min().unwrap_or(0);
    lowest = lowest.min((0..MESSAGES).map(|at| receive(far, received.message(at), 0)).min().unwrap_or(0));
    if lowest < 0 { lowest } else { MESSAGES as i64 }
}
