//! Events of several machines on one time line, with the error of that line.
//!
//! Each machine has a clock of its own. A request and its answer bound how far the other clock is ahead: the request arrives
//! after it was sent, and the answer returns after it was given. For an [`Exchange`] with the four times *sent*,
//! *arrived*, *answered*, *returned* the offset of the other clock lies in
//! `[answered − returned, arrived − sent]`, whatever the network did. The intervals of several exchanges are intersected. A
//! clock that runs too fast or too slow leaves its interval with time, so the interval grows by the greatest drift times the
//! elapsed time.
//!
//! So an event of another machine has no single time on our line but an interval ([`Placed`]). The order of two events is
//! either certain or [not known](Order::Unknown). Nothing here assumes that both directions of an exchange take equally long.
//!
//! Times are nanoseconds of any clock that does not step (CLOCK_MONOTONIC_RAW).
//!
//! Source: slides 99 to 102 of the [module's](super) slides (streams that must be correlated, messages as cause and
//! effect); K. Marzullo and S. Owicki, *Maintaining the Time in a Distributed System* (1983).

use syscost_platform::error::{Error, Result};

/// A message to another machine and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Our clock when the request was sent, ns.
    pub sent: i64,
    /// Their clock when the request arrived, ns.
    pub arrived: i64,
    /// Their clock when the answer was sent, ns.
    pub answered: i64,
    /// Our clock when the answer arrived, ns.
    pub returned: i64,
}

/// The clock of another machine.
#[derive(Clone, Debug)]
pub struct RemoteClock {
    exchanges: Vec<Exchange>,
    drift: f64,
}

/// An interval of nanoseconds that holds the true value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The true value is not less than this.
    pub earliest: i64,
    /// The true value is not more than this.
    pub latest: i64,
}

/// Which of two events was first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The first event was first.
    Before,
    /// The second event was first.
    After,
    /// Their intervals overlap: the clocks cannot tell.
    Unknown,
}

impl Placed {
    /// The interval of zero width at a time of our own clock.
    pub const fn exactly_at(time: i64) -> Self {
        Self { earliest: time, latest: time }
    }

    /// The width of the interval, ns: the error of the line at this place.
    pub const fn error(self) -> i64 {
        self.latest - self.earliest
    }

    /// Whether the interval holds this time.
    pub const fn contains(self, time: i64) -> bool {
        self.earliest <= time && time <= self.latest
    }

    /// Whether this event was before another one.
    pub const fn order(self, other: Self) -> Order {
        if self.latest < other.earliest {
            Order::Before
        } else if other.latest < self.earliest {
            Order::After
        } else {
            Order::Unknown
        }
    }
}

impl RemoteClock {
    /// The clock that was read in these exchanges. It gains or loses at most `drift` against ours; 50e-6 is usual for two
    /// quartz oscillators.
    ///
    /// # Errors
    /// [`Error::Usage`] without an exchange, or with one whose times run backwards on one of the two machines;
    /// [`Error::Disturbed`] if no offset agrees with all exchanges: a clock has stepped, or drifts more than `drift`.
    pub fn new(exchanges: Vec<Exchange>, drift: f64) -> Result<Self> {
        let backwards = |e: &&Exchange| e.returned < e.sent || e.answered < e.arrived;
        if let Some(odd) = exchanges.iter().find(backwards) {
            return Err(Error::Usage(format!("{odd:?}: its times run backwards on one machine")));
        }
        let Some(last) = exchanges.last().copied() else {
            return Err(Error::Usage("a clock that was never asked has no place on a time line".into()));
        };
        let this = Self { exchanges, drift };
        this.offset_at(last.returned).map(|_| this)
    }

    /// How far their clock is ahead of ours when our clock shows `ours`, ns.
    ///
    /// # Errors
    /// [`Error::Disturbed`] in the cases of [`RemoteClock::new`].
    pub fn offset_at(&self, ours: i64) -> Result<Placed> {
        let bounds = self.exchanges.iter().map(|exchange| self.offset_bounds(exchange, ours));
        let (low, high) = bounds.fold((i64::MIN, i64::MAX), |all, one| (all.0.max(one.0), all.1.min(one.1)));
        match low <= high {
            true => Ok(Placed { earliest: low, latest: high }),
            false => Err(Error::Disturbed(format!(
                "no offset of a clock agrees with all {} exchanges: it was set meanwhile, or drifts by more than {} ppm",
                self.exchanges.len(),
                1e6 * self.drift
            ))),
        }
    }

