//! The stand-in for `live` in a build without the feature `cli`: the cases exist, and are skipped with a reason.
//!
//! # Errors
//! Every function returns [`Error::Missing`].

use super::RoundTrip;
use crate::case::Subject;
use crate::error::{Error, Result};

const ABSENT: &str = "this build cannot speak to a peer: build it with the feature `cli`";

pub(super) fn given() -> std::result::Result<(), String> {
    Err(ABSENT.into())
}

pub(super) fn round_trip(row: RoundTrip) -> Result<Box<dyn Subject>> {
    let RoundTrip { transport, bytes, timed } = row;
    Err(Error::Missing(format!("{ABSENT} ({transport:?}, {bytes} bytes, {timed:?})")))
}

pub(super) fn answered(bytes: u32) -> Result<Box<dyn Subject>> {
    Err(Error::Missing(format!("{ABSENT} (messages of {bytes} bytes)")))
}

pub(super) fn echoes(bytes: usize) -> Result<Box<dyn Subject>> {
    Err(Error::Missing(format!("{ABSENT} ({bytes} bytes)")))
}

pub(super) fn bandwidth(streams: u32, each: usize, bytes: usize) -> Result<Box<dyn Subject>> {
    Err(Error::Missing(format!("{ABSENT} ({streams} streams, {each} messages of {bytes} bytes)")))
}

pub(super) fn connection(closes: bool) -> Result<Box<dyn Subject>> {
    Err(Error::Missing(format!("{ABSENT} (closing {closes})")))
}
