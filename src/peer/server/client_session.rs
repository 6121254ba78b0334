//! The session of an authenticated client, within limits.

use super::super::control_protocol::{Answer, Ask, Counted, Open, Welcome};
use super::super::control_stream::Talk;
use super::super::service_limit::{GLANCE, Limits};
use super::super::station;
use super::service::{Opening, Serving};
use crate::json_line::NoMessage;
use crate::platform::socket_handle::shut_down;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A session with a client.
pub(super) struct Session<'a> {
    pub(super) talk: Talk,
    pub(super) own: SocketAddr,
    pub(super) client: SocketAddr,
    pub(super) limits: Limits,
    /// Set when the server is to end.
    pub(super) ending: &'a AtomicBool,
}

/// Why a session ends.
enum Farewell {
    /// The connection has ended or failed.
    Gone,
    /// The server ends it, for this reason.
    Said(String),
}

impl From<NoMessage> for Farewell {
    fn from(why: NoMessage) -> Self {
        match why {
            NoMessage::Long(_) | NoMessage::Invalid(_) => {
                Self::Said("that is no sentence of the protocol".into())
            }
            _ => Self::Gone,
        }
    }
}

/// What a client has used of its limits.
struct Used {
    since: Instant,
    /// Time of the last request or data.
    active: Instant,
    /// Bytes of services that have ended.
    before: u64,
    /// Bytes at the last check.
    seen: u64,
}

impl Session<'_> {
    /// Welcomes the client and serves it until one of the two ends the session.
    pub(super) fn run(mut self, proof: String) {
        let station = station::describe_this_machine(self.own, self.client);
        let welcome = Answer::Welcome(Box::new(Welcome { proof, station, reached: self.own }));
        if self.talk.send(&welcome).is_err() {
            return;
        }
        if let Err(Farewell::Said(sentence)) = self.serve_requests() {
            // Fails if the client has gone meanwhile.
            let _ = self.talk.send(&Answer::Ended(sentence));
        }
        // The server has another handle, which would keep the connection open.
        shut_down(self.talk.stream());
    }

    fn serve_requests(&mut self) -> Result<(), Farewell> {
        let now = Instant::now();
        let mut used = Used { since: now, active: now, before: 0, seen: 0 };
        let mut serving = None;
        loop {
            match self.talk.receive(GLANCE) {
                Ok(Ask::Open(open)) => {
                    used.before += service_counts(&serving).bytes;
                    used.active = Instant::now();
                    // The previous service ends before the next begins.
                    drop(serving.take());
                    serving = Some(self.open_service(open)?);
                    used.active = Instant::now();
                }
                Ok(Ask::Count) => {
                    used.active = Instant::now();
                    self.talk.send(&Answer::Counted(service_counts(&serving)))?;
                }
                Ok(Ask::Hello(_) | Ask::Proof(_)) => {
                    return Err(Farewell::Said("this conversation has begun already".into()));
                }
                Err(NoMessage::Late) => {}
                Err(why) => return Err(why.into()),
            }
            self.check_limits(&mut used, service_counts(&serving).bytes)?;
        }
    }

    fn open_service(&mut self, asked: Open) -> Result<Serving, Farewell> {
        if let Some(complaint) = asked.invalid_reason() {
            return Err(Farewell::Said(complaint));
        }
        let said = |error: crate::error::Error| Farewell::Said(error.to_string());
        let opening = Opening::open_port(self.own, self.client, asked).map_err(said)?;
        let told = opening.port_and_secret().map_err(|cause| Farewell::Said(cause.to_string()))?;
        self.talk.send(&Answer::Opened(told))?;
        let serving = opening
            .start_serving(|| self.ending.load(Ordering::SeqCst) || self.talk.is_closed())
            .map_err(said)?;
        self.talk.send(&Answer::Ready)?;
        Ok(serving)
    }

    /// Ends the session at a limit.
    fn check_limits(&self, used: &mut Used, bytes: u64) -> Result<(), Farewell> {
        let Limits { bytes: most, time, idle, .. } = self.limits;
        if bytes != used.seen {
            (used.seen, used.active) = (bytes, Instant::now());
        }
        let said = |sentence: String| Err(Farewell::Said(sentence));
        if self.ending.load(Ordering::SeqCst) {
            return said("it was asked to end".into());
        }
        if used.before + bytes > most {
            return said(format!("{most} bytes are what it takes of one client: raise `--bytes` there"));
        }
        if used.since.elapsed() > time {
            return said(format!(
                "{} s are what it gives one client: raise `--seconds` there",
                time.as_secs()
            ));
        }
        if used.active.elapsed() > idle {
            return said(format!("nothing was asked or sent for {} s", idle.as_secs()));
        }
        Ok(())
    }
}

fn service_counts(serving: &Option<Serving>) -> Counted {
    serving.as_ref().map(Serving::total_counts).unwrap_or_default()
}
