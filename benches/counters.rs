//! `cargo bench --bench counters`: see `src/suite/counters.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("counters")
}
