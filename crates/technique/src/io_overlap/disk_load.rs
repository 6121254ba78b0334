//! A load with known signals: one CPU that computes in bursts, and channels that read a disk and bypass the page cache.

use super::{Busy, Signals, Trace};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use syscost_platform::error::{Error, Result};
use syscost_platform::pattern_file::{self, PatternFile, Way};
use syscost_platform::{arch, cpu, time};
use syscost_statistic::Random;

/// Sizes of a read and of the file, bytes.
const BLOCK: usize = 16 << 10;
const FILE: u64 = 8 << 20;
/// Mean times of a burst of the CPU, and of a pause of the CPU or of a channel.
const BURST: Duration = Duration::from_micros(600);
const PAUSE: Duration = Duration::from_micros(300);

/// The threads of the load, which end when this value is dropped.
pub struct Load {
    signals: Arc<Signals>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Trace>>>,
}

/// The exact traces of a load that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Times at which the CPU computed.
    pub cpu: Trace,
    /// Times at which each channel read.
    pub channels: Vec<Trace>,
}

impl Load {
    /// Starts a load with `channels` channels, which read a file in `directory`, and a thread that computes on the CPU `on`.
    /// The monitor should run on another CPU: on this one it runs while the load pauses, and finds it pausing too often.
    ///
    /// # Errors
    /// [`Error::Missing`] where the file system does not support direct reads; [`Error::Usage`] for too many channels.
    pub fn start(directory: &Path, channels: usize, on: usize) -> Result<Self> {
        if channels > Signals::CHANNELS {
            let sentence = format!("{channels} channels: expected at most {}", Signals::CHANNELS);
            return Err(Error::Usage(sentence));
        }
        let file = Arc::new(PatternFile::create_filled(directory, FILE, Way::Direct)?);
        file.check_block_size(BLOCK)?;
        let mut load = Self { signals: Arc::default(), stop: Arc::default(), threads: Vec::new() };
        load.spawn(move |signals, stop| run_cpu_bursts(signals, stop, on))?;
        for channel in 0..channels {
            let file = Arc::clone(&file);
            load.spawn(move |signals, stop| run_disk_reads(signals, stop, channel, &file))?;
        }
        Ok(load)
    }

    fn spawn(
        &mut self,
        work: impl FnOnce(&Signals, &AtomicBool) -> Result<Trace> + Send + 'static,
    ) -> Result<()> {
        let (signals, stop) = (Arc::clone(&self.signals), Arc::clone(&self.stop));
        let refused = |cause| Error::Kernel { call: "pthread_create of a channel".into(), cause };
        let thread = std::thread::Builder::new().spawn(move || work(&signals, &stop)).map_err(refused)?;
        self.threads.push(thread);
        Ok(())
    }

