//! The instants at which a clock moves, as another clock sees them.

/// An instant at which a clock of the kernel's moved: what the base said, to within `width`.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) base: u64,
    pub(super) ns: u64,
    pub(super) width: u64,
}

/// Steps of the base that pass while a clock moves on by 1 ns, and their relative error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) per_ns: f64,
    pub(super) error: f64,
}

impl Edge {
    /// Readings after which a clock that did not move stands still: 10 ms of the cheapest, and longer by system calls.
    const PATIENCE: u32 = 1_000_000;
    /// Edges of which the one with the tightest readings around it is kept …
    const TRIES: usize = 20;
    /// … if they come within this time, ns.
    const LONG_NS: u64 = 1_000_000;

    /// The tightest of some edges; `None` if the clock stands still.
    pub(super) fn tightest(read: fn() -> u64, base: fn() -> u64) -> Option<Self> {
        let first = Self::next(read, base)?;
        let mut best = first;
        for _ in 1..Self::TRIES {
            let edge = Self::next(read, base)?;
            if edge.width < best.width {
                best = edge;
            }
            if edge.ns.saturating_sub(first.ns) > Self::LONG_NS {
                break;
            }
        }
        Some(best)
    }

    /// The next edge: between two readings of the clock that differ, each with a reading of the base before it.
    pub(super) fn next(read: fn() -> u64, base: fn() -> u64) -> Option<Self> {
        let (mut before, last) = (base(), read());
        for _ in 0..Self::PATIENCE {
            let middle = base();
            let ns = read();
            if ns != last {
                let width = base().wrapping_sub(before);
                return Some(Self { base: before.wrapping_add(width / 2), ns, width });
            }
            before = middle;
        }
        None
    }

    /// The pace between this edge and a later one.
    pub(super) fn pace_until(&self, later: &Self) -> Pace {
        let passed = later.base.wrapping_sub(self.base) as f64;
        let error = (self.width + later.width) as f64 / 2.0 / passed.max(1.0);
        Pace { per_ns: passed / (later.ns.wrapping_sub(self.ns) as i64 as f64), error }
    }
}
