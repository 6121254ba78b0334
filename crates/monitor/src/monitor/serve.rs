//! Serves the counters by HTTP, and the last events of a log.

use crate::exposition::{self, Scene};
use crate::http_server::{EVENTS, Page, Server};
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use syscost_command_line::page;
use syscost_counters::Process;
use syscost_engine::render::metric_page::MetricFormat;
use syscost_platform::error::{Error, Result};
use syscost_platform::{plain_file, signal};

/// The part of an event log that is served, bytes: its end.
const SERVED: u64 = 1 << 20;

/// Serves until a signal, or for `seconds`.
pub(super) fn serve_counters(
    at: SocketAddr,
    public: bool,
    seconds: Option<f64>,
    event_log: Option<&Path>,
) -> Result<()> {
    let server = Server::bind(at, public)?;
    let own = Process::open(std::process::id() as i32)?;
    page::write(&format!("listening\thttp://{}/metrics\n", server.address()))?;
    let (begun, end) = (Instant::now(), seconds.map(Duration::from_secs_f64));
    let is_to_end = || signal::pending().is_some() || end.is_some_and(|end| begun.elapsed() >= end);
    server.serve(is_to_end, |path, accept| {
        if path == EVENTS {
            let log = event_log.ok_or("this monitor serves no events: start it with --event-log FILE")?;
            let body = end_of_log(log).map_err(|fault| fault.to_string())?;
            return Ok(Page { content_type: "text/plain; charset=utf-8", body });
        }
        let format = MetricFormat::from_accept_header(accept);
        let scene = Scene::capture(&own).map_err(|fault| fault.to_string())?;
        Ok(Page { content_type: format.content_type(), body: exposition::render_page(&scene, format) })
    });
    if let Some(signal) = signal::pending() {
        page::write_to_stderr(&format!("ended by {signal}"));
    }
    Ok(())
}

/// The last whole lines of a log. A file that is not there yet has none.
///
/// # Errors
/// It is no plain file, or cannot be read.
fn end_of_log(log: &Path) -> Result<String> {
    if !log.exists() {
        return Ok(String::new());
    }
    let reading = |cause| Error::file(log, "reading", cause);
    let mut file = plain_file::open(log)?;
    let begin = file.metadata().map_err(reading)?.len().saturating_sub(SERVED);
    file.seek(SeekFrom::Start(begin)).map_err(reading)?;
    let mut bytes = Vec::new();
    file.take(SERVED).read_to_end(&mut bytes).map_err(reading)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line may be cut at its beginning, and the last may still be written.
    let text = if begin == 0 { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    Ok(text.rsplit_once('\n').map_or_else(String::new, |(whole, _)| format!("{whole}\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_at_the_end_of_a_log_are_served() {
        let directory = tempfile::tempdir().expect("made");
        let log = directory.path().join("log");
        assert_eq!(end_of_log(&log).expect("none yet"), "");
        std::fs::write(&log, "one\ntwo\nthr").expect("written");
        assert_eq!(end_of_log(&log).expect("read"), "one\ntwo\n");
        assert!(end_of_log(directory.path()).expect_err("a directory").to_string().contains("plain file"));
        let long = format!("{}\nlast\n", "x".repeat(SERVED as usize));
        std::fs::write(&log, long).expect("written");
        assert_eq!(end_of_log(&log).expect("read"), "last\n");
    }
}
