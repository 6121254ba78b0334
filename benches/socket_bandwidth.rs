//! `cargo bench --bench socket_bandwidth`: see `src/subject/socket_bandwidth.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("socket_bandwidth")
}
