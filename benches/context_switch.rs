//! `cargo bench --bench context_switch`: see `src/suite/context_switch.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("context_switch")
}
