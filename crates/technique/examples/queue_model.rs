//! A model that is calibrated by one measurement and compared with another: slide 97 of *Measurement Techniques*.
//!
//!     cargo run --release --example queue_model               # three seconds
//!     cargo run --release --example queue_model -- --known    # only what is known beforehand; with --moved it fails
//!
//! Users think and wait for one server. The service and think times of a single user calibrate the model, which predicts the
//! throughput with eight users; a second measurement shows whether it is right. First the machine is simulated and its true
//! values are known; then a live server sleeps for its service time.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use syscost_statistic::{Random, median_interval};
use syscost_technique::Interval;
use syscost_technique::known::Known;
use syscost_technique::queue_model::QueueModel;

/// The simulated machine, seconds.
const TRUE: QueueModel = QueueModel { service: 0.002, think: 0.008 };
const USERS: usize = 8;
/// Commands in a batch, and batches in a measurement.
const BATCH: usize = 4000;
const BATCHES: u64 = 25;

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let known = Known::from_arguments(std::env::args());
    let only_known = std::env::args().any(|argument| argument == "--known");
    if !only_known {
        live(known)?;
    }
    let alone: Vec<Batch> = (0..BATCHES).map(|seed| simulate(1, seed)).collect();
    let median_of =
        |figure: fn(&Batch) -> f64| median_interval(&alone.iter().map(figure).collect::<Vec<_>>());
    let (service, think) = (median_of(|batch| batch.response), median_of(|batch| batch.think));
    let predicted = QueueModel::throughput_interval(service, think, USERS);
    let measured = (0..BATCHES).map(|seed| simulate(USERS, 100 + seed).throughput);
    let measured = median_interval(&measured.collect::<Vec<_>>());
    let without_queue = USERS as f64 / (service.estimate + think.estimate);
    println!(
        "slide 97: model calibration is usually the biggest source of error; ours: calibrated with 1 user, {:.1} commands a second \
         are predicted for {USERS}, {:.1} measured; a model without waiting says {without_queue:.1}",
        predicted.estimate, measured.estimate
    );
    if (measured.low..=measured.high).contains(&without_queue) {
        return Err("the second measurement does not refuse a model without waiting".into());
    }
    println!("{}", known.check_truth("the service time, ms", 1e3 * TRUE.service, service.map(|s| 1e3 * s))?);
    let truth = TRUE.predict(USERS).throughput;
    println!("{}", known.check_truth("commands a second, predicted", truth, predicted)?);
    println!("{}", known.check_truth("commands a second, measured", truth, measured)?);
    Ok(())
}

/// The measurement of a batch: commands per second, and mean seconds of response and of thinking.
struct Batch {
    throughput: f64,
    response: f64,
    think: f64,
}

fn draw_exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * random.unit().ln()
}

/// Simulates the machine event by event. It keeps the time of each user's next command, and the time at which the server is
/// free.
fn simulate(users: usize, seed: u64) -> Batch {
    let mut random = Random::new(seed);
    let mut next: Vec<f64> = (0..users).map(|_| draw_exponential(&mut random, TRUE.think)).collect();
    let (mut free, mut response, mut think, mut warm) = (0.0f64, 0.0, 0.0, 0.0);
    for command in 0..BATCH + BATCH / 4 {
        if command == BATCH / 4 {
            (response, think, warm) = (0.0, 0.0, free);
        }
        let user = (0..users).min_by(|a, b| next[*a].total_cmp(&next[*b])).unwrap_or(0);
        let arrives = next[user];
        free = free.max(arrives) + draw_exponential(&mut random, TRUE.service);
        let thought = draw_exponential(&mut random, TRUE.think);
        (response, think) = (response + free - arrives, think + thought);
        next[user] = free + thought;
    }
    let commands = BATCH as f64;
    Batch { throughput: commands / (free - warm), response: response / commands, think: think / commands }
}

/// Compares the model with threads that think and share one server, which sleeps for its service time. One user calibrates
/// the model.
fn live(known: Known) -> Done<()> {
    println!("users of a server that sleeps 2 ms for each command, 6 ms of thought\n");
    println!("  users   predicted a second   measured");
    let mut held = judge_live(known);
    // A busy machine may lengthen the sleeps of one measurement more than those of the other, so it tries again.
    for _ in 1..TRIES {
        held = held.or_else(|_| judge_live(known));
    }
    println!("  (a service that never varies makes users wait less than the model says)\n");
    println!("{}", held?);
    Ok(())
}

/// The number of attempts to confirm the model with the live server.
const TRIES: u32 = 5;
/// The share by which the model may be off, since service and think times are not distributed as it assumes.
const OFF: f64 = 0.35;

/// Compares the model with the live server. Returns the sentence that it holds, or the error that it does not.
fn judge_live(known: Known) -> Done<String> {
    const TIME: Duration = Duration::from_millis(300);
    let alone = serve(1, TIME);
    let model = QueueModel::from_measurements(&[alone.response], &[alone.think]);
    let judged = [1, 2, 4, USERS].map(|users| {
        let (predicted, found) = (model.predict(users).throughput, serve(users, TIME).throughput);
        println!("{users:>7} {predicted:>20.1} {found:>10.1}");
        (predicted, found)
    });
    // With few users the rate follows from their think time; with many, users wait for the server, as the model says.
    let (predicted, found) = judged[3];
    let found = Interval::around(found, OFF * found);
    let sentence = known.check_truth("commands a second of the live server, predicted", predicted, found)?;
    // No sleep ends early, and a late sleep is no longer than the late sleep of another task.
    let (least, most) = (0.3 * alone.response, alone.response);
    let service = Interval { estimate: most, low: least, high: most };
    Ok(format!("{sentence}\n{}", known.check_truth("the live server's service, s", 0.002, service)?))
}

fn serve(users: usize, time: Duration) -> Batch {
    let (server, served, waited) = (Mutex::new(()), AtomicU64::new(0), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for user in 0..users {
            let (server, served, waited) = (&server, &served, &waited);
            scope.spawn(move || {
                let mut random = Random::new(user as u64);
                while begun.elapsed() < time {
                    std::thread::sleep(Duration::from_secs_f64(draw_exponential(&mut random, 0.006)));
                    let asked = Instant::now();
                    let turn = server.lock();
                    std::thread::sleep(Duration::from_millis(2));
                    drop(turn);
                    waited.fetch_add(asked.elapsed().as_nanos() as u64, Relaxed);
                    served.fetch_add(1, Relaxed);
                }
            });
        }
    });
    let (all, count) = (begun.elapsed().as_secs_f64(), served.load(Relaxed).max(1) as f64);
    let response = waited.load(Relaxed) as f64 / 1e9 / count;
    Batch { throughput: count / all, response, think: all * users as f64 / count - response }
}
