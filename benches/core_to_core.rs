//! `cargo bench --bench core_to_core`: see `src/suite/core_to_core.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("core_to_core")
}
