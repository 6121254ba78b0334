//! A ring in the memory of another NUMA node.

use super::operation_numa;
use super::walker::Plan;
use crate::case::{Case, Claim, Need, Place, Scale, set_up};
use crate::error::{Error, Result};
use crate::platform::resident::ResidentMemory;

const LIES_THERE: &str = "pages all over the ring lay on the other node when it was linked";

/// The machine has memory on another node.
const OTHER_NODE: Need = Need::new(|place| match other_memory_node(place) {
    Some(_) => Ok(()),
    None => Err(
        "all memory is as near to this CPU as any other: the kernel has one memory node only, or does not \
                 tell of more (/sys/devices/system/node/has_memory)"
            .into(),
    ),
});

fn other_memory_node(place: &Place) -> Option<usize> {
    operation_numa::other_memory_nodes(place.cpus.here?).last().copied()
}

/// The case of this ring.
pub(super) fn other_node_case(plan: Plan) -> Case {
    let set_up = set_up(move |place| {
        if place.scale == Scale::Smoke {
            return Err(Error::Missing(
                "smoke scale: a ring of this size is linked at default and full scale".into(),
            ));
        }
        let node =
            other_memory_node(place).ok_or_else(|| Error::Missing("there is no other memory node".into()))?;
        let mut memory = operation_numa::call_bound_to_node(node, || plan.allocate_memory())??;
        verify_node(&mut memory, node)?;
        plan.start_walkers::<1>(memory)
    });
    let title = "a load that needs the one before: lines in random order in another node's memory";
    Case::new("other-node/256MiB", title, set_up).need(OTHER_NODE).claim(Claim::Checked(LIES_THERE)).predict(
        800.0,
        0.0,
        "a line from memory, over the link between the nodes, and a page walk",
    )
}

/// Verifies the node of pages that are spread over the memory.
fn verify_node(memory: &mut ResidentMemory, node: usize) -> Result<()> {
    const PROBES: usize = 64;
    let bytes = memory.bytes();
    for at in bytes.iter().step_by(bytes.len().div_ceil(PROBES).max(1)) {
        let found = operation_numa::node_of_byte(at)?;
        if found != node {
            return Err(Error::Missing(format!(
                "memory was asked for on node {node} and came on node {found}: free some there"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::resident::Pages;

    #[test]
    fn memory_of_the_wrong_node_is_noticed() {
        let mut memory = ResidentMemory::new(1 << 20, Pages::Base).expect("memory");
        let Ok(here) = operation_numa::node_of_byte(&memory.bytes()[0]) else {
            println!("skipped: this kernel does not tell of nodes");
            return;
        };
        let error = verify_node(&mut memory, here + 1).expect_err("another").to_string();
        assert!(error.contains(&format!("on node {}", here + 1)), "{error}");
    }
}
