//! Linux guests: another kernel, booted by QEMU, that runs cases and counts instructions.
//!
//! The host writes an initramfs of this binary and its questions ([`initramfs`], [`question`]), boots a [`kernel`] with
//! it ([`boot`]) and reads the answers from the console ([`console`]). In the guest the binary is the first process
//! ([`init`]). The emulator advances the guest's clock by one nanosecond for each instruction, so that a time is a number
//! of instructions, which repeats exactly.

pub mod binary;
pub mod boot;
pub mod boot_series;
pub mod configuration;
pub mod console;
pub mod debian;
pub mod init;
pub mod initramfs;
pub mod kernel;
mod last_words;
pub mod question;
