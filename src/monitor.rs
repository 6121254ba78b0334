//! Monitoring of the machine: shares and rates between two [snapshots](crate::counters::snapshot), the page for
//! Prometheus, and the server of that page.
//!
//! Each machine serves its counters in the format of existing monitoring systems, which collect, store and draw them. A
//! console that polls several machines, as CAMP's monitor did, reads the same page ([`host_page`], [`host_view`]).

pub mod exposition;
pub mod host_page;
pub mod host_view;
pub mod http_server;
pub mod top_process;
pub mod view;
