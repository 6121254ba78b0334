//! Who says how many jobs run: one fewer while they queue for the paging device, one more while it idles.

use super::Paging;
use crate::Result;
use crate::technique::index::PerformanceIndex;

/// The goal: F = S.
const GOAL: f64 = 1.0;
/// After a job more was too many, so many windows pass before it is tried again; then twice as many, and so on.
const PATIENCE: u32 = 12;
const MOST_PATIENCE: u32 = 192;

/// A controller of the degree of multiprogramming.
///
/// One that only compared would try the job that does not fit again at once, and thrash for half of its time: jobs are
/// whole, so that of two neighbours one leaves the device idle and the other overloads it. This one remembers, and asks
/// ever more rarely whether what did not fit fits now. And it knows that a change shows late: a job that comes in brings
/// its pages with it, and those that stay fetch theirs back, which looks like thrashing until it is over.
#[derive(Clone, Debug)]
pub struct Pilot {
    index: PerformanceIndex,
    degree: usize,
    limit: usize,
    /// Above this degree lies what was too many the last time.
    ceiling: usize,
    /// Windows until the ceiling is doubted.
    rest: u32,
    patience: u32,
    /// Windows that a change takes to show, and how many of them are left.
    lag: u32,
    changing: u32,
}

impl Pilot {
    /// Begins with one job, of at most `limit`. `damping` is that of its index; for `lag` windows after a change nothing
    /// is concluded: as long as a job needs to bring its pages in.
    ///
    /// # Errors
    /// As of [`PerformanceIndex::new`].
    pub fn new(limit: usize, damping: f64, lag: u32) -> Result<Self> {
        let index = PerformanceIndex::new(1, damping)?;
        Ok(Self { index, degree: 1, limit, ceiling: limit, rest: 0, patience: PATIENCE, lag, changing: lag })
    }

    /// The same, beginning at another degree.
    pub fn beginning_at(self, degree: usize) -> Self {
        Self { degree: degree.clamp(1, self.limit), ..self }
    }

    /// How many jobs run now.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// The index after the last window: S/F, damped.
    pub fn index(&self) -> f64 {
        self.index.value().unwrap_or(0.0)
    }

    /// What a window showed; the degree from here on.
    pub fn see(&mut self, paging: &Paging) -> usize {
        self.rest = self.rest.saturating_sub(1);
        if self.changing > 0 {
            self.changing -= 1;
            return self.degree;
        }
        let Some(queue) = self.index.take(paging.queue()) else { return self.degree };
        if queue > GOAL && self.degree > 1 {
            // That the ceiling was doubted in vain is a reason to wait longer; that it is lower now is none.
            let in_vain = self.degree == self.ceiling + 1;
            self.patience = if in_vain { (2 * self.patience).min(MOST_PATIENCE) } else { PATIENCE };
            self.rest = self.patience;
            self.move_to(self.degree - 1);
            self.ceiling = self.degree;
        } else if queue < 0.5 * GOAL
            && self.degree < self.limit
            && (self.degree < self.ceiling || self.rest == 0)
        {
            self.move_to(self.degree + 1);
        }
        self.degree
    }

    /// What the index has seen was another degree's.
    fn move_to(&mut self, degree: usize) {
        (self.degree, self.changing) = (degree, self.lag);
        self.index = self.index.clone().starting_at(0.5 * GOAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A window on a machine where so many jobs fit.
    fn window(degree: usize, fits: usize) -> Paging {
        let window = Duration::from_millis(100);
        let queue = if degree <= fits { 0.05 } else { (degree - fits) as f64 + 0.8 };
        Paging { window, touches: 1, page_ins: 1, waited: window.mul_f64(queue) }
    }

    fn fly(pilot: &mut Pilot, fits: usize, windows: usize) -> Vec<usize> {
        (0..windows).map(|_| pilot.see(&window(pilot.degree(), fits))).collect()
    }

    fn share_at(flown: &[usize], degree: usize) -> f64 {
        flown.iter().filter(|now| **now == degree).count() as f64 / flown.len() as f64
    }

    #[test]
    fn it_finds_what_fits_from_either_side_and_stays_there() {
        for from in [1, 8] {
            for fits in 1..=8 {
                let mut pilot = Pilot::new(8, 0.3, 0).expect("a damping").beginning_at(from);
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
                let degree = pilot.see(&if pilot.degree() <= 5 { paging } else { window(pilot.degree(), 5) });
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
