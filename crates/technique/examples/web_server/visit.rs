//! Visitors that come at a rate, whether the server keeps up or not, as httperf's.

use crate::Answer;
use crate::crowd::ask;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use syscost_platform::cpu;
use syscost_platform::namespace::OtherHost;

/// Threads that visit: as many connections can be open at once.
const VISITORS: usize = 16;

/// What visitors saw.
pub struct Visits {
    /// The time of each from its connection to the last byte, ms.
    pub times: Vec<f64>,
    /// How many began late, because their CPU or all visitors were busy.
    pub late: usize,
}

/// Connects `count` times, `rate` a second, from one CPU of this host.
///
/// # Errors
/// A connection failed.
pub fn arrive(from: &OtherHost, to: SocketAddr, rate: u32, count: usize, from_cpu: usize) -> Answer<Visits> {
    let next = AtomicUsize::new(0);
    let begun = Instant::now() + Duration::from_millis(20);
    let period = Duration::from_secs(1) / rate;
    let visitor = || -> Result<Vec<(f64, bool)>, String> {
        from.enter().and_then(|()| cpu::pin_thread(from_cpu)).map_err(|e| e.to_string())?;
        let mut seen = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(seen);
            }
            let due = begun + period * at as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let connecting = Instant::now();
            ask(to).map_err(|e| format!("a connection failed: {e}"))?;
            let is_late = connecting - due > period.max(Duration::from_millis(5));
            seen.push((1e3 * connecting.elapsed().as_secs_f64(), is_late));
        }
    };
    let all = std::thread::scope(|scope| {
        let visitors: Vec<_> = (0..VISITORS).map(|_| scope.spawn(visitor)).collect();
        let joined = visitors
            .into_iter()
            .map(|visitor| visitor.join().unwrap_or_else(|_| Err("a visitor failed".into())));
        joined.collect::<Result<Vec<_>, String>>()
    })?;
    let all: Vec<_> = all.into_iter().flatten().collect();
    let late = all.iter().filter(|(_, is_late)| *is_late).count();
    Ok(Visits { times: all.into_iter().map(|(ms, _)| ms).collect(), late })
}
