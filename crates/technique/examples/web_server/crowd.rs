//! Clients, each of which requests the page, reads it, and pauses; and visitors that arrive at a fixed rate, as those of
//! httperf do, whether the server keeps up or not.

use super::other_host::OtherHost;
use crate::Answer;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use syscost_platform::cpu;

const REQUEST: &[u8] = b"GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
/// The pause between two requests of one client.
const THOUGHT: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(5);
/// Stack of a client, bytes.
const STACK: usize = 64 << 10;

/// All clients, which run on one host. They end when this value is dropped.
pub struct Crowd {
    clients: Vec<JoinHandle<()>>,
    count: Arc<Count>,
    host: Arc<OtherHost>,
}

/// Counts of all clients.
#[derive(Default)]
struct Count {
    over: AtomicBool,
    served: AtomicU64,
    failed: AtomicU64,
}

impl Crowd {
    pub fn at(host: &Arc<OtherHost>) -> Self {
        Self { clients: Vec::new(), count: Arc::default(), host: Arc::clone(host) }
    }

    pub fn grow(&mut self, by: usize, to: SocketAddr) -> std::io::Result<()> {
        for _ in 0..by {
            let (count, host) = (Arc::clone(&self.count), Arc::clone(&self.host));
            let client = std::thread::Builder::new().stack_size(STACK);
            self.clients.push(client.spawn(move || visit(&host, to, &count))?);
        }
        Ok(())
    }

    pub fn size(&self) -> usize {
        self.clients.len()
    }

    /// The number of complete pages, and of failed requests.
    pub fn seen(&self) -> (u64, u64) {
        (self.count.served.load(Ordering::Relaxed), self.count.failed.load(Ordering::Relaxed))
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.count.over.store(true, Ordering::Relaxed);
        self.clients.drain(..).for_each(|client| drop(client.join()));
    }
}

fn visit(host: &OtherHost, to: SocketAddr, count: &Count) {
    if host.enter().is_err() {
        count.failed.fetch_add(1, Ordering::Relaxed);
        return;
    }
    while !count.over.load(Ordering::Relaxed) {
        let counter = if ask(to).is_ok() { &count.served } else { &count.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(THOUGHT);
    }
}

/// Makes one connection, and reads the page to its end.
pub fn ask(to: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(REQUEST)?;
    let (mut some, mut first) = ([0; 4096], true);
    loop {
        match stream.read(&mut some)? {
            0 if first => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            0 => return Ok(()),
            _ if first && !some.starts_with(b"HTTP/1.1 200") => {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            _ => first = false,
        }
    }
}

/// The number of visiting threads, and thus of connections that can be open at once.
const VISITORS: usize = 16;

/// The results of the visitors.
pub struct Visits {
    /// The time of each visit from its connection to the last byte, ms.
    pub times: Vec<f64>,
    /// The number of visits that began late, because their CPU or all visitors were busy.
    pub late: usize,
}

/// Connects `count` times, `rate` a second, from one CPU of this host.
///
/// # Errors
/// An error where a connection failed.
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
