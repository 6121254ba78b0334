//! NUMA nodes: those that have memory, and binding memory to one of them.
//!
//! # Invariants
//!
//! * **OWN-POLICY**: the call reads a local mask and changes only from which node the calling thread's next pages come.
//! * **OWN-WORD**: the call writes one local word; it looks the given address up and does not access it.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::platform::cpu::cpu_list;
use nix::errno::Errno;
use std::ffi::{c_int, c_ulong};
use std::path::Path;

/// `MPOL_F_NODE | MPOL_F_ADDR` of linux/mempolicy.h: the call returns the node of an address, not a policy.
const NODE_OF_ADDRESS: c_ulong = 1 | 2;
/// Nodes that a mask of one word can represent.
const MOST: usize = c_ulong::BITS as usize;

/// The nodes with memory, except the one of this CPU.
pub fn other_memory_nodes(cpu: usize) -> Vec<usize> {
    other_memory_nodes_in(Path::new("/"), cpu)
}

fn other_memory_nodes_in(root: &Path, cpu: usize) -> Vec<usize> {
    let list = root.join("sys/devices/system/node/has_memory");
    let nodes = std::fs::read_to_string(list).map_or_else(|_| Vec::new(), |text| cpu_list::parse(&text));
    let here = root.join(format!("sys/devices/system/cpu/cpu{cpu}"));
    nodes.into_iter().filter(|node| *node < MOST && !here.join(format!("node{node}")).exists()).collect()
}

/// Calls `f` while pages that this thread touches first come from this node only. Afterwards the default policy
/// applies.
///
/// # Errors
/// The kernel refuses the node.
pub fn call_bound_to_node<T>(node: usize, f: impl FnOnce() -> T) -> Result<T> {
    set_memory_policy(libc::MPOL_BIND, 1 << node, MOST + 1)?;
    let value = f();
    set_memory_policy(libc::MPOL_DEFAULT, 0, 0)?;
    Ok(value)
}

fn set_memory_policy(mode: c_int, mask: c_ulong, bits: usize) -> Result<()> {
    // SAFETY: OWN-POLICY.
    let answer = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, &raw const mask, bits) };
    match Errno::result(answer) {
        Ok(_) => Ok(()),
        Err(errno) => Err(Error::from_case_errno("set_mempolicy", errno)),
    }
}

/// The node of the page that holds this byte.
///
/// # Errors
/// The kernel refuses the question, or does not know.
pub fn node_of_byte(byte: &u8) -> Result<usize> {
    let mut node: c_int = -1;
    let none: *mut c_ulong = std::ptr::null_mut();
    // SAFETY: OWN-WORD.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut node,
            none,
            0,
            std::ptr::from_ref(byte),
            NODE_OF_ADDRESS,
        )
    };
    Errno::result(answer).map_err(|errno| Error::from_case_errno("get_mempolicy", errno))?;
    usize::try_from(node).map_err(|_| Error::Disproved(format!("get_mempolicy answered node {node}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_listed_without_that_of_the_cpu() {
        let root = tempfile::tempdir().expect("a directory");
        let make = |path: &str| std::fs::create_dir_all(root.path().join(path)).expect("made");
        make("sys/devices/system/node");
        make("sys/devices/system/cpu/cpu5/node1");
        std::fs::write(root.path().join("sys/devices/system/node/has_memory"), "0-2,4\n").expect("written");
        assert_eq!(other_memory_nodes_in(root.path(), 5), [0, 2, 4]);
        assert_eq!(other_memory_nodes_in(root.path(), 6), [0, 1, 2, 4]);
        assert_eq!(other_memory_nodes_in(Path::new("/nowhere"), 5), [0; 0]);
    }

    #[test]
    fn bound_memory_lies_on_its_node() {
        let touch = || {
            memmap2::MmapMut::map_anon(4096).map(|mut page| {
                page[0] = 1;
                node_of_byte(&page[0])
            })
        };
        match call_bound_to_node(0, touch) {
            Ok(node) => assert_eq!(node.expect("mapped").expect("a node"), 0),
            Err(error) => println!("skipped: {error}"),
        }
    }

    #[test]
    fn a_node_that_does_not_exist_is_refused() {
        let Err(error) = call_bound_to_node(MOST - 1, || ()) else { panic!("bound") };
        assert!(error.to_string().contains("set_mempolicy"), "{error}");
    }
}
