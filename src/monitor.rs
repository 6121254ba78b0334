//! Monitoring of the machine: shares and rates between two [snapshots](crate::counters::snapshot), the page for
//! Prometheus, and the server of that page.
//!
//! CAMP's monitor polled its workstations from a console of its own. Here each machine serves its counters in the
//! format of existing monitoring systems, which collect, store and draw them.

pub mod exposition;
pub mod http_server;
pub mod top_process;
pub mod view;
