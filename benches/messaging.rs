//! `cargo bench --bench messaging`: see `src/suite/messaging.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("messaging")
}
