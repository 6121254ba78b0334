//! Linux guests: another kernel, booted by QEMU, that counts the instructions of cases, or is measured by turns with a second guest.
//!
//! By turns ([`live_guest`]) two guests run at once on one CPU, and their first process ([`init`]) starts a side of
//! [`syscost_engine::pair`] for each case. By counted instructions the host writes an initramfs with this binary and the list of
//! cases ([`initramfs`], [`console::Questions`]), boots a [`kernel`] with it ([`boot`]) and reads the counts from the console
//! ([`console`]). In the guest the binary is the first process ([`init`]). The emulator advances the guest's clock by one nanosecond
//! for each instruction, so that a time is a number of instructions, which repeats exactly.

pub mod boot;
pub mod boot_series;
pub mod console;
pub mod debian;
pub mod emulator;
pub mod init;
pub mod initramfs;
pub mod kernel;
pub mod live_guest;
