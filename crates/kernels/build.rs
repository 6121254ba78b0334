//! Compiles the emulator's plugin `plugin/execution_counts.rs` as a separate library, which the program contains. If the compiler
//! cannot link it, the library is empty: the emulator's clock then counts instructions, and the program says so.
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "plugin/execution_counts.rs";

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let library = PathBuf::from(variable("OUT_DIR")).join("execution_counts.so");
    let mut rustc = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "execution_counts"]);
    rustc.args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "strip=symbols"]);
    rustc.args(["--target", &variable("TARGET")]);
    if let Ok(linker) = std::env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    // The emulator that loads the library is dynamic: the library is too, even if the program is linked statically.
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    rustc.args(
        flags
            .split('\u{1f}')
            .filter(|flag| !flag.is_empty())
            .map(|flag| flag.replace("+crt-static", "-crt-static")),
    );
    rustc.arg(SOURCE).arg("-o").arg(&library);
    let built = rustc.status().is_ok_and(|status| status.success());
    if !built {
        println!(
            "cargo::warning=the plugin that counts instructions was not built: the emulator's clock counts them"
        );
        std::fs::write(&library, []).expect("OUT_DIR can be written to");
    }
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed=build.rs");
}
