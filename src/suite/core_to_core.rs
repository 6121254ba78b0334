//! # What is timed
//! The transfer of a cache line from one core to another and back: two threads poll one word, and each waits for the
//! value that the other writes. `neighbour` is the measuring CPU and the highest other. In `every-pair` all pairs of CPUs do
//! that in turn, each at least 64 times a batch, of which fewer iterations are a share: the figure is their mean, and the
//! matrix below the table has each.
//!
//! # What is not
//! The start of the threads. In `every-pair`, the distribution of the work: each pair is timed by one of its own
//! threads.
//!
//! # How we know
//! Every thread is pinned and must have been seen on its CPU only. Every round trip is counted by both ends, and a line
//! that does not come back within seconds ends the case. Time must grow in proportion to the number of round trips.
//!
//! # What fools it
//! Two hyperthreads of one core share its first-level cache: their line does not move, and the matrix shows that. In a
//! guest CPU numbers say nothing about cores unless the host pins them, and may change during the run. At default scale
//! the matrix has at most four CPUs, spread over those allowed; at full scale all.
//!
//! # Reading the number
//! `journey` below the table, and each figure of the matrix, is half a round trip. Some 20 ns within a core, 40 to 60
//! on a mesh, above 100 from socket to socket.
//!
//! # Source
//! multichase's `pingpong` and N. Viennot's core-to-core-latency; the `line ping-pong` row of the development machine's
//! own probe, 107 to 118 ns for a round trip.

mod operation;

use crate::case::need::{PINNED, TWO_CPUS};
use crate::case::{Case, Claim, Group, Matrix, OwnTasks, Place, Report, Rule, Scale, Subject, set_up};
use crate::clock::{Clock, Ticks};
use crate::error::Result;
use crate::kit::ipc::PolledWord;
use crate::kit::parallel::all_partners_stayed;
use crate::kit::placement::Placement;
use crate::kit::round_trip::round_trip_set_up;
use crate::platform::partner::Kind;
use crate::record::Headline;
use operation::{LineThreads, spread_evenly};

pub const GROUP: Group =
    Group::new("core_to_core", include_str!("core_to_core.rs"), cases).version(3).headlines(&HEADLINES);

const HEADLINES: [Headline; 1] = [Headline::new(118, "neighbour", "a cache line there and back")];

fn cases() -> Vec<Case> {
    let why = "a line fetched from another core's cache, twice";
    vec![
        Case::new(
            "neighbour",
            "a cache line to another CPU and back",
            round_trip_set_up("polling", Kind::Thread, PolledWord::pair, Placement::Cross),
        )
        .need(PINNED)
        .need(TWO_CPUS)
        .derived_figure("journey", Rule::OfCost(0.5))
        .claim(Claim::Linear)
        .claim(Claim::Counted(all_partners_stayed))
        .predict(330.0, 10.0, why),
        // The measuring thread only distributes the work, and waits while one of the pair has its CPU.
        Case::new(
            "every-pair",
            "a cache line to another CPU and back, the mean of all pairs",
            set_up(EveryPair::start),
        )
        .own_tasks(OwnTasks::Elsewhere)
        // The mean is reported, and there may be thousands of pairs, each of which does [`FEWEST`] round trips.
        .timed_share(0.0)
        .need(PINNED)
        .need(TWO_CPUS)
        .claim(Claim::Linear)
        .claim(Claim::Counted(all_partners_stayed))
        .predict(330.0, 10.0, why),
    ]
}

/// Round trips of a pair at least, so that the clock that its thread reads twice adds little.
const FEWEST: u64 = 64;

/// One thread on each CPU, two of which work at a time.
struct EveryPair {
    threads: LineThreads,
    /// For each pair, half the round trip of each batch, ns.
    figures: Vec<Vec<f64>>,
}

impl EveryPair {
    fn start(place: &Place) -> Result<Self> {
        let most = match place.scale {
            Scale::Smoke => 2,
            Scale::Default => 4,
            Scale::Full => usize::MAX,
        };
        let cpus: Vec<_> = place.cpus.here.into_iter().chain(place.cpus.others.iter().copied()).collect();
        let threads = LineThreads::start(&spread_evenly(cpus, most))?;
        let figures = vec![Vec::new(); threads.pairs().len()];
        Ok(Self { threads, figures })
    }
}

impl Subject for EveryPair {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let pairs = self.threads.pairs();
        let each = iterations.div_ceil(pairs.len() as u64).max(FEWEST);
        let mut sum = 0;
        for (&pair, figures) in pairs.iter().zip(&mut self.figures) {
            let ns = self.threads.time_round_trips(pair, each)?;
            figures.push(ns as f64 / each as f64 / 2.0);
            sum += ns;
        }
        let mean_ns = sum as f64 / (each * pairs.len() as u64) as f64;
        Ok(Ticks((mean_ns * iterations as f64 * clock.hz() / 1e9) as u64))
    }

    fn report(&self) -> Report {
        let pairs = self.threads.pairs().into_iter().zip(self.figures.clone());
        let matrix = Matrix { cpus: self.threads.cpus().to_vec(), figures: pairs.collect() };
        Report { partners: self.threads.tasks(), matrix: Some(matrix), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_clock;
    use crate::platform::cpu;

    #[test]
    fn every_pair_has_its_round_trips_and_the_figure_is_their_mean() {
        let cpus = cpu::allowed_cpus();
        let [first, second, ..] = cpus[..] else {
            println!("skipped: one CPU");
            return;
        };
        // Two threads that share a CPU need a time slice for each trip: their pair is slower than the two others.
        let threads = LineThreads::start(&[first, second, second]).expect("started");
        let mut every = EveryPair { figures: vec![Vec::new(); 3], threads };
        let clock = test_clock();
        for (batch, iterations) in [1, 200].into_iter().enumerate() {
            let told_ns = clock.nanoseconds(every.run(iterations, &clock).expect("came back")).0;
            let each: Vec<_> = every.figures.iter().map(|figures| 2.0 * figures[batch]).collect();
            let mean_ns = each.iter().sum::<f64>() / 3.0;
            assert!((told_ns / (mean_ns * iterations as f64) - 1.0).abs() < 0.01, "{told_ns} {each:?}");
        }
    }
}