    /// The bounds that one exchange sets on the offset when our clock shows `ours`, ns. The drift counts from the more
    /// distant end of the exchange.
    fn offset_bounds(&self, exchange: &Exchange, ours: i64) -> (i64, i64) {
        let away = (ours - exchange.sent).abs().max((ours - exchange.returned).abs());
        let slack = (self.drift * away as f64).ceil() as i64 + 1;
        (exchange.answered - exchange.returned - slack, exchange.arrived - exchange.sent + slack)
    }

    /// A time of their clock as an interval on our line.
    ///
    /// # Errors
    /// [`Error::Disturbed`] in the cases of [`RemoteClock::new`].
    pub fn to_our_time(&self, theirs: i64) -> Result<Placed> {
        let begun = self.exchanges[0].sent;
        let guess = self.offset_at(begun)?;
        let away = (theirs - guess.earliest - begun).abs().max((theirs - guess.latest - begun).abs());
        // Half of the interval of our time, plus the most by which the offset can change in it.
        let half = guess.error() / 2 + (2.0 * self.drift * away as f64).ceil() as i64 + 1;
        let slack = (self.drift * half as f64).ceil() as i64 + 1;
        let offset = self.offset_at(theirs - guess.earliest - guess.error() / 2)?;
        Ok(Placed { earliest: theirs - offset.latest - slack, latest: theirs - offset.earliest + slack })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_statistic::Random;

    /// The other machine's clock at a time of ours: ahead, and faster by `drift`.
    fn theirs(ours: i64, ahead: i64, drift: f64) -> i64 {
        ours + ahead + (drift * ours as f64) as i64
    }

    fn exchanges(ahead: i64, drift: f64, count: i64) -> Vec<Exchange> {
        let mut random = Random::new(ahead as u64);
        let mut way = || 20_000 + random.number_below(400_000) as i64;
        let one = |n: i64| {
            let sent = n * 100_000_000;
            let (there, back) = (sent + way(), 5_000);
            let [arrived, answered] = [there, there + back].map(|at| theirs(at, ahead, drift));
            Exchange { sent, arrived, answered, returned: there + back + way() }
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn every_event_lies_in_its_interval_and_more_exchanges_narrow_it() {
        for (ahead, drift) in [(0, 0.0), (3_000_000_000, 40e-6), (-77_000_000_000, -40e-6)] {
            let clock = RemoteClock::new(exchanges(ahead, drift, 10), 50e-6).expect("they agree");
            let few = RemoteClock::new(exchanges(ahead, drift, 1), 50e-6).expect("one does");
            for ours in (-10..30).map(|n| n * 70_000_000) {
                let placed = clock.to_our_time(theirs(ours, ahead, drift)).expect("they agree");
                assert!(placed.contains(ours), "{ours} {placed:?}");
                let by_one = few.to_our_time(theirs(ours, ahead, drift)).expect("one does");
                assert!(placed.error() <= by_one.error() + 100, "{placed:?} {by_one:?}");
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let mut all = exchanges(1_000, 0.0, 5);
        all.extend(exchanges(900_000_000, 0.0, 5));
        assert!(matches!(RemoteClock::new(all, 50e-6), Err(Error::Disturbed(_))));
        assert!(RemoteClock::new(Vec::new(), 50e-6).is_err());
        let odd = Exchange { sent: 5, arrived: 0, answered: 0, returned: 4 };
        assert!(RemoteClock::new(vec![odd], 50e-6).is_err());
    }

    #[test]
    fn an_order_is_certain_or_not_known() {
        let placed = |earliest, latest| Placed { earliest, latest };
        assert_eq!(placed(0, 5).order(placed(6, 9)), Order::Before);
        assert_eq!(placed(6, 9).order(placed(0, 5)), Order::After);
        assert_eq!(placed(0, 6).order(placed(6, 9)), Order::Unknown);
        assert_eq!(Placed::exactly_at(3).error(), 0);
    }
}
