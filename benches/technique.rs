//! `cargo bench --bench technique`: see `src/suite/technique.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("technique")
}
