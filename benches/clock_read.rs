//! `cargo bench --bench clock_read`: see `src/suite/clock_read.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("clock_read")
}
