//! `cargo bench --bench tracing`: see `src/suite/tracing.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("tracing")
}
