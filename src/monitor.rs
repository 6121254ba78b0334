//! The machine as it is watched: what happened between two [snapshots](crate::counters::snapshot), the page that
//! Prometheus reads, and the server that gives it.
//!
//! CAMP's own monitor polled its workstations from a console of its own. Here each machine shows its counters at an
//! address, in the format that the engines which people already run collect, keep and draw.

pub mod exposition;
pub mod http_server;
pub mod top_process;
pub mod view;
