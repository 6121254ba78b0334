//! Seek distances, traced and sampled: slides 3, 4, 53 and 54 of *Measurement Techniques*, on paper and on a device.
//!
//!     cargo run --release --example seek_distance -- [DIRECTORY]
//!     cargo run --release --example seek_distance -- --known    # only what is known beforehand; with --moved it fails
//!
//! Random blocks of a file in that directory (or the current one) are read with the page cache bypassed. A variable
//! holds the position of the last read, as `CYL` of the slides does. A trace of each read gives the right distances;
//! another thread samples the variable.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use syscost_platform::pattern_file::{self, PatternFile, Way};
use syscost_statistic::Random;
use syscost_technique::Interval;
use syscost_technique::known::Known;
use syscost_technique::seek::{distribution_distance, sampled_positions, seek_distances};
use syscost_technique::state_measure::{CountMeasure, FractionOfTime, OnEntry};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 4096;
const READS: usize = 1500;

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let positions = [10, 40, 20, 60, 30, 50];
    println!("positions {positions:?}");
    println!("traced             distances {:?}", seek_distances(&positions));
    println!("sampled too slowly distances {:?}", seek_distances(&sampled_positions(&positions, 1, 2)));
    println!("sampled too fast   distances {:?}\n", seek_distances(&sampled_positions(&positions, 3, 1)));
    let known = Known::from_arguments(std::env::args());
    let named = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let directory = named.map_or_else(|| PathBuf::from("."), PathBuf::from);
    if !std::env::args().any(|argument| argument == "--known") {
        match PatternFile::create_filled(&directory, BLOCK * BLOCKS, Way::Direct) {
            Ok(file) => measure_on_device(&file, known)?,
            Err(error) => println!("skipped: {error}"),
        }
    }
    let [traced, slow, fast] = [
        seek_distances(&positions),
        seek_distances(&sampled_positions(&positions, 1, 2)),
        seek_distances(&sampled_positions(&positions, 3, 1)),
    ];
    println!(
        "slide 54: 10 40 20 60 30 50 → 30 20 40 30 20, too slowly 10 10, too fast 0 0 30 0 0 20; ours: {traced:?}, {slow:?}, {:?}",
        &fast[..6]
    );
    // The head moves by 20 to 40 blocks each time, 140 in all.
    let sum = |found: &[u64]| Interval::exactly(found.iter().sum::<u64>() as f64);
    if sum(&slow) == sum(&traced) || fast.len() == traced.len() {
        return Err("sampling finds what only a trace can".into());
    }
    println!("{}", known.check_truth("the sum of all seeks", 140.0, sum(&traced))?);
    Ok(())
}

/// The positions from sampling and from tracing.
struct Seen {
    sampled: Vec<u64>,
    traced: Vec<u64>,
    took: Duration,
    per_second: f64,
    in_reads: f64,
}

/// The blocks to be read, drawn from a seed.
fn drawn_blocks() -> Vec<u64> {
    let mut random = Random::new(5);
    (0..READS).map(|_| random.number_below(BLOCKS as usize) as u64).collect()
}

/// The number of samples that follow the order in which the blocks are read. Samples of block 0, before the first read, are
/// skipped.
fn count_in_order(sampled: &[u64], mut read: &[u64]) -> usize {
    let is_next = |block: &&u64| {
        let found = read.iter().position(|other| other == *block);
        read = found.map_or(read, |at| &read[at..]);
        found.is_some()
    };
    sampled.iter().skip_while(|block| **block == 0).filter(is_next).count()
}

