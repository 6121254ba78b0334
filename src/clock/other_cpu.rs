//! Who is busy beside a case: CPU time where no task of the case is. Whoever has it uses no CPU of ours, and yet the
//! last cache, the memory and the frequency that all of them share.

use super::USER_HZ;
use super::evidence::text;
use crate::platform::proc;
use std::fs::File;
use std::time::Instant;

/// The CPUs on which no task of a case is, watched from a moment on.
pub struct Beside {
    stat: Option<File>,
    /// CPUs that the case has.
    own: Vec<usize>,
    buffer: Vec<u8>,
    begun: Option<(Instant, u64)>,
}

impl Beside {
    /// Opens what there is for a case that has these CPUs.
    pub fn open(own: Vec<usize>) -> Self {
        Self { stat: File::open("/proc/stat").ok(), own, buffer: vec![0; 64 << 10], begun: None }
    }

    /// From now on.
    pub fn begin(&mut self) {
        self.begun = self.ticks().map(|ticks| (Instant::now(), ticks));
    }

    /// How many of these CPUs were busy since then, on average; nothing where the kernel does not tell. It counts in
    /// ticks of 10 ms: of much less than a second it is a rough answer.
    pub fn busy(&mut self) -> Option<f64> {
        let (then, before) = self.begun?;
        let ticks = self.ticks()?.saturating_sub(before);
        Some(ticks as f64 / USER_HZ / then.elapsed().as_secs_f64().max(1.0 / USER_HZ))
    }

    fn ticks(&mut self) -> Option<u64> {
        text(&self.stat, &mut self.buffer).and_then(|text| proc::busy_ticks(text, &self.own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;

    #[test]
    fn a_busy_cpu_is_told_unless_it_is_the_case_s_own() {
        let here = cpu::current();
        let (mut beside, mut own) = (Beside::open(Vec::new()), Beside::open((0..4096).collect()));
        assert_eq!(beside.busy(), None, "it was not begun");
        beside.begin();
        own.begin();
        let begun = Instant::now();
        while begun.elapsed().as_millis() < 300 {
            std::hint::black_box(here);
        }
        let (Some(all), none) = (beside.busy(), own.busy()) else {
            return; // this kernel has no /proc/stat
        };
        assert!(all > 0.1, "{all} CPUs were busy while this thread spun");
        assert_eq!(none, Some(0.0));
    }
}
