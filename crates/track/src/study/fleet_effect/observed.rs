//! The effect of a kernel on one machine in one case, in few bytes.

use syscost_statistic::mean;

/// What one machine shows of one case. There are millions of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub machine: u32,
    /// The other kernel's mean logarithm less the first one's.
    pub log: f32,
    /// The same of the lowest jobs.
    pub lowest: f32,
    /// Squared distances of the jobs from the means of their kernels.
    pub squares: f32,
    /// Jobs under the first kernel and under the other.
    jobs: [u16; 2],
}

impl Observed {
    /// `None` where a kernel has no job.
    pub(super) fn from_logs(machine: u32, reference: &[f64], other: &[f64]) -> Option<Self> {
        let squares = |logs: &[f64]| logs.iter().map(|log| (log - mean(logs)).powi(2)).sum::<f64>();
        let lowest = |logs: &[f64]| logs.iter().copied().fold(f64::INFINITY, f64::min);
        (!reference.is_empty() && !other.is_empty()).then(|| Self {
            machine,
            log: (mean(other) - mean(reference)) as f32,
            lowest: (lowest(other) - lowest(reference)) as f32,
            squares: (squares(reference) + squares(other)) as f32,
            jobs: [reference, other].map(|logs| logs.len().min(usize::from(u16::MAX)) as u16),
        })
    }

    /// Degrees of freedom: the number of jobs less one for each kernel's mean.
    pub(super) fn degrees_of_freedom(&self) -> usize {
        self.jobs.iter().map(|&jobs| usize::from(jobs) - 1).sum()
    }

    /// Factor from the variance of one job to the variance of the effect.
    pub(super) fn variance_factor(&self) -> f64 {
        self.jobs.iter().map(|&jobs| 1.0 / f64::from(jobs)).sum()
    }
}
