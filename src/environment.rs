//! What else was true at the time: the [`Fingerprint`] of a machine, and the [`doctor`] who looks and
//! never touches.

pub mod doctor;
mod fingerprint;
pub mod kernel_files;

pub use fingerprint::Fingerprint;
