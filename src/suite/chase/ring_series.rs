//! The cases: a table of series, each with a case for each of its sizes.

use super::bus_load::{self, Loaders};
use super::operation_ring::{LINE, PAGE, Spread};
use super::ring_size::{Range, Size, Sizes};
use super::walker::Order;
use super::walker::first_pass_set_up;
use super::walker::{ARRIVED, NO_FAULT, ONE_CYCLE, Plan, many_walkers_set_up};
use crate::kit::contract::*;
use crate::platform::numa;
use crate::platform::resident::Pages;

/// The least size, bytes, of rings that lie wholly or partly in memory shared by all CPUs: few cores have larger
/// private caches.
const SHARED: usize = 2 << 20;
/// Up to this size, bytes, walking through the ring takes a small part of the shortest batch.
const SHORT_RUN_UP: usize = 256 << 10;
/// Least timed share of a case with a short run-up. The run-up is untimed, so two thirds are usual on a busy
/// machine.
const RUN_UP_SHARE: f64 = 0.55;
/// A size that lies in main memory on most machines, bytes.
const LARGE: usize = 256 << 20;

/// A ring of many sizes.
struct Series {
    name: String,
    /// What the ring visits, in the words of the title.
    words: String,
    pages: Pages,
    spread: Spread,
    order: Order,
    pass: Pass,
    sizes: Sizes,
}

/// Whether the caches may hold lines of a ring from the pass before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    First,
    Repeated,
}

pub(super) fn cases() -> Vec<Case> {
    let mut all: Vec<_> = all_series().iter().flat_map(Series::cases).collect();
    all.extend(PARALLEL.map(|(walkers, set_up)| parallel_case(walkers, set_up)));
    all.extend(LOADERS.map(Loaders::Exactly).into_iter().chain([Loaders::All]).map(loaded_case));
    let by_node = node_cases(Plan::random_lines(LARGE, Pages::Base));
    all.extend(by_node.into_iter().map(Case::shares_memory));
    all.into_iter().map(with_ring_claims).collect()
}

/// Adds the claims of all cases.
fn with_ring_claims(case: Case) -> Case {
    let claims = [ONE_CYCLE, ARRIVED, NO_FAULT].map(Claim::Checked);
    claims.into_iter().fold(case, Case::claim).claim(Claim::Linear)
}

const TLB: &str = "a line of each page of 4 KiB in random order";

/// The exponents of all powers of two from 4 KiB to 256 MiB.
const EVERY: &[u32] = &[12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28];

fn all_series() -> Vec<Series> {
    let random = |name: &str, pages, words: &str, range, default| Series {
        name: name.into(),
        words: words.into(),
        pages,
        spread: Spread::Every(LINE),
        order: Order::Random,
        pass: Pass::Repeated,
        sizes: Sizes { range, default },
    };
    let quarters = Range::Quarters(10, 32);
    #[rustfmt::skip]
    let mut all = vec![
        random("random", Pages::Base, "lines in random order", quarters, &[14, 18, 22, 24, 26, 28]),
        random("random-huge", Pages::Huge, "lines in random order, in transparent huge pages", quarters, EVERY),
        random("random-reserved", Pages::Reserved, "lines in random order, in reserved huge pages", Range::Few, &[18, 28]),
        Series {
            order: Order::WithinRuns(PAGE / LINE),
            ..random("within-pages", Pages::Base, "lines in random order within a page, and pages in random order", Range::Powers(16, 30), &[22, 28])
        },
    ];
    all.extend([16, 32, 64, 128, 256, 512, 1024, 2048, 4096].map(stride_series));
    all.extend([64, 256, 512].map(quarters_series));
    all.extend([list_series(), first_pass_series()]);
    // One line of each page. The control has as many lines in few pages.
    let tlb = random("tlb-4KiB", Pages::Base, TLB, Range::Powers(16, 26), &[16, 18, 20, 22, 24, 25]);
    all.push(Series { spread: Spread::Scattered(PAGE), ..tlb });
    all
}

/// Ascending order, which prefetchers recognise.
fn stride_series(bytes: usize) -> Series {
    let (range, default): (_, &[u32]) = match bytes {
        64 => (Range::Powers(12, 30), &[14, 18, 22, 28]),
        256 | 4096 => (Range::Powers(28, 28), &[28]),
        _ => (Range::Powers(28, 28), &[]),
    };
    Series {
        name: format!("stride-{bytes}"),
        words: format!("slots one after another, {bytes} bytes apart"),
        pages: Pages::Base,
        spread: Spread::Every(bytes),
        order: Order::Ascending,
        pass: Pass::Repeated,
        sizes: Sizes { range, default },
    }
}

