//! The order in which a ring visits its slots. A list of all slots, closed to a ring, is one cycle.

use crate::statistic::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// A random permutation of all slots.
    Random,
    /// Runs of this many neighbours in random order, and random order within each run.
    WithinRuns(usize),
    /// Ascending.
    Ascending,
    /// One slot from each quarter in turn: the first, the last, the second, the third; then the next slot of each.
    Quarters,
}

/// The numbers of all slots in this order, each once.
pub(super) fn slots_in_order(order: Order, slots: usize) -> Vec<u32> {
    let mut random = Random::new(slots as u64);
    let mut all: Vec<u32> = (0..u32::try_from(slots).unwrap_or(u32::MAX)).collect();
    match order {
        // Every cycle is equally likely, as with Sattolo's algorithm, which draws successors in place of a list.
        // Successors drawn by an ordinary shuffle would form several cycles.
        Order::Random => random.shuffle(&mut all),
        Order::WithinRuns(run) => return shuffle_within_runs(all, run, &mut random),
        Order::Ascending => {}
        Order::Quarters => return alternate_quarters(&all),
    }
    all
}

fn shuffle_within_runs(mut all: Vec<u32>, run: usize, random: &mut Random) -> Vec<u32> {
    let mut runs: Vec<_> = all.chunks_mut(run).collect();
    random.shuffle(&mut runs);
    let mut visits = Vec::with_capacity(runs.iter().map(|run| run.len()).sum());
    for run in runs {
        random.shuffle(run);
        visits.extend_from_slice(run);
    }
    visits
}

/// Slots that do not fill four quarters come last.
fn alternate_quarters(all: &[u32]) -> Vec<u32> {
    let quarter = all.len() / 4;
    let dealt = (0..quarter).flat_map(|i| [0, 3, 1, 2].map(|of| all[of * quarter + i]));
    dealt.chain(all[4 * quarter..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Order; 4] = [Order::Random, Order::WithinRuns(64), Order::Ascending, Order::Quarters];

    #[test]
    fn every_order_visits_every_slot_once_at_every_size() {
        let drawn = { Random::new(17) }.number_below(1 << 16) + 2;
        for slots in (2..300).chain([1 << 10, (1 << 12) + 1, drawn, 1 << 16]) {
            for order in ALL {
                let mut visits = slots_in_order(order, slots);
                visits.sort_unstable();
                assert!(visits.into_iter().eq(0..slots as u32), "{order:?} of {slots}");
            }
        }
    }

    #[test]
    fn random_order_has_no_stride() {
        let visits = slots_in_order(Order::Random, 1 << 12);
        let strides = visits.windows(2).filter(|pair| pair[1].abs_diff(pair[0]) == 1).count();
        assert!(strides < 20, "{strides}");
    }

    #[test]
    fn a_run_is_left_only_after_all_its_slots() {
        let visits = slots_in_order(Order::WithinRuns(64), 640);
        for run in visits.chunks(64) {
            assert!(run.iter().all(|slot| slot / 64 == run[0] / 64));
        }
        assert!(!visits.is_sorted());
    }

    #[test]
    fn the_quarters_are_visited_as_the_report_says() {
        assert_eq!(slots_in_order(Order::Quarters, 8), [0, 6, 2, 4, 1, 7, 3, 5]);
        assert_eq!(slots_in_order(Order::Quarters, 9)[8], 8);
    }
}
