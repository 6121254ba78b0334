//! `cargo bench --bench lock`: see `src/suite/lock.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("lock")
}
