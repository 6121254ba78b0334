//! Both ends of a connection in one process: the four transfers of a round trip, without a switch.

use super::{TCP_LAYERS, are_few_sleeps};
use crate::case::{Case, Claim, SetUp, set_up};
use crate::clock::{Clock, Delta};
use crate::error::Error;
use crate::kit::placement::explain_refusal;
use crate::kit::socket::Transport::Tcp;
use crate::kit::socket::endpoint::{Blocking, Endpoint};
use crate::kit::socket::verify_connected;
use crate::kit::socket::{LOOPBACK, size_text};

/// A round trip of this many bytes by TCP, both ends in the measuring process.
pub(super) fn one_process_case(bytes: usize) -> Case {
    let title = format!("{} to and fro by TCP, both ends in one process", size_text(bytes));
    Case::new(format!("tcp-one-process/{}", size_text(bytes)), title, one_process_set_up(bytes))
        .need(LOOPBACK)
        .claim(Claim::Checked("every answer was the message that was sent, with its number"))
        .claim(Claim::AtMost(claim_never_waited))
        .predict(0.0, TCP_LAYERS, "two messages through the layers, four copies, and no switch")
}

fn one_process_set_up(bytes: usize) -> SetUp {
    set_up(move |_| {
        let ends = Tcp.connected_pair()?;
        verify_connected(Tcp, &ends)?;
        let [near, far] = ends;
        let (mut near, mut far) = (Blocking::new(near)?, Blocking::new(far)?);
        let [mut message, mut passed, mut answer] = [vec![1; bytes], vec![0; bytes], vec![0; bytes]];
        let mut number = 0u64;
        Ok(move |n: u64, clock: &Clock| {
            let (mut lowest, mut wrong) = (0, 0u64);
            let ticks = clock.time(|| {
                for _ in 0..n {
                    number += 1;
                    message[..size_of::<u64>()].copy_from_slice(&number.to_ne_bytes());
                    lowest = lowest.min(near.send(&message)).min(far.receive(&mut passed));
                    lowest = lowest.min(far.send(&passed)).min(near.receive(&mut answer));
                    wrong += u64::from(answer != message);
                }
            });
            match (lowest < 0, wrong) {
                (true, _) => Err(explain_refusal("tcp in one process", lowest, &mut [], n)),
                (_, 0) => Ok(ticks),
                _ => Err(Error::Disproved(format!(
                    "{wrong} of {n} answers were not the message that was sent"
                ))),
            }
        })
    })
}

/// The claim that no transfer waited for another task.
fn claim_never_waited(delta: &Delta, iterations: u64) -> Result<String, String> {
    let waited = delta.counted.voluntary_switches;
    let seen = format!("it gave up the CPU {waited} times in {iterations}");
    match are_few_sleeps(waited, iterations) {
        true => Ok(seen),
        false => Err(format!("{seen}: a message waited for another task")),
    }
}
