//! Revisions of a repository, built for comparison and linked again for every pair.
//!
//! [`revision::build_revision`] checks out a commit, builds one of its benches and keeps the result. [`link`] repeats the last
//! step of the build with the functions in another order. The user's tree, index and build directory are not touched.

#![deny(unsafe_code)]

mod borrowed_tree;
pub mod build_facts;
mod git;
pub mod link;
mod neighbours;
pub mod revision;
mod workspace;
