//! Rings in the memory of a certain NUMA node.

use super::walker::Plan;
use crate::case::need::FULL_SCALE;
use crate::case::{Case, Claim, Need, Place, Scale, SetUp, set_up};
use crate::error::{Error, Result};
use crate::platform::numa;

const LIES_THERE: &str = "pages all over the ring lay on the node when it was linked";

/// The machine has memory on another node.
const OTHER_NODE: Need =
    Need::new(|place| other_memory_node(place).map(drop).ok_or_else(|| numa::ONE_NODE.into()));

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
        case.claim(Claim::Checked(LIES_THERE)).predict(
            800.0,
            0.0,
            "a line from memory, over the link between the nodes, and a page walk",
        )
    })
    .collect()
}

fn ring_on_node(plan: Plan, find: impl Fn(&Place) -> Result<usize> + 'static) -> SetUp {
    set_up(move |place| {
        if place.scale == Scale::Smoke {
            return Err(Error::Missing(
                "smoke scale: a ring of this size is linked at default and full scale".into(),
            ));
        }
        let node = find(place)?;
        let mut memory = numa::call_on_one_of_several(node, || plan.allocate_memory())??;
        numa::verify_node(memory.bytes(), node)?;
        plan.start_walkers::<1>(memory)
    })
}
