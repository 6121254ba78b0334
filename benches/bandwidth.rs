//! `cargo bench --bench bandwidth`: see `src/suite/bandwidth.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("bandwidth")
}
