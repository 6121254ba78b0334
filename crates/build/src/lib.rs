//! Revisions of a repository, built for comparison and linked again for every pair.
//!
//! [`revision::build_revision`] checks a commit out, builds one bench of it and keeps the result; [`link`] repeats the last step
//! of the build with its functions in another order. Nothing of the user's is touched: no tree, no index, no build directory.

#![deny(unsafe_code)]

mod borrowed_tree;
pub mod build_facts;
mod git;
pub mod link;
mod neighbours;
pub mod revision;
mod workspace;