    /// The wires that the load switches.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Ends the load and returns its traces.
    ///
    /// # Errors
    /// An error where a read has failed.
    pub fn finish(mut self) -> Result<Finished> {
        self.stop.store(true, Ordering::SeqCst);
        let died = |_| Error::Died("a channel panicked".into());
        let joined = self.threads.drain(..).map(|thread| thread.join().map_err(died)?);
        let mut traces = joined.collect::<Result<Vec<Trace>>>()?;
        let cpu = traces.remove(0);
        Ok(Finished { cpu, channels: traces })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Returns a random time, uniform between zero and twice the mean.
fn random_around(mean: Duration, random: &mut Random) -> Duration {
    mean.mul_f64(random.number_below(2001) as f64 / 1000.0)
}

fn run_cpu_bursts(signals: &Signals, stop: &AtomicBool, on: usize) -> Result<Trace> {
    cpu::pin_thread(on)?;
    let (mut busy, mut random) = (Busy::new(signals, Signals::CPU), Random::new(1));
    while !stop.load(Ordering::Relaxed) {
        let burst = random_around(BURST, &mut random).as_nanos() as u64;
        busy.busy_while(|| {
            let begun = time::thread_cpu_ns();
            while time::thread_cpu_ns() - begun < burst {
                arch::register_loop(1 << 10);
            }
        });
        std::thread::sleep(random_around(BURST, &mut random));
    }
    Ok(busy.into_trace())
}

fn run_disk_reads(signals: &Signals, stop: &AtomicBool, channel: usize, file: &PatternFile) -> Result<Trace> {
    let (mut busy, mut random) = (Busy::new(signals, channel + 1), Random::new(2 + channel as u64));
    let mut block = pattern_file::map_buffer(BLOCK)?;
    while !stop.load(Ordering::Relaxed) {
        let offset = random.number_below((FILE / BLOCK as u64) as usize) as u64 * BLOCK as u64;
        busy.busy_while(|| file.file().read_exact_at(&mut block, offset))
            .map_err(|cause| file.call_error("reading past the page cache", cause))?;
        if !pattern_file::is_pattern_at(&block, offset) {
            return Err(Error::Disturbed("a block that was read is another than the one asked for".into()));
        }
        std::thread::sleep(random_around(PAUSE, &mut random));
    }
    Ok(busy.into_trace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io_overlap::{Monitor, Overlap, Sample, exact_overlap};
    use syscost_platform::testing::print_skipped;

    /// The sampled overlaps of a load of two channels, for k = 0 and 1, and its traces; `None` where the load cannot run.
    fn sampled() -> Option<([Overlap; 2], Finished)> {
        let directory = tempfile::tempdir().expect("a directory");
        let load = match Load::start(directory.path(), 2, cpu::allowed_cpus()[0]) {
            Err(Error::Missing(why)) => {
                print_skipped(&why.to_string());
                return None;
            }
            started => started.expect("started"),
        };
        let monitor = Monitor { period: Duration::from_millis(1), seed: 5 };
        let overlaps = [0, 1].map(|k| monitor.io_overlap::<9>(k, load.signals()).expect("sampled"));
        let finished = load.finish().expect("read");
        assert!(finished.channels.iter().all(|trace| trace.len() > 10));
        Some((overlaps, finished))
    }

    /// A sample may be late, but the wire has the value that the trace has at the moment of the sample.
    #[test]
    fn a_sample_agrees_with_the_trace_at_its_time() {
        let Some((overlaps, finished)) = sampled() else { return };
        for (k, overlap) in (0..).zip(&overlaps) {
            let traced =
                |sample: &Sample| exact_overlap(&finished.cpu, &finished.channels, k, sample.between);
            // Samples during which the signal changed are neither on nor off, and are left out.
            let unchanged: Vec<_> = overlap
                .samples
                .iter()
                .map(|s| (s.on, traced(s)))
                .filter(|s| s.1 == 0.0 || s.1 == 1.0)
                .collect();
            let wrong = unchanged.iter().filter(|(on, traced)| *on != (*traced == 1.0)).count();
            assert!(unchanged.len() > 500, "{} of {}", unchanged.len(), overlap.samples.len());
            // The trace records a switch a moment after the wire has changed, and the thread may lose the CPU in between.
            assert!(wrong <= 5, "k = {k}: {wrong} of {}", unchanged.len());
        }
    }

    #[test]
    fn a_sampled_overlap_is_the_traced_one() {
        let Some((overlaps, finished)) = sampled() else { return };
        for (k, overlap) in (0..).zip(&overlaps) {
            if !overlap.real_time {
                return print_skipped(
                    "the real-time class is refused here (`ulimit -r`), and the monitor has to wait",
                );
            }
            let truth = exact_overlap(&finished.cpu, &finished.channels, k, overlap.window);
            // Four standard deviations of a fraction of 512 samples.
            assert!(
                (overlap.fraction.estimate - truth).abs() < 0.1,
                "k = {k}: {truth} {:?}",
                overlap.fraction
            );
        }
    }
}
