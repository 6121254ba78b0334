//! `cargo bench --bench fork`: see `src/suite/fork.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("fork")
}
