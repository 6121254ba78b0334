//! The controller: one job fewer while jobs queue for the paging device, one more while it is idle.

use super::Paging;
use crate::index::PerformanceIndex;
use syscost_platform::error::Result;

/// The goal: F = S.
const GOAL: f64 = 1.0;
/// Windows before a degree that was too high is tried again; doubled after each failure, up to the maximum.
const PATIENCE: u32 = 12;
const MOST_PATIENCE: u32 = 192;

/// A controller of the degree of multiprogramming.
///
/// The best degree is a whole number: one value leaves the device idle, the next overloads it. A simple comparison
/// would alternate between the two and thrash half of the time. This controller remembers the degree that was too high
/// and retries it ever less often. It also ignores the first windows after a change, in which the jobs bring their
/// pages in, which looks like thrashing.
#[derive(Clone, Debug)]
pub struct Pilot {
    index: PerformanceIndex,
    degree: usize,
    limit: usize,
    /// The highest degree that was not too high when it was last tried.
    ceiling: usize,
    /// Windows until a higher degree is tried.
    rest: u32,
    patience: u32,
    /// Windows to ignore after a change, and how many of them are left.
    lag: u32,
    changing: u32,
}

impl Pilot {
    /// Starts with one job of at most `limit`, with an index of this damping. `lag` is the number of windows in which a
    /// job brings its pages in.
    ///
    /// # Errors
    /// As of [`PerformanceIndex::new`].
    pub fn new(limit: usize, damping: f64, lag: u32) -> Result<Self> {
        let index = PerformanceIndex::new(1, damping)?;
        Ok(Self { index, degree: 1, limit, ceiling: limit, rest: 0, patience: PATIENCE, lag, changing: lag })
    }

    /// Starts at another degree.
    pub fn with_initial_degree(self, degree: usize) -> Self {
        Self { degree: degree.clamp(1, self.limit), ..self }
    }

    /// The current degree.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// The damped S/F after the last window.
    pub fn index(&self) -> f64 {
        self.index.value().unwrap_or(0.0)
    }

    /// Takes the paging of a window and returns the new degree.
    pub fn update_degree(&mut self, paging: &Paging) -> usize {
        self.rest = self.rest.saturating_sub(1);
        if self.changing > 0 {
            self.changing -= 1;
            return self.degree;
        }
        let Some(queue) = self.index.add_response(paging.mean_queue_length()) else { return self.degree };
        if queue > GOAL && self.degree > 1 {
            // Only a failed retry is a reason to wait longer, not a lower ceiling.
            let in_vain = self.degree == self.ceiling + 1;
            self.patience = if in_vain { (2 * self.patience).min(MOST_PATIENCE) } else { PATIENCE };
            self.rest = self.patience;
            self.change_degree(self.degree - 1);
            self.ceiling = self.degree;
        } else if queue < 0.5 * GOAL
            && self.degree < self.limit
            && (self.degree < self.ceiling || self.rest == 0)
        {
            self.change_degree(self.degree + 1);
        }
        self.degree
    }

    /// Changes the degree. The index restarts, since its past belongs to another degree.
    fn change_degree(&mut self, degree: usize) {
        (self.degree, self.changing) = (degree, self.lag);
        self.index = self.index.clone().with_initial_value(0.5 * GOAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A window on a machine where `fits` jobs fit.
    fn window(degree: usize, fits: usize) -> Paging {
        let window = Duration::from_millis(100);
        let queue = if degree <= fits { 0.05 } else { (degree - fits) as f64 + 0.8 };
        Paging { window, touches: 1, page_ins: 1, waited: window.mul_f64(queue) }
    }

    fn fly(pilot: &mut Pilot, fits: usize, windows: usize) -> Vec<usize> {
        (0..windows).map(|_| pilot.update_degree(&window(pilot.degree(), fits))).collect()
    }

    fn share_at(flown: &[usize], degree: usize) -> f64 {
        flown.iter().filter(|now| **now == degree).count() as f64 / flown.len() as f64
    }

    #[test]
    fn it_finds_what_fits_from_either_side_and_stays_there() {
        for from in [1, 8] {
            for fits in 1..=8 {
                let mut pilot = Pilot::new(8, 0.3, 0).expect("a damping").with_initial_degree(from);
                fly(&mut pilot, fits, 60);
                let flown = fly(&mut pilot, fits, 200);
                assert!(share_at(&flown, fits) > 0.9, "from {from}, {fits} fit: {flown:?}");
            }
        }
    }

    #[test]
    fn it_follows_what_fits() {
        let mut pilot = Pilot::new(8, 0.3, 0).expect("a damping");
        for fits in [3, 6, 2, 8, 1] {
            fly(&mut pilot, fits, 500);
            assert!(share_at(&fly(&mut pilot, fits, 100), fits) > 0.9, "{fits}");
        }
    }

    #[test]
    fn what_a_change_costs_is_not_taken_for_thrashing() {
        let share = |lag| {
            let mut pilot = Pilot::new(8, 0.3, lag).expect("a damping");
            let (mut before, mut since, mut flown) = (1, 0, Vec::new());
            for _ in 0..300 {
                // For five windows a job that has come in waits for nothing but its pages.
                let queue = if since < 5 { 1.4 } else { 0.05 };
                let paging = Paging { waited: Duration::from_millis(100).mul_f64(queue), ..window(1, 1) };
                let degree = pilot.update_degree(&if pilot.degree() <= 5 {
                    paging
                } else {
                    window(pilot.degree(), 5)
                });
                since = if degree == before { since + 1 } else { 0 };
                before = degree;
                flown.push(degree);
            }
            share_at(&flown[100..], 5)
        };
        assert!(share(6) > 0.8, "{}", share(6));
        assert!(share(0) < 0.5, "{}", share(0));
    }

    #[test]
    fn it_asks_ever_more_rarely_what_did_not_fit() {
        let mut pilot = Pilot::new(8, 0.0, 0).expect("a damping");
        let flown = fly(&mut pilot, 3, 400);
        let tried: Vec<usize> = (1..flown.len()).filter(|at| flown[*at] == 4 && flown[at - 1] != 4).collect();
        let gaps: Vec<usize> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.windows(2).all(|pair| pair[1] >= pair[0]) && gaps.last() > gaps.first(), "{gaps:?}");
        assert!(gaps.iter().all(|gap| *gap <= MOST_PATIENCE as usize + 2), "{gaps:?}");
    }
}
