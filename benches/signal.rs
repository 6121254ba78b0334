//! `cargo bench --bench signal`: see `src/subject/signal.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("signal")
}
