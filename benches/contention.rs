//! `cargo bench --bench contention`: see `src/suite/contention.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("contention")
}
