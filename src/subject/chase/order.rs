//! In which order a ring leads through its slots: for each of them, the one that follows.

use crate::statistic::Random;

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Random over all.
    Random,
    /// Random within runs of so many neighbours, and the runs in random order.
    WithinRuns(usize),
    /// One after another.
    Ascending,
    /// From each quarter in turn, the first, the last, the second, the third, and on by one slot.
    Quarters,
}

/// Which slot follows each of so many. Every order is one cycle through all of them.
pub(super) fn next(order: Order, slots: usize) -> Vec<u32> {
    let mut random = Random::new(slots as u64);
    match order {
        Order::Random => sattolo(slots, &mut random),
        Order::WithinRuns(run) => linked(&within_runs(slots, run, &mut random)),
        Order::Ascending => linked(&ascending(slots)),
        Order::Quarters => linked(&quarters(slots)),
    }
}

fn ascending(slots: usize) -> Vec<u32> {
    (0..u32::try_from(slots).unwrap_or(u32::MAX)).collect()
}

/// Sattolo's shuffle, which leaves no slot where it was: exchanged only with those before it, all become one cycle.
/// With Fisher and Yates' most would fall into several.
fn sattolo(slots: usize, random: &mut Random) -> Vec<u32> {
    let mut next = ascending(slots);
    for i in (1..slots).rev() {
        next.swap(i, random.below(i));
    }
    next
}

fn within_runs(slots: usize, run: usize, random: &mut Random) -> Vec<u32> {
    let mut all = ascending(slots);
    let mut runs: Vec<_> = all.chunks_mut(run).collect();
    random.shuffle(&mut runs);
    let mut visits = Vec::with_capacity(slots);
    for run in runs {
        random.shuffle(run);
        visits.extend_from_slice(run);
    }
    visits
}

/// What cannot be dealt to four quarters comes last.
fn quarters(slots: usize) -> Vec<u32> {
    let all = ascending(slots);
    let quarter = slots / 4;
    let dealt = (0..quarter).flat_map(|i| [0, 3, 1, 2].map(|of| all[of * quarter + i]));
    dealt.chain(all[4 * quarter..].iter().copied()).collect()
}

/// The successor of each, for slots that are visited in this order and then again.
fn linked(visits: &[u32]) -> Vec<u32> {
    let mut next = vec![0; visits.len()];
    for (at, &slot) in visits.iter().enumerate() {
        next[slot as usize] = visits[(at + 1) % visits.len()];
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Order; 4] = [Order::Random, Order::WithinRuns(64), Order::Ascending, Order::Quarters];

    /// Steps until a walk from the first slot is back there.
    fn cycle(next: &[u32]) -> usize {
        let mut at = 0;
        let steps = (0..next.len()).take_while(|_| {
            at = next[at] as usize;
            at != 0
        });
        steps.count() + 1
    }

    #[test]
    fn every_order_is_one_cycle_through_every_slot_at_every_size() {
        let drawn = { Random::new(17) }.below(1 << 16) + 2;
        for slots in (2..300).chain([1 << 10, (1 << 12) + 1, drawn, 1 << 16]) {
            for order in ALL {
                let next = next(order, slots);
                assert_eq!((next.len(), cycle(&next)), (slots, slots), "{order:?}");
                let reached: std::collections::BTreeSet<_> = next.iter().collect();
                assert_eq!(reached.len(), slots, "{order:?} of {slots}");
            }
        }
    }

    #[test]
    fn an_ordinary_shuffle_is_not_one_cycle() {
        let mut next = ascending(1000);
        Random::new(1).shuffle(&mut next);
        assert!(cycle(&next) < 1000, "and this is why it is Sattolo's");
    }

    #[test]
    fn random_order_has_no_stride() {
        let next = next(Order::Random, 1 << 12);
        let strides = next.iter().zip(0..).filter(|&(&to, from): &(&u32, u32)| to == from + 1).count();
        assert!(strides < 10, "{strides}");
    }

    #[test]
    fn runs_are_left_only_when_all_of_them_is_seen() {
        let visits = within_runs(640, 64, &mut Random::new(3));
        for run in visits.chunks(64) {
            assert!(run.iter().all(|slot| slot / 64 == run[0] / 64));
        }
        assert_ne!(visits, ascending(640));
    }

    #[test]
    fn the_quarters_are_visited_as_the_report_says() {
        assert_eq!(quarters(8), [0, 6, 2, 4, 1, 7, 3, 5]);
        assert_eq!(quarters(9)[8], 8);
    }
}
