//! `cargo bench --bench core_to_core`: see `src/subject/core_to_core.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("core_to_core")
}
