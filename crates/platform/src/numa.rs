//! NUMA nodes: those that have memory, binding memory to one of them, and moving it to another.
//!
//! # Invariants
//!
//! * **OWN-POLICY**: the call reads a local mask and changes only from which node the calling thread's next pages come.
//! * **OWN-WORD**: the call writes one local word; it looks the given address up and does not access it.
//! * **OWN-PAGES**: the call reads and writes arrays of one length. A page that moves keeps its address and its bytes.
#![allow(unsafe_code)]

use crate::cpu::cpu_list;
use crate::error::{Error, Result};
use crate::region::{PAGE, Region};
use nix::errno::Errno;
use std::ffi::{c_int, c_ulong};
use std::path::Path;

/// `MPOL_F_NODE | MPOL_F_ADDR` of linux/mempolicy.h: the call returns the node of an address, not a policy.
const NODE_OF_ADDRESS: c_ulong = 1 | 2;
/// `MPOL_MF_MOVE` of linux/mempolicy.h: pages that another process maps, too, stay.
const MOVE_OWN: c_int = 1 << 1;
/// Nodes that a mask of one word can represent.
const MOST: usize = c_ulong::BITS as usize;

/// Number of nodes that have cases of their own. On a larger machine the others are left out.
pub const MEASURED: usize = 8;
/// The message for a machine without another node.
pub const ONE_NODE: &str = "all memory is as near to this CPU as any other: the kernel has one memory node only, or does not tell of \
                            more (/sys/devices/system/node/has_memory)";

/// The nodes with memory, except the one of this CPU.
pub fn other_memory_nodes(cpu: usize) -> Vec<usize> {
    other_memory_nodes_in(Path::new("/"), cpu)
}

fn other_memory_nodes_in(root: &Path, cpu: usize) -> Vec<usize> {
    let here = root.join(format!("sys/devices/system/cpu/cpu{cpu}"));
    memory_nodes_in(root).into_iter().filter(|node| !here.join(format!("node{node}")).exists()).collect()
}

fn memory_nodes_in(root: &Path) -> Vec<usize> {
    let list = root.join("sys/devices/system/node/has_memory");
    let nodes = std::fs::read_to_string(list).map_or_else(|_| Vec::new(), |text| cpu_list::parse(&text));
    nodes.into_iter().filter(|node| *node < MOST).collect()
}

/// The nodes with memory, at least two.
///
/// # Errors
/// [`Error::Missing`] if there are fewer.
pub fn several_memory_nodes() -> Result<Vec<usize>> {
    let nodes = memory_nodes_in(Path::new("/"));
    if nodes.len() > 1 { Ok(nodes) } else { Err(Error::Missing(ONE_NODE.into())) }
}

/// As [`call_bound_to_node`], for one of several nodes with memory.
///
/// # Errors
/// [`Error::Missing`] if there is only one, or `node` is none of them.
pub fn call_on_one_of_several<T>(node: usize, f: impl FnOnce() -> T) -> Result<T> {
    if !several_memory_nodes()?.contains(&node) {
        return Err(Error::Missing("this machine has no memory on a node of this number".into()));
    }
    call_bound_to_node(node, f)
}

/// Verifies that a sample of pages, spread over the bytes, is on this node.
///
/// # Errors
/// [`Error::Missing`] if a page is on another node.
pub fn verify_node(bytes: &[u8], node: usize) -> Result<()> {
    const PROBES: usize = 64;
    for at in bytes.iter().step_by(bytes.len().div_ceil(PROBES).max(1)) {
        let found = node_of_byte(at)?;
        if found != node {
            return Err(Error::Missing(format!(
                "memory was asked for on node {node} and came on node {found}: free some there"
            )));
        }
    }
    Ok(())
}

/// Moves all pages of a region to this node (move_pages(2)).
///
/// # Errors
/// The kernel refuses the call.
pub fn move_region(region: &Region, node: usize) -> Result<()> {
    let nodes = vec![node as c_int; region.page_count()];
    ask_pages(region, Some(&nodes)).map(drop)
}

