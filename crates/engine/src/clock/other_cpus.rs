//! CPU time used on the CPUs where no task of a case runs. It takes no CPU from the case, but it uses the last cache,
//! the memory and the frequency budget that all of them share.

use super::USER_HZ;
use super::evidence::read_text;
use crate::platform::proc;
use std::fs::File;
use std::time::Instant;

/// The CPUs on which no task of a case runs.
pub struct OtherCpus {
    stat: Option<File>,
    /// CPUs of the case.
    own: Vec<usize>,
    buffer: Vec<u8>,
    begun: Option<(Instant, u64)>,
}

impl OtherCpus {
    /// Opens `/proc/stat` for a case that runs on these CPUs.
    pub fn open(own: Vec<usize>) -> Self {
        Self { stat: File::open("/proc/stat").ok(), own, buffer: vec![0; 64 << 10], begun: None }
    }

    /// Starts the interval that [`OtherCpus::mean_busy_cpus`] is asked about.
    pub fn begin_interval(&mut self) {
        self.begun = self.read_busy_ticks().map(|ticks| (Instant::now(), ticks));
    }

    /// How many of these CPUs were busy since then, on average; `None` where the kernel does not tell. The kernel
    /// counts in ticks of 10 ms, so that much less than a second gives a rough answer.
    pub fn mean_busy_cpus(&mut self) -> Option<f64> {
        let (then, before) = self.begun?;
        let ticks = self.read_busy_ticks()?.saturating_sub(before);
        Some(ticks as f64 / USER_HZ / then.elapsed().as_secs_f64().max(1.0 / USER_HZ))
    }

    fn read_busy_ticks(&mut self) -> Option<u64> {
        read_text(&self.stat, &mut self.buffer).and_then(|text| proc::busy_ticks(text, &self.own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;

    #[test]
    fn a_busy_cpu_is_counted_unless_it_is_the_case_s_own() {
        let here = cpu::current_cpu();
        let (mut others, mut own) = (OtherCpus::open(Vec::new()), OtherCpus::open((0..4096).collect()));
        assert_eq!(others.mean_busy_cpus(), None, "it was not begun");
        others.begin_interval();
        own.begin_interval();
        let begun = Instant::now();
        while begun.elapsed().as_millis() < 300 {
            std::hint::black_box(here);
        }
        let (Some(all), none) = (others.mean_busy_cpus(), own.mean_busy_cpus()) else {
            return crate::platform::testing::print_skipped("this kernel has no /proc/stat");
        };
        assert!(all > 0.1, "{all} CPUs were busy while this thread spun");
        assert_eq!(none, Some(0.0));
    }
}
