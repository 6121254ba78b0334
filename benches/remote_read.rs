//! `cargo bench --bench remote_read`: see `src/suite/remote_read.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("remote_read")
}
