//! What a run under control was like: when it had settled, by how much it overshot, how it jittered from then on.

use crate::statistic::standard_deviation;

/// Blocks in the band, up to the end, that count as staying there.
const STAYS: usize = 3;

/// Of an index that is led to a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transient {
    /// Blocks until the index came into the band around its goal and stayed there; `None` if it has not.
    pub settled: Option<usize>,
    /// How far beyond the goal it went, in shares of the way there.
    pub overshoot: f64,
    /// Its standard deviation from when it had settled; where it has not, over the second half.
    pub jitter: f64,
}

impl Transient {
    /// Of the index after each block, the first of which tells from which side it came; within `band` of the goal it
    /// counts as there.
    pub fn of(series: &[f64], goal: f64, band: f64) -> Self {
        let way = series.first().map_or(0.0, |first| first - goal);
        let beyond = series.iter().map(|index| -(index - goal) / way).fold(0.0, f64::max);
        let inside = series.iter().rev().take_while(|index| (*index - goal).abs() <= band).count();
        // A swing that ends here by chance has not stayed.
        let settled = (inside >= STAYS.min(series.len()).max(1)).then(|| series.len() - inside);
        let rest = &series[settled.unwrap_or(series.len() / 2)..];
        let jitter = if rest.len() > 1 { standard_deviation(rest) } else { 0.0 };
        Self { settled, overshoot: if way == 0.0 { 0.0 } else { beyond }, jitter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_was_like_is_read_off() {
        let transient = Transient::of(&[20.0, 12.0, 8.0, 9.5, 10.5, 9.5, 10.5], 10.0, 1.0);
        assert_eq!(transient.settled, Some(3));
        assert!((transient.overshoot - 0.2).abs() < 1e-12, "{transient:?}");
        assert!((transient.jitter - standard_deviation(&[9.5, 10.5, 9.5, 10.5])).abs() < 1e-12);
    }

    #[test]
    fn what_never_stays_has_not_settled() {
        let transient = Transient::of(&[20.0, 10.0, 20.0, 10.0, 20.0], 10.0, 1.0);
        assert_eq!((transient.settled, transient.overshoot), (None, 0.0));
        assert!(transient.jitter > 4.0);
        let by_chance = Transient::of(&[20.0, 10.0, 20.0, 10.0], 10.0, 1.0);
        assert_eq!(by_chance.settled, None);
    }

    #[test]
    fn nothing_is_nothing() {
        let empty = Transient { settled: None, overshoot: 0.0, jitter: 0.0 };
        assert_eq!(Transient::of(&[], 1.0, 1.0), empty);
    }
}
