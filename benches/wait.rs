//! `cargo bench --bench wait`: see `src/suite/wait.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("wait")
}
