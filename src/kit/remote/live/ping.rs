//! The echo of ICMP, which the peer's kernel answers: what `ping` times, beside what a program answers.

use super::Far;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::environment::Wire;
use crate::kit::placement::patience;
use crate::kit::socket::icmp::Ping;
use crate::{Error, Result};
use std::net::IpAddr;

/// Who asks the peer's kernel.
struct Pinging {
    far: Far,
    ping: Ping,
    bytes: i64,
}

/// Echoes of so many bytes.
pub(in super::super) fn echoes(bytes: usize) -> Result<Box<dyn Subject>> {
    let client = Far::call()?;
    let IpAddr::V4(to) = client.address().ip().to_canonical() else {
        return Err(Error::Missing("the peer's address is of IPv6: name it by one of IPv4".into()));
    };
    let ping = Ping::new(to, bytes)?;
    Ok(Box::new(Pinging { far: Far::of(client)?, ping, bytes: bytes as i64 }))
}

impl Subject for Pinging {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { far, ping, bytes } = self;
        let (mut answer, mut sum) = (0, Ticks(0));
        far.alarm.watch(patience(iterations), || {
            for _ in 0..iterations {
                sum += clock.time(|| answer = ping.echo());
                if answer != *bytes {
                    break;
                }
            }
        });
        match answer {
            come if come == *bytes => Ok(sum),
            interrupted if interrupted == -i64::from(libc::EINTR) => {
                let name = far.client.name();
                let what =
                    "its kernel has not answered an echo: it may be told not to, or a firewall is between";
                Err(Error::peer(name, what))
            }
            come if come >= 0 => Err(far.refused(-i64::from(libc::EBADMSG), iterations)),
            refused => Err(far.refused(refused, iterations)),
        }
    }

    fn report(&self) -> Report {
        Report { wire: Some(self.far.wire()), ..Report::default() }
    }
}
