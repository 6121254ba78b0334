//! A session over reboots: kernels measured on the machine itself, boot after boot, in turn.
//!
//! A plan ([`boot_plan`]) says which kernels, how often, and what was done; it is a file that is replaced whole after each process, so
//! that a power cut loses the running process and nothing else. After each boot a unit of systemd ([`resume_unit`]) starts the
//! program again, which goes one step on ([`boot_plan::advance_session`]): measure in this boot, or restart into the next kernel by GRUB or kexec
//! ([`boot_loader`]). The last step removes the unit.

pub mod boot_kernel;
pub mod boot_loader;
pub mod boot_plan;
pub mod resume_unit;
