//! The echo of ICMP: nobody but the kernel answers.

use crate::case::{Case, Claim, Need, Place, SetUp, Subject};
use crate::clock::Clock;
use crate::kit::alarm::Alarm;
use crate::kit::message_size::{LOOPBACK, length};
use crate::kit::placement::{patience, refused};
use crate::kit::socket::icmp::Ping;
use crate::{Error, Result};
use std::net::Ipv4Addr;

pub(super) fn case(bytes: usize) -> Case {
    let set_up: SetUp = Box::new(move |_: &Place| echoes(Ipv4Addr::LOCALHOST, bytes));
    let title = format!("ICMP echo of {} by 127.0.0.1, which the kernel answers", length(bytes));
    Case::new(format!("icmp-each/{}", length(bytes)), title, set_up)
        .need(LOOPBACK)
        .need(PING)
        .one_by_one()
        .claim(Claim::Checked("every reply had the identifier, the number and the bytes of its question"))
        .predict(1_000.0, 8_000.0, "a packet up and one down again in the sender's own call, one received")
}

/// Either kind of socket is allowed.
const PING: Need = Need::new(|_| Ping::new(Ipv4Addr::LOCALHOST, 1).map(drop).map_err(|e| e.to_string()));

/// Asks one address, which may be another machine's.
fn echoes(to: Ipv4Addr, bytes: usize) -> Result<Box<dyn Subject>> {
    let (mut ping, alarm) = (Ping::new(to, bytes)?, Alarm::new()?);
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let mut answer = 0;
        let ticks = alarm.watch(patience(n), || {
            super::conversation::one_by_one(n, || {
                let ticks = clock.time(|| answer = ping.echo());
                (answer == bytes as i64).then_some(ticks)
            })
        });
        match answer {
            refusal if refusal < 0 => Err(refused("icmp", refusal, &mut [], n)),
            come if come as usize != bytes => {
                Err(Error::Usage(format!("icmp: {come} bytes came back of {bytes}")))
            }
            _ => Ok(ticks),
        }
    }))
}