/// Verifies that all pages of a region are on this node.
///
/// # Errors
/// [`Error::Contradicted`] if a page is on another node, as after the kernel's balancing; [`Error::Disturbed`] if the kernel did
/// not move it.
pub fn verify_region(region: &Region, node: usize) -> Result<()> {
    match ask_pages(region, None)?.iter().find(|status| **status != node as c_int) {
        None => Ok(()),
        Some(error @ ..0) => {
            Err(Error::Disturbed(format!("a page did not move to node {node}: error {error}")))
        }
        Some(elsewhere) => Err(Error::Contradicted(format!("a page is on node {elsewhere}, not on {node}"))),
    }
}

/// Moves the pages of a region to these nodes, or with `None` asks where they are. Returns the node of each page, or a negative
/// error number.
fn ask_pages(region: &Region, nodes: Option<&[c_int]>) -> Result<Vec<c_int>> {
    let pages: Vec<usize> =
        (0..region.page_count()).map(|page| region.start_address() + page * PAGE).collect();
    let mut status = vec![-1 as c_int; pages.len()];
    let nodes = nodes.map_or(std::ptr::null(), <[c_int]>::as_ptr);
    // SAFETY: OWN-PAGES.
    let answer = unsafe {
        let (count, pages, status) = (pages.len(), pages.as_ptr(), status.as_mut_ptr());
        libc::syscall(libc::SYS_move_pages, 0, count, pages, nodes, status, MOVE_OWN)
    };
    Errno::result(answer).map_err(|errno| Error::from_case_errno("move_pages", errno))?;
    Ok(status)
}

/// Calls `f` while pages that this thread touches first come from this node only. Afterwards the default policy
/// applies.
///
/// # Errors
/// The kernel refuses the node.
pub fn call_bound_to_node<T>(node: usize, f: impl FnOnce() -> T) -> Result<T> {
    set_memory_policy(libc::MPOL_BIND, 1 << node)?;
    let value = f();
    set_memory_policy(libc::MPOL_DEFAULT, 0)?;
    Ok(value)
}

fn set_memory_policy(mode: c_int, mask: c_ulong) -> Result<()> {
    // The kernel reads one bit fewer than the last argument says, and refuses a mask without bits.
    // SAFETY: OWN-POLICY.
    let answer = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, &raw const mask, MOST + 1) };
    match Errno::result(answer) {
        Ok(_) => Ok(()),
        Err(errno) => Err(Error::from_case_errno("set_mempolicy", errno)),
    }
}

/// The node of the page that holds this byte.
///
/// # Errors
/// The kernel refuses the call, or returns no node.
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
    use crate::testing::print_skipped;

    #[test]
    fn memory_is_bound_to_a_node_during_the_call() {
        let root = Path::new("/");
        let Some(&node) = memory_nodes_in(root).last() else {
            return print_skipped("this kernel names no memory node");
        };
        match call_bound_to_node(node, || vec![1_u8; 1 << 20]) {
            Ok(bytes) => verify_node(&bytes, node).expect("it is there"),
            Err(error) if error.to_string().contains(Errno::EINVAL.desc()) => panic!("{error}"),
            Err(error) => print_skipped(&error.to_string()),
        }
    }

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
    fn memory_of_the_wrong_node_is_noticed() {
        let mut memory =
            crate::resident::ResidentMemory::new(1 << 20, crate::resident::Pages::Base).expect("memory");
        let Ok(here) = node_of_byte(&memory.bytes()[0]) else {
            print_skipped("this kernel does not tell of nodes");
            return;
        };
        let error = verify_node(memory.bytes(), here + 1).expect_err("another").to_string();
        assert!(error.contains(&format!("on node {}", here + 1)), "{error}");
    }

    #[test]
    fn a_node_that_does_not_exist_is_refused() {
        let Err(error) = call_bound_to_node(MOST - 1, || ()) else { panic!("bound") };
        assert!(error.to_string().contains("set_mempolicy"), "{error}");
    }
}
