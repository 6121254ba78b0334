//! A session over reboots: kernels measured on the machine itself, boot after boot, in turn.
//!
//! A plan ([`boot_plan`]) lists the kernels, the number of boots, and the boots that were measured. Its file is replaced atomically
//! after each process, so that a power cut loses only the running process. After each boot a unit of systemd ([`resume_unit`])
//! starts the program, which takes the next step ([`boot_plan::advance_session`]): it measures in this boot, or restarts into the
//! next kernel by GRUB or kexec ([`boot_loader`]). The last step removes the unit.

pub mod boot_kernel;
pub mod boot_loader;
pub mod boot_plan;
pub mod resume_unit;
