//! Serves the counters by HTTP.

use crate::exposition::{self, Scene};
use crate::http_server::{Page, Server};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use syscost::command::page;
use syscost::render::metric_page::MetricFormat;
use syscost_counters::Process;
use syscost_platform::error::Result;
use syscost_platform::signal;

/// Serves until a signal, or for `seconds`.
pub(super) fn serve_counters(at: SocketAddr, public: bool, seconds: Option<f64>) -> Result<()> {
    let server = Server::bind(at, public)?;
    let own = Process::open(std::process::id() as i32)?;
    page::write(&format!("listening\thttp://{}/metrics\n", server.address()))?;
    let (begun, end) = (Instant::now(), seconds.map(Duration::from_secs_f64));
    let is_to_end = || signal::pending().is_some() || end.is_some_and(|end| begun.elapsed() >= end);
    server.serve(is_to_end, |accept| {
        let format = MetricFormat::from_accept_header(accept);
        let scene = Scene::capture(&own).map_err(|fault| fault.to_string())?;
        Ok(Page { content_type: format.content_type(), body: exposition::render_page(&scene, format) })
    });
    if let Some(signal) = signal::pending() {
        page::write_to_stderr(&format!("ended by {signal}"));
    }
    Ok(())
}
