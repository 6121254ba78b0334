//! The echo of ICMP, which the kernel answers without a partner.

use crate::case::{Case, Claim, Need, set_up};
use crate::clock::{Clock, Counts};
use crate::error::{Error, Result};
use crate::kit::placement::{explain_refusal, partner_time_limit};
use crate::kit::socket::icmp::Ping;
use crate::kit::socket::{LOOPBACK, size_text};
use crate::kit::watchdog::Alarm;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// This machine.
const LOCAL: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

pub(super) fn icmp_echo_case(bytes: usize) -> Case {
    let set_up = set_up(move |_| {
        let (mut ping, mut alarm) = (Ping::new(LOCAL, bytes)?, Alarm::new()?);
        Ok(move |n: u64, clock: &Clock| {
            let echo = |ping: &mut Ping| ping.echo_once();
            let check = |_: &mut Ping, answer| check_echo(answer, bytes, n);
            ping.discard_waiting();
            alarm.run_with_limit(partner_time_limit(n), || {
                clock.time_each(n, &mut ping, |_| Ok(()), echo, check)
            })
        })
    });
    let title = format!("ICMP echo of {} by 127.0.0.1, which the kernel answers", size_text(bytes));
    Case::new(format!("icmp-each/{}", size_text(bytes)), title, set_up)
        .need(LOOPBACK)
        .need(PING)
        .one_by_one()
        .claim(Claim::Checked("every reply had the identifier, the number and the bytes of its question"))
        .predict(1_000.0, 8_000.0, "a packet up and one down again in the sender's own call, one received")
}

fn check_echo(answer: i64, bytes: usize, iterations: u64) -> Result<Counts> {
    match answer {
        refusal if refusal < 0 => Err(explain_refusal("icmp", refusal, &mut [], iterations)),
        received if received as usize != bytes => {
            Err(Error::Disproved(format!("icmp: {received} bytes came back of {bytes}")))
        }
        _ => Ok(Counts::Yes),
    }
}

/// A ping socket or a raw socket may be opened.
const PING: Need = Need::new(|_| Ping::new(LOCAL, 1).map(drop).map_err(|e| e.to_string()));