/// The order of the CSE 221 report: its figures have strides of 64 and 512 bytes, its table 64 and 256. Default scale
/// measures every size of the figures, and of the table one size for each cache level of the report's machine.
fn quarters_series(bytes: usize) -> Series {
    let default = if bytes == 256 { &[14, 17, 22, 28] } else { EVERY };
    Series {
        name: format!("quarters-{bytes}"),
        words: format!("slots {bytes} bytes apart, from each quarter in turn"),
        order: Order::Quarters,
        sizes: Sizes { range: Range::Powers(12, 28), default },
        ..stride_series(bytes)
    }
}

/// The list of the CSC501 report. A C library places nodes of 64 bytes at this distance.
fn list_series() -> Series {
    Series {
        name: "list".into(),
        words: "nodes of a line each as a C library lays them, one after another".into(),
        // The report's figure is the whole curve.
        sizes: Sizes { range: Range::Powers(12, 28), default: EVERY },
        ..stride_series(LINE + 16)
    }
}

/// The same list when no line of it is in a cache, as the report met it first.
fn first_pass_series() -> Series {
    Series {
        name: "list-first".into(),
        words: "a pass through nodes of a line each, one after another, none of which is in a cache".into(),
        pass: Pass::First,
        // The last of them lies beyond the last level of most caches.
        sizes: Sizes { range: Range::Few, default: &[14, 18, 22, 26] },
        ..list_series()
    }
}

impl Series {
    fn plan(&self, bytes: usize) -> Plan {
        Plan { bytes, pages: self.pages, spread: self.spread, order: self.order }
    }

    fn cases(&self) -> Vec<Case> {
        let restricted = |size: Size| {
            let (sizes, case) = (self.sizes, self.case(&size));
            case.need(Need::of_case(move |place| sizes.check_scale(&size, place)))
        };
        self.sizes.all_sizes().into_iter().map(restricted).collect()
    }

    fn case(&self, size: &Size) -> Case {
        let title = format!("a load that needs the one before: {} of {}", self.words, size.name);
        let name = format!("{}/{}", self.name, size.name);
        let plan = self.plan(size.bytes);
        let (hardware, why) = self.expected_cycles(size.bytes);
        if self.pass == Pass::First {
            return self.first_pass_case(name, plan, size);
        }
        let case = Case::new(name, title, many_walkers_set_up::<1>(plan))
            .predict(hardware, 0.0, why)
            .lap_length(plan.lap_steps());
        let case = if size.bytes < SHARED { case } else { case.shares_memory() };
        // A larger ring is walked through before a batch, which may take longer than a short one.
        let case =
            if size.bytes <= SHORT_RUN_UP { case.timed_share(RUN_UP_SHARE) } else { case.timed_share(0.0) };
        match (self.order, self.spread) {
            (Order::Random, Spread::Every(_)) => case,
            (_, Spread::Scattered(page)) => {
                let dense = Plan::random_lines(size.bytes / page * LINE, Pages::Base);
                case.control_set_up(many_walkers_set_up::<1>(dense))
                    .prediction_includes_control()
                    .derived_figure("walk", Rule::OfNet(1.0))
                    .need(FOUR_KIB)
            }
            (_, Spread::Every(bytes)) => {
                case.derived_figure("bandwidth", Rule::Bandwidth(bytes.min(LINE) as u64))
            }
        }
    }

    /// A whole pass is an iteration: its first loads cost more than the later ones, which are prefetched.
    fn first_pass_case(&self, name: String, plan: Plan, size: &Size) -> Case {
        const FETCHED_AHEAD: f64 = 40.0;
        let slots = plan.slot_count() as f64;
        let title = format!("{}: {}", self.words, size.name);
        Case::new(name, title, first_pass_set_up(plan))
            .predict(FETCHED_AHEAD * slots, 0.0, "lines from memory, most of them fetched ahead")
            .derived_figure("load", Rule::OfCost(1.0 / slots))
            .timed_share(0.0)
    }

    /// Core cycles of a step and why, for the caches of a common machine: 32 KiB, 1 MiB and 32 MiB.
    fn expected_cycles(&self, bytes: usize) -> (f64, &'static str) {
        // Slots several lines apart map to only some sets of a cache: their ring fills it as if it had all lines.
        let touched = match self.spread {
            Spread::Every(_) => bytes,
            Spread::Scattered(page) => bytes / page * LINE,
        };
        let (cycles, why) = match touched {
            0..=0x8000 => (4.5, "a hit in the first level"),
            0x8001..=0x10_0000 => (15.0, "a hit in the second level, here and there the first"),
            0x10_0001..=0x200_0000 => (50.0, "a hit in the last level"),
            _ => (400.0, "a line from memory"),
        };
        match self.order {
            // A prefetcher that crosses into the next page, as on Zen 5, is not expected.
            Order::Ascending if cycles > 10.0 && self.spread.bytes_per_slot() < PAGE => {
                (10.0, "the prefetcher has fetched it: bandwidth, no latency")
            }
            Order::WithinRuns(_) | Order::Quarters if cycles > 100.0 => {
                (cycles / 2.0, "a line from memory, now and then guessed by a prefetcher")
            }
            _ if self.pages == Pages::Base && cycles > 100.0 => {
                (1.3 * cycles, "a line from memory and a page walk")
            }
            _ => (cycles, why),
        }
    }
}

