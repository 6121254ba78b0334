//! Tells the crate how it was built: the compiler and the profile are part of a machine's fingerprint,
//! because the same source under another compiler is another measurement.
use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok();
    let version = version.and_then(|o| String::from_utf8(o.stdout).ok()).unwrap_or_default();
    println!("cargo::rustc-env=SYSCOST_RUSTC={}", version.trim());
    for name in ["PROFILE", "OPT_LEVEL", "TARGET"] {
        let value = std::env::var(name).unwrap_or_default();
        println!("cargo::rustc-env=SYSCOST_{name}={value}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
