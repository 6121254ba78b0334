//! `syscost monitor`: shows the machine live on a terminal, as JSON lines, or by HTTP to Prometheus. It can also serve the
//! last events of a log.

mod machine_overlap;
mod ordered_events;
mod screen;
mod several;

use crate::exposition::{self, Scene};
use crate::host_view::HostDetail;
use crate::http_server::{EVENTS, Page, Server};
use crate::live_view::{Size, render_lines};
use crate::watch::Watch;
use crate::watch::seen_to_json;
use screen::{Screen, Waited};
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use syscost_command_line::{flag, page};
use syscost_counters::Process;
use syscost_counters::pace::Pace;
use syscost_engine::exit::Exit;
use syscost_engine::render::metric_page::MetricFormat;
use syscost_platform::error::{Error, Result};
use syscost_platform::{plain_file, signal};

/// Watch the machine, or several: live on the terminal, as JSON lines, or at an address for Prometheus
///
/// Shows what the CPUs do, what memory is truly free, what interfaces and disks move, and which processes take most. In
/// a pipe, and with --json, an object a line. With --listen it serves the counters at http://ADDR/metrics, in the text
/// format of Prometheus or as OpenMetrics 1.0, to the loopback interface unless --public. With --hosts it asks the machines
/// of a list, each of which serves its counters so, and shows them in one view.
#[derive(clap::Args)]
#[command(
    after_help = "On the terminal q ends it. Shares of the CPUs are by the timer's ticks of 10 ms. A reading that \
    this machine does not give is named with its reason, and is no zero."
)]
pub(super) struct Args {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = parse_interval)]
    interval: f64,
    /// End after this number of views
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "SECONDS", value_parser = flag::parse_seconds, conflicts_with = "count")]
    seconds: Option<f64>,
    /// Print a line of JSON per view
    #[arg(long)]
    json: bool,
    /// Serve the counters by HTTP at this address and port; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["json", "count", "interval"])]
    listen: Option<SocketAddr>,
    /// Show the machines of this list instead: a name and an ADDR:PORT a line; in a pipe a row a host, separated by tabs
    #[arg(long, value_name = "FILE", conflicts_with = "listen")]
    hosts: Option<PathBuf>,
    /// How much of the machines of the list to show
    #[arg(long, value_enum, default_value_t = HostDetail::Host, requires = "hosts")]
    detail: HostDetail,
    /// Show the events of programs on these machines instead, each after its cause, whatever their clocks say
    #[arg(long, requires = "hosts", conflicts_with = "detail")]
    events: bool,
    /// Also serve the end of this log of events, at /events; its lines are those of `syscost_technique::logical_time`
    #[arg(long, value_name = "FILE", requires = "listen")]
    event_log: Option<PathBuf>,
    /// Measure for which share of the time a CPU and at least K disks are busy at once, by 1024 samples at random times in 5
    /// seconds or `--for`
    #[arg(long, value_name = "K", conflicts_with_all = ["listen", "hosts", "count", "interval"])]
    overlap: Option<u32>,
    /// Let other machines read the counters
    #[arg(long, requires = "listen")]
    public: bool,
}

/// Parses an interval of at least a tenth of a second. Below that, shares by ticks of 10 ms mean nothing.
fn parse_interval(text: &str) -> std::result::Result<f64, String> {
    flag::parse_seconds(text).and_then(|seconds| {
        if seconds < 0.1 { Err("expected seconds from 0.1 to a day".into()) } else { Ok(seconds) }
    })
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    signal::watch_signals()?;
    if let Some(k) = args.overlap {
        machine_overlap::measure_overlap(k, args)?;
        return Ok(Exit::Success.or_signal(signal::pending()).into());
    }
    let wanted = match args.listen {
        Some(at) => {
            serve_counters(at, args.public, args.seconds, args.event_log.as_deref())?;
            return Ok(ExitCode::SUCCESS);
        }
        None => args.view_count(),
    };
    match &args.hosts {
        Some(list) if args.events => ordered_events::watch_events(list, args, wanted)?,
        Some(list) => several::watch_hosts(list, args, wanted)?,
        None if args.json || page::is_piped() => write_json_lines(args, wanted)?,
        None => run_live_view(args, wanted)?,
    }
    // Without a limit on the views, an interrupt is the normal end.
    Ok(Exit::Success.or_signal(signal::pending().filter(|_| wanted != u64::MAX)).into())
}