/// A case of a ring of 256 MiB, restricted to the scales that measure it.
fn restrict_large_ring(case: Case, is_default: bool) -> Case {
    const POWER: u32 = LARGE.ilog2();
    let default: &[u32] = if is_default { &[POWER] } else { &[] };
    let sizes = Sizes { range: Range::Powers(POWER, POWER), default };
    let size = Size { name: "256MiB".into(), bytes: LARGE, power: Some(POWER) };
    case.need(Need::of_case(move |place| sizes.check_scale(&size, place)))
}

/// Pairs of a number of walkers and the function that makes their set-up.
macro_rules! many {
    ($($walkers:literal),*) => { [$(($walkers, many_walkers_set_up::<$walkers>)),*] };
}

/// Makes the set-up of some number of walkers.
type Many = fn(Plan) -> SetUp;

/// Walkers in one ring, up to twice the outstanding lines of current cores, whose number the curve shows. The
/// registers of x86-64 hold twelve walkers; the others are kept on the stack, whose cost a load from memory hides.
const PARALLEL: [(u64, Many); 11] = many![1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32];

fn parallel_case(walkers: u64, set_up: Many) -> Case {
    let is_default = [4, 8, 16].contains(&walkers);
    let set_up = set_up(Plan::random_lines(LARGE, Pages::Huge));
    let title = format!("a step of each of {walkers} chains that do not wait for each other");
    restrict_large_ring(Case::new(format!("parallel-256MiB/{walkers}"), title, set_up), is_default)
        .shares_memory()
        .derived_figure("load", Rule::OfCost(1.0 / walkers as f64))
        .derived_figure("bandwidth", Rule::Bandwidth(walkers * LINE as u64))
        .predict(450.0, 0.0, "as one alone: a core waits for ten lines and more at a time")
}

const LOADERS: [usize; 7] = [0, 1, 2, 4, 8, 16, 32];

fn loaded_case(loaders: Loaders) -> Case {
    let name = format!("loaded-256MiB/{}", loaders.name());
    let case = bus_load::loaded_walk_case(name, Plan::random_lines(LARGE, Pages::Huge), loaders);
    restrict_large_ring(case, true).shares_memory().predict(
        500.0,
        0.0,
        "a line from memory, behind those of the others in its queues",
    )
}

const LIES_THERE: &str = "pages all over the ring lay on the node when it was linked";

/// The need that the machine has memory on another node.
const OTHER_NODE: Need =
    Need::new(|place| other_memory_node(place).map(drop).ok_or_else(|| numa::ONE_NODE.into()));

/// The last node with memory, other than that of the measuring CPU.
fn other_memory_node(place: &Place) -> Option<usize> {
    numa::other_memory_nodes(place.cpus.here?).last().copied()
}

/// The case of another node than that of the measuring CPU, and one for each node.
pub(super) fn node_cases(plan: Plan) -> Vec<Case> {
    let other = Case::new(
        "other-node/256MiB",
        "a load that needs the one before: lines in random order in another node's memory",
        ring_on_node(plan, |place| {
            other_memory_node(place).ok_or_else(|| Error::Missing(numa::ONE_NODE.into()))
        }),
    );
    let of_node = |node| {
        let title =
            format!("a load that needs the one before: lines in random order in the memory of node {node}");
        Case::new(format!("node-256MiB/{node}"), title, ring_on_node(plan, move |_| Ok(node)))
            .need(FULL_SCALE)
    };
    let all = [other.need(OTHER_NODE)].into_iter().chain((0..numa::MEASURED).map(of_node));
    all.map(|case| {
        let why = "a line from memory, over the link between the nodes, and a page walk";
        case.claim(Claim::Checked(LIES_THERE)).predict(800.0, 0.0, why)
    })
    .collect()
}

/// Sets up a ring in the memory of the node that `find` returns.
fn ring_on_node(plan: Plan, find: impl Fn(&Place) -> Result<usize> + 'static) -> SetUp {
    set_up(move |place| {
        ensure(place.scale != Scale::Smoke, || {
            Error::Missing("smoke scale: a ring of this size is linked at default and full scale".into())
        })?;
        let node = find(place)?;
        let mut memory = numa::call_on_one_of_several(node, || plan.allocate_memory())??;
        numa::verify_node(memory.bytes(), node)?;
        plan.start_walkers::<1>(memory)
    })
}
