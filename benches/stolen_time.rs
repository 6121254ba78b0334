//! `cargo bench --bench stolen_time`: see `src/suite/stolen_time.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("stolen_time")
}
