//! `cargo bench --bench context_switch`: see `src/subject/context_switch.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("context_switch")
}
