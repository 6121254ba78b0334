//! Events of several machines on one time line, with the error of that line: slides 99 to 102 of *Measurement
//! Techniques*.
//!
//!     cargo run --release --example time_line               # with `-- --moved` it fails at its end
//!
//! Three threads stand for machines. They talk over sockets and read only clocks of their own, which are seconds apart and
//! gain or lose. Each machine is asked for its time; then a token goes round, and each notes when it had the token. All
//! clocks are derived from one, so the truth of each event is known: its time on our line, and the order of the events.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;
use syscost_technique::Interval;
use syscost_technique::known::Known;
use syscost_technique::time_line::{Exchange, Order, Placed, RemoteClock};

/// For each machine: the nanoseconds by which its clock is ahead, and the share that it gains.
const MACHINES: [(i64, f64); 3] =
    [(3_200_000_000, 20e-6), (-1_700_000_000, -35e-6), (86_400_000_000_000, 5e-6)];
/// The drift that the reader of the line assumes for all clocks.
const DRIFT: f64 = 50e-6;
const EXCHANGES: usize = 20;
const ROUNDS: usize = 10;

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let known = Known::from_arguments(std::env::args());
    let begun = Instant::now();
    let events = std::thread::scope(|scope| {
        let mut lines = Vec::new();
        for (ahead, drift) in MACHINES {
            let (ours, theirs) = UnixStream::pair()?;
            scope.spawn(move || machine(theirs, begun, ahead, drift));
            lines.push(ours);
        }
        watch(&mut lines, begun)
    })?;
    let inside = events.iter().filter(|event| event.placed.contains(event.truth)).count();
    let pairs = || events.iter().enumerate().flat_map(|(at, a)| events[at + 1..].iter().map(move |b| (a, b)));
    let count = |order| pairs().filter(|(a, b)| a.placed.order(b.placed) == order).count();
    let errors = events.iter().map(|event| event.placed.error());
    let (least, most) = (errors.clone().min().unwrap_or(0), errors.max().unwrap_or(0));
    println!(
        "slide 99: need to correlate separate streams; ours: {} events of {} machines lie within {:.1} to {:.1} µs; of {} pairs the \
         order of {} is certain, of {} it is not known",
        events.len(),
        MACHINES.len(),
        least as f64 / 1e3,
        most as f64 / 1e3,
        pairs().count(),
        count(Order::Before) + count(Order::After),
        count(Order::Unknown)
    );
    let all = events.len() as f64;
    println!(
        "{}",
        known.check_truth("events whose interval holds their time", all, Interval::exactly(inside as f64))?
    );
    let wrong = Interval::exactly(count(Order::After) as f64);
    println!("{}", known.check_truth("pairs in the wrong order", 0.0, wrong)?);
    Ok(())
}

/// An event: its interval on the line, and its true time, by the clock that the three machines cannot read.
struct Event {
    placed: Placed,
    truth: i64,
}

fn now(begun: Instant) -> i64 {
    begun.elapsed().as_nanos() as i64
}

/// Answers each byte with the machine's time and the true time, until the other end closes.
fn machine(mut line: UnixStream, begun: Instant, ahead: i64, drift: f64) {
    while line.read_exact(&mut [0]).is_ok() {
        let truth = now(begun);
        let theirs = truth + ahead + (drift * truth as f64) as i64;
        let answer = [theirs.to_ne_bytes(), truth.to_ne_bytes()].concat();
        if line.write_all(&answer).is_err() {
            return;
        }
    }
}

/// Asks a machine, and returns its time and the true time.
fn ask(line: &mut UnixStream) -> std::io::Result<[i64; 2]> {
    let mut answer = [[0; 8]; 2];
    line.write_all(&[0])?;
    line.read_exact(answer.as_flattened_mut())?;
    Ok(answer.map(i64::from_ne_bytes))
}

fn watch(lines: &mut [UnixStream], begun: Instant) -> Done<Vec<Event>> {
    let exchange = |line: &mut UnixStream| -> std::io::Result<Exchange> {
        let sent = now(begun);
        let [theirs, _] = ask(line)?;
        Ok(Exchange { sent, arrived: theirs, answered: theirs, returned: now(begun) })
    };
    let mut clocks = Vec::new();
    for (number, line) in lines.iter_mut().enumerate() {
        let asked = (0..EXCHANGES).map(|_| exchange(line)).collect::<std::io::Result<Vec<_>>>()?;
        let clock = RemoteClock::new(asked, DRIFT)?;
        let offset = clock.offset_at(now(begun))?;
        println!(
            "machine {number} is ahead by {:.6} s, within {:.1} µs",
            offset.earliest as f64 / 1e9,
            offset.error() as f64 / 1e3
        );
        clocks.push(clock);
    }
    let mut events = Vec::new();
    for _ in 0..ROUNDS {
        for (line, clock) in lines.iter_mut().zip(&clocks) {
            let [theirs, truth] = ask(line)?;
            events.push(Event { placed: clock.to_our_time(theirs)?, truth });
        }
    }
    Ok(events)
}
