//! A ring in the memory of another node.

use super::operation_node;
use super::walk::Plan;
use crate::case::{Case, Need, Place, SetUp, Subject};
use crate::case::{Claim, Scale};
use crate::platform::resident::ResidentMemory;
use crate::{Error, Result};

const LIES_THERE: &str = "pages all over the ring lay on the other node when it was linked";

/// There is memory that belongs to other CPUs.
const OTHER_NODE: Need = Need::new(|place| match other(place) {
    Some(_) => Ok(()),
    None => Err(
        "all memory is as near to this CPU as any other: the kernel has one memory node only, or does not \
                 tell of more (/sys/devices/system/node/has_memory)"
            .into(),
    ),
});

fn other(place: &Place) -> Option<usize> {
    operation_node::others_than_of(place.cpus.here?).last().copied()
}

/// The case. `plan` says what the ring is.
pub(super) fn case(plan: Plan) -> Case {
    let set_up: SetUp = Box::new(move |place: &Place| {
        if place.scale == Scale::Smoke {
            return Err(Error::Missing(
                "smoke scale: a ring of this size is linked at default and full scale".into(),
            ));
        }
        let node = other(place).ok_or_else(|| Error::Missing("there is no other memory node".into()))?;
        let mut memory = operation_node::while_bound(node, || plan.memory())??;
        lies_on(&mut memory, node)?;
        Ok(Box::new(plan.chase::<1>(memory)?) as Box<dyn Subject>)
    });
    let title = "a load that needs the one before: lines in random order in another node's memory";
    Case::new("other-node/256MiB", title, set_up).need(OTHER_NODE).claim(Claim::Checked(LIES_THERE)).predict(
        800.0,
        0.0,
        "a line from memory, over the link between the nodes, and a page walk",
    )
}

/// Looks at pages all over it.
fn lies_on(memory: &mut ResidentMemory, node: usize) -> Result<()> {
    const LOOKS: usize = 64;
    let bytes = memory.bytes();
    for at in bytes.iter().step_by(bytes.len().div_ceil(LOOKS).max(1)) {
        let found = operation_node::of(at)?;
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
        let Ok(here) = operation_node::of(&memory.bytes()[0]) else {
            println!("skipped: this kernel does not tell of nodes");
            return;
        };
        let error = lies_on(&mut memory, here + 1).expect_err("another").to_string();
        assert!(error.contains(&format!("on node {}", here + 1)), "{error}");
    }
}
