//! `cargo bench --bench signal`: see `src/suite/signal.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("signal")
}