impl Args {
    /// The number of views.
    fn view_count(&self) -> u64 {
        let by_time = self.seconds.map(|seconds| (seconds / self.interval).round().max(1.0) as u64);
        self.count.or(by_time).unwrap_or(u64::MAX)
    }

    fn interval_duration(&self) -> Duration {
        Duration::from_secs_f64(self.interval)
    }
}

fn write_json_lines(args: &Args, views: u64) -> Result<()> {
    let mut watch = Watch::begin()?;
    write_at_intervals(args, views, || Ok(format!("{}\n", seen_to_json(&watch.observe()?))))
}

fn run_live_view(args: &Args, views: u64) -> Result<()> {
    let mut watch = Watch::begin()?;
    draw_at_intervals(args, views, "looking …".into(), |size| {
        Ok(render_lines(&watch.observe()?, size, args.interval))
    })
}

/// Writes a text at each deadline, until `views` are written, a signal arrives or the reader closes the pipe.
fn write_at_intervals(args: &Args, views: u64, mut text: impl FnMut() -> Result<String>) -> Result<()> {
    let mut pace = Pace::every(args.interval_duration());
    // The first deadline is now, and there is nothing to compare yet.
    let mut goes_on = pace.wait_for_deadline();
    for _ in 0..views {
        goes_on = goes_on && pace.wait_for_deadline() && signal::pending().is_none();
        if !goes_on || !page::write_unless_closed(&text()?)? {
            break;
        }
    }
    Ok(())
}

/// Shows `first`, and then draws lines after each interval until `views` are drawn or the user ends it.
fn draw_at_intervals(
    args: &Args,
    views: u64,
    first: String,
    mut lines: impl FnMut(Size) -> Result<Vec<String>>,
) -> Result<()> {
    let screen = Screen::enter()?;
    screen.draw(&[first])?;
    for _ in 0..views {
        if screen.wait(args.interval_duration()) == Waited::Ended {
            break;
        }
        screen.draw(&lines(screen.size())?)?;
    }
    Ok(())
}

/// The size of the end of an event log that is served, bytes.
const SERVED: u64 = 1 << 20;

/// Serves until a signal arrives, or for `seconds`.
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

/// The last complete lines of a log; empty for a file that does not exist yet.
///
/// # Errors
/// An error where the path is not a regular file, or cannot be read.
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

    fn parsed(line: &str) -> std::result::Result<Args, clap::Error> {
        flag::parse_line(line)
    }

    #[test]
    fn an_interval_is_longer_than_the_ticks() {
        assert!(parsed("--interval 0.05").is_err() && parsed("--interval x").is_err());
        assert_eq!(parsed("--interval 0.5 --for 3").expect("half a second").view_count(), 6);
        assert_eq!(parsed("").expect("nothing").view_count(), u64::MAX);
    }

    #[test]
    fn serving_excludes_other_modes() {
        assert!(parsed("--listen 127.0.0.1:0 --json").is_err());
        assert!(parsed("--public").is_err());
        assert!(parsed("--listen nowhere").is_err());
        assert!(parsed("--events").is_err() && parsed("--event-log log").is_err());
        assert!(parsed("--hosts list --events --detail cpu").is_err());
        assert!(parsed("--detail cpu").is_err() && parsed("--hosts list --detail disk").is_err());
        assert!(parsed("--overlap 1 --for 2").is_ok() && parsed("--overlap 1 --count 2").is_err());
        assert_eq!(parsed("--hosts list --detail cpu").expect("a list").detail, HostDetail::Cpu);
        assert!(parsed("--listen [::1]:9100 --public").is_ok());
    }

    #[test]
    fn only_complete_lines_at_the_end_of_a_log_are_served() {
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
