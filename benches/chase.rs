//! `cargo bench --bench chase`: see `src/suite/chase.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("chase")
}
