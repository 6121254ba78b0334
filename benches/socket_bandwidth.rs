//! `cargo bench --bench socket_bandwidth`: see `src/suite/socket_bandwidth.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("socket_bandwidth")
}
