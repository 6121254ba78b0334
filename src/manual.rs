//! The manual, a topic a module: the same text as `syscost help TOPIC`. It holds documentation and no code.

#[doc = include_str!("manual/glossary.md")]
pub mod glossary {}

#[doc = include_str!("manual/method.md")]
pub mod method {}

#[doc = include_str!("manual/clock.md")]
pub mod clock {}

#[doc = include_str!("manual/claims.md")]
pub mod claims {}

#[doc = include_str!("manual/comparing.md")]
pub mod comparing {}

#[doc = include_str!("manual/reboots.md")]
pub mod reboots {}

#[doc = include_str!("manual/guests.md")]
pub mod guests {}

#[doc = include_str!("manual/instructions.md")]
pub mod instructions {}

#[doc = include_str!("manual/why.md")]
pub mod why {}

#[doc = include_str!("manual/machines.md")]
pub mod machines {}

#[doc = include_str!("manual/ci.md")]
pub mod ci {}

#[doc = include_str!("manual/counts.md")]
pub mod counts {}

#[doc = include_str!("manual/tracking.md")]
pub mod tracking {}

#[doc = include_str!("manual/histories.md")]
pub mod histories {}

#[doc = include_str!("manual/records.md")]
pub mod records {}

#[doc = include_str!("manual/series.md")]
pub mod series {}

#[doc = include_str!("manual/events.md")]
pub mod events {}

#[doc = include_str!("manual/html.md")]
pub mod html {}

#[doc = include_str!("manual/curves.md")]
pub mod curves {}

#[doc = include_str!("manual/copies.md")]
pub mod copies {}

#[doc = include_str!("manual/remote.md")]
pub mod remote {}

#[doc = include_str!("manual/displacement.md")]
pub mod displacement {}

#[doc = include_str!("manual/counters.md")]
pub mod counters {}

#[doc = include_str!("manual/techniques.md")]
pub mod techniques {}

#[doc = include_str!("manual/library.md")]
pub mod library {}

#[doc = include_str!("manual/layout.md")]
pub mod layout {}

#[doc = include_str!("manual/elsewhere.md")]
pub mod elsewhere {}

#[doc = include_str!("manual/limits.md")]
pub mod limits {}