fn measure_on_device(file: &PatternFile, known: Known) -> Done<()> {
    let drawn = drawn_blocks();
    let sum = |blocks: &[u64]| seek_distances(blocks).iter().sum::<u64>() as f64;
    let alone = read_all(file, None)?;
    let service = alone.took / READS as u32;
    let mean = |d: &[u64]| d.iter().sum::<u64>() as f64 / d.len().max(1) as f64;
    println!(
        "{READS} reads, {:.0} a second (A); mean distance of a seek {:.0} blocks (B); {:.1} % of the time in reads (C)",
        alone.per_second,
        mean(&seek_distances(&alone.traced)),
        100.0 * alone.in_reads
    );
    println!("{:<34} {:>9} {:>8} {:>9} {:>14}", "looks", "distances", "zeroes", "mean", "from the trace");
    let tell = |name: String, found: &[u64], truth: &[u64]| {
        let zeroes = found.iter().filter(|d| **d == 0).count() as f64 / found.len().max(1) as f64;
        println!(
            "{name:<34} {:>9} {:>6.1} % {:>9.0} {:>14.2}",
            found.len(),
            100.0 * zeroes,
            mean(found),
            distribution_distance(found, truth)
        );
    };
    let truth = seek_distances(&alone.traced);
    let (mut looks, mut in_turn) = (0, 0);
    tell("traced".into(), &truth, &truth);
    for (name, period) in
        [("ten to a read", service / 10), ("one to a read", service), ("one to five reads", 5 * service)]
    {
        let seen = read_all(file, Some(period))?;
        let label = format!("{name}, every {:.0} µs", period.as_secs_f64() * 1e6);
        tell(label, &seek_distances(&seen.sampled), &seek_distances(&seen.traced));
        looks += seen.sampled.iter().skip_while(|block| **block == 0).count();
        in_turn += count_in_order(&seen.sampled, &drawn);
    }
    if looks == 0 {
        return Err("the sampler has seen no read".into());
    }
    let found = Interval::exactly(in_turn as f64);
    println!("{}", known.check_truth("looks that saw a block in its turn", looks as f64, found)?);
    let found = Interval::exactly(sum(&alone.traced));
    println!("{}", known.check_truth("the sum of the seeks on the device, traced", sum(&drawn), found)?);
    println!();
    Ok(())
}

/// Reads random blocks while another thread samples with this period.
fn read_all(file: &PatternFile, period: Option<Duration>) -> Done<Seen> {
    let (cyl, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (cyl, ended) = (&cyl, &ended);
        let sampler = period.map(|period| scope.spawn(move || watch(cyl, ended, period)));
        let read = trace(file, cyl);
        ended.store(true, Relaxed);
        let sampled = sampler.map(|thread| thread.join().unwrap_or_default()).unwrap_or_default();
        read.map(|seen| Seen { sampled, ..seen })
    })
}

fn watch(cyl: &AtomicU64, ended: &AtomicBool, period: Duration) -> Vec<u64> {
    let (begun, mut seen) = (Instant::now(), Vec::with_capacity(1 << 16));
    while !ended.load(Relaxed) && seen.len() < seen.capacity() {
        seen.push(cyl.load(Relaxed));
        let due = period * seen.len() as u32;
        while begun.elapsed() < due && !ended.load(Relaxed) {
            // With a single CPU the reader needs this CPU.
            std::thread::yield_now();
        }
    }
    seen
}

/// Reads the blocks and traces every position.
fn trace(file: &PatternFile, cyl: &AtomicU64) -> Done<Seen> {
    let mut buffer = pattern_file::map_buffer(BLOCK as usize)?;
    let begun = Instant::now();
    let mut initiations = CountMeasure::new(Duration::ZERO);
    let mut positions = OnEntry::with_capacity(READS);
    let mut reading = FractionOfTime::new(Duration::ZERO);
    for block in drawn_blocks() {
        cyl.store(block, Relaxed);
        initiations.count_entry();
        positions.record_entry(block);
        reading.enter(begun.elapsed());
        file.file().read_exact_at(&mut buffer, block * BLOCK)?;
        reading.leave(begun.elapsed());
        if !pattern_file::is_pattern_at(&buffer, block * BLOCK) {
            return Err("a block is not the one that was asked for".into());
        }
    }
    let end = begun.elapsed();
    let visits = initiations.end_interval(end);
    Ok(Seen {
        sampled: Vec::new(),
        traced: positions.values().to_vec(),
        took: end,
        per_second: visits.per_second().unwrap_or(0.0),
        in_reads: reading.fraction(end).unwrap_or(0.0),
    })
}
